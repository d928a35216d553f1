"""`make gpu-evening` and `python -m lapax tune-gpu` without a GPU: steps on the CPU with tiny
sizes, what becomes of steps that end otherwise than they should, and the table of choices."""

import csv
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from lapax import _library, _tune
from lapax._table import targets

ROOT = Path(__file__).resolve().parents[2]
EVENING = ROOT / "tests/gpu/evening.py"

pytestmark = pytest.mark.skipif(
    _library.cuda_kernels() == 0, reason="this liblapax was built without CUDA kernels"
)


def run(*command, **environment):
    return subprocess.run(
        [sys.executable, *map(str, command)],
        capture_output=True,
        text=True,
        env=os.environ | environment,
    )


def lines(folder, step):
    with (folder / f"{step}.csv").open(newline="", encoding="utf-8") as file:
        return {line["piece"]: line for line in csv.DictReader(file)}


@pytest.fixture(scope="module")
def dry(tmp_path_factory):
    if not hasattr(jax.lax.linalg.SvdAlgorithm, "POLAR"):
        pytest.skip("tests/gpu has programs that this JAX lacks")
    folder = tmp_path_factory.mktemp("evening")
    return folder, run(EVENING, "--dry", "--out", folder, "--commit", "abc")


def test_every_step_of_a_dry_run_is_right(dry):
    folder, done = dry
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 wrong" in done.stdout
    page = (folder / "page.md").read_text(encoding="utf-8")
    assert "commit abc" in page
    for step in ("targets", "programs", "device", "rows", "torch", "cupy", "heat", "tune"):
        assert f"| {step} |" in page


def test_every_target_of_cuda_is_looked_at(dry):
    folder, _ = dry
    found = lines(folder, "targets")
    assert set(found) == {f"{it.name} {it.dtypes[0]}" for it in targets("cuda")}
    ran = [name for name, line in found.items() if line["residual"]]
    assert len(ran) > len(found) / 3


def test_times_are_beside_those_of_others(dry):
    folder, _ = dry
    rows = lines(folder, "rows")
    assert float(rows["solve f32 3 2"]["lapax"]) > 0
    assert set(lines(folder, "torch")) == set(rows)
    table = json.loads((folder / "gpu-choices.json").read_text(encoding="utf-8"))
    assert [row["ops"] for row in table] == [["solve"]]


def test_a_fault_loses_one_piece(tmp_path):
    spec = importlib.util.spec_from_file_location("evening", EVENING)
    evening = importlib.util.module_from_spec(spec)
    sys.modules["evening"] = evening  # A dataclass looks its module up.
    spec.loader.exec_module(evening)
    script = tmp_path / "steps.py"
    script.write_text(
        "import json, os, sys\n"
        "file = open(sys.argv[2], 'a+'); file.seek(0); begun = file.read()\n"
        "for piece in ('one', 'two', 'three'):\n"
        "    if piece in begun: continue\n"
        "    print(json.dumps({'step': 'a', 'begin': piece}), file=file, flush=True)\n"
        "    if piece == 'two': os.abort()\n"
        "    print(json.dumps({'step': 'a', 'piece': piece}), file=file, flush=True)\n",
        encoding="utf-8",
    )
    assert evening.run(evening.Step("rows", 5), 5, tmp_path, script=script)
    script.write_text("raise SystemExit(9)")
    assert evening.run(evening.Step("heat", 5), 5, tmp_path, script=script)
    done = run(ROOT / "tests/gpu/evening_page.py", tmp_path, "--commit", "abc")
    assert done.returncode == 1
    assert "the start: the process ended with 9" in done.stdout
    found = [json.loads(it) for it in (tmp_path / "rows.0.jsonl").read_text().splitlines()]
    assert [it["piece"] for it in found if "piece" in it] == ["one", "two", "three"]
    assert "the process ended with -6" in found[3]["wrong"]


def test_without_a_gpu_it_says_so(tmp_path):
    done = run(EVENING, "--out", tmp_path, JAX_PLATFORMS="cpu")
    assert (done.returncode, "no GPU" in done.stderr) == (2, True)
    done = run("-m", "lapax", "tune-gpu", "-o", tmp_path / "it.json", JAX_PLATFORMS="cpu")
    assert done.returncode == 2
    assert done.stderr.startswith("tune-gpu: no GPU, nothing measured")


def test_a_file_that_is_no_table_of_choices_is_an_error_of_install(tmp_path):
    file = tmp_path / "choices.json"
    file.write_text('[{"ops": ["solve"], "gpu": "any", "batches": "many", "alone": 1}]')
    done = run("-c", "import lapax; lapax.install()", LAPAX_GPU_CHOICES=str(file))
    assert done.returncode == 1
    expected = f"ValueError: LAPAX_GPU_CHOICES: {file}: row 1: `batches`: expected an order, "
    assert expected in done.stderr


CALLS = """
import jax, jax.numpy as jnp, numpy as np, lapax
lapax.install()
for n, batch in ((10, 3), (11, 3), (10, 1), (5, 1)):
    a = jax.ShapeDtypeStruct((batch, n, n), np.float32)
    text = jax.jit(jnp.linalg.cholesky).trace(a).lower(lowering_platforms=("cuda",)).as_text()
    print("lapax_cholesky" in text)
"""


def test_programs_follow_the_users_table(tmp_path):
    file = tmp_path / "choices.json"
    file.write_text('[{"ops": ["cholesky"], "gpu": "any", "batches": 10, "alone": 5}]')
    done = run("-c", CALLS, LAPAX_GPU_CHOICES=str(file))
    assert done.stdout.split() == ["True", "False", "False", "True"], done.stderr


@pytest.mark.parametrize(("last", "expected"), [(0, 0), (8, 8), (100, 64), (1000, None)])
def test_the_border_is_found_by_halves(last, expected):
    asked = []

    def quicker(n):
        asked.append(n)
        return n <= last

    assert _tune.border([8, 16, 32, 64, 128, 256, 512], quicker) == expected
    assert len(asked) <= 3


class Asked:
    """A worker whose calls take so long."""

    def __init__(self, *seconds):
        self.seconds = list(seconds)

    def ask(self, _):
        seconds = self.seconds.pop(0)
        return {"error": "none"} if seconds is None else {"seconds": seconds}


def test_times_are_kept_and_a_failed_call_is_no_quicker_one(tmp_path):
    file, point = tmp_path / "it.times", ("solve", "f32", 8, 1)
    workers = {"rows": Asked(3.0, 1.0), "targets": Asked(1.5, 2.0)}
    assert _tune.Times(file, {"gpu": "9.0"}, workers).quicker(("rows", "targets"), point)
    again = _tune.Times(file, {"gpu": "9.0"}, {})
    assert again.quicker(("rows", "targets"), point)
    assert not again.quicker(("targets", "rows"), point)
    with pytest.raises(ValueError, match="remove it to begin anew"):
        _tune.Times(file, {"gpu": "8.6"}, {})
    failing = {"rows": Asked(1.0, None), "targets": Asked(2.0, 2.0)}
    times = _tune.Times(tmp_path / "other.times", {"gpu": "9.0"}, failing)
    assert not times.quicker(("rows", "targets"), point)
    assert times.quicker(("targets", "rows"), point)
