"""The benchmark's plan, filters, statistics and files, and one tiny row of each kind; no timing."""

from __future__ import annotations

import dataclasses
import io
import math
import re
import subprocess
import sys
from xml.etree import ElementTree

import jax
import numpy as np
import pytest

from lapax import _backend, bench, check
from lapax._backend import Backend
from lapax._bench import (
    charts,
    conditions,
    goals,
    lapack,
    linalg,
    machine,
    measure,
    mkl,
    page,
    plan,
    report,
    rows,
    scipy_side,
    text,
)
from lapax._bench.functions import FUNCTIONS
from lapax._checks.equations import Size
from lapax._lowering import numpy_dtype
from lapax._sides import Job
from lapax._table import targets
from programs import run_python

ROW = rows.Row(
    "jax", "cholesky", "cholesky", "linear", "f64", 4, 4, 10_000,
    ours=1e-3, theirs=2e-2, spread=0.1, copy=1e-4, compute=2e-4, flops=1e6, residual=0.5,
)  # fmt: skip

ABOUT = machine.about()


def test_every_function_and_every_target_is_planned():
    planned = [job.row for job in plan.plan()]
    assert {row.name for row in planned if row.kind == "jax"} == {f.name for f in FUNCTIONS}
    of_linalg = {row.name for row in planned if row.kind == "linalg"}
    assert of_linalg == {f.name for f in linalg.FUNCTIONS}
    assert {row.name for row in planned if row.kind == "target"} == {t.name for t in targets("cpu")}
    assert {row.n for row in planned if row.kind == "loop"} == set(plan.LOOPED)
    assert len(planned) == len({dataclasses.astuple(row)[:8] for row in planned})
    assert {(row.n, row.batch) for row in planned} >= {(2048, 1), (1, 1_000_000), (4, 1_000_000)}
    assert any(row.m == 4 * row.n for row in planned)
    assert any(row.n == 4 * row.m for row in planned)


def test_a_loop_row_is_of_one_call(monkeypatch):
    (lu,) = (function for function in FUNCTIONS if function.name == "lu_factor")
    job = plan.LoopJob(lu, "f32", Size(4, 4, (1,)))
    calls = plan.LOOP_CALLS // 4
    monkeypatch.setattr(measure, "take_turns", lambda *_: [[2.0 * calls], [6.0 * calls], [9.0]])
    row = measure.measured(job, 0.01)
    assert (row.kind, row.name, row.n, row.batch) == ("loop", "lu_factor", 4, 1)
    assert (row.ours, row.theirs, row.copy, row.failed) == (2.0, 6.0, 0.0, "")
    assert row.flops == plan.FunctionJob(lu, "f32", Size(4, 4, (1,))).row.flops


@pytest.mark.parametrize("scale", [np.float32(1), np.float32(1e35)])
def test_a_loop_makes_every_call_with_the_same_operands(scale):
    seen = []

    def call(a, b):
        shape = jax.ShapeDtypeStruct(a.shape, a.dtype)
        return jax.pure_callback(lambda *x: seen.append(x) or scale * (x[0] + x[1]), shape, a, b)

    a, b = np.float32([[1.5, -2.0]]), np.float32([[4.0, 3.0]])
    assert (np.asarray(jax.jit(plan._loop(call, 5))(a, b)) == scale * (a + b)).all()
    assert len(seen) == 5
    assert all((x == a).all() and (y == b).all() for x, y in seen)


def test_each_program_begins_a_turn(monkeypatch):
    begun = []

    def warm(program):
        begun.append(program)
        return float(len(begun))

    monkeypatch.setattr(measure, "come_to_rest", lambda: None)
    monkeypatch.setattr(measure, "_warm", warm)
    monkeypatch.setattr(measure, "ROUNDS", (3, 3))
    times = measure.take_turns(["a", "b", "c"], 60.0)
    assert "".join(begun) == "abcbcacab"
    assert times == [[1.0, 6.0, 8.0], [2.0, 4.0, 9.0], [3.0, 5.0, 7.0]]


@pytest.mark.parametrize(
    ("call", "untimed", "timed"),
    # As many as take 2 ms; five where these are more and take no longer than 20 ms; one at least.
    # Short calls are warm after 20 ms, long ones are without another.
    [
        (1e-5, 2000, 200),
        (1e-4, 20, 20),
        (1e-3, 5, 5),
        (3.9e-3, 5, 5),
        (8e-3, 3, 3),
        (0.9, 1, 1),
        (1.1, 0, 1),
    ],
)
def test_a_program_is_warm_before_it_is_timed(monkeypatch, call, untimed, timed):
    now, calls = [0.0], []

    def run():
        now[0] += call
        calls.append(now[0])

    monkeypatch.setattr(measure.time, "perf_counter", lambda: now[0])
    assert measure._warm(run) == pytest.approx(call)
    assert len(calls) == pytest.approx(untimed + timed, abs=2 if untimed > 10 else 0)


def test_a_row_that_lapax_has_no_part_in_is_not_timed():
    (det,) = (function for function in FUNCTIONS if function.name == "det")
    rows = [measure.measured(plan.FunctionJob(det, "f32", Size(n, n, (2,))), 0.01) for n in (2, 4)]
    assert rows[0].skipped
    assert math.isnan(rows[0].ours)
    assert not rows[1].skipped
    assert rows[1].ours > 0


@pytest.mark.parametrize(("noise", "turns"), [(0.0, 10), (0.3, 60)])
def test_uncertain_medians_get_more_turns(monkeypatch, noise, turns):
    now, calls = [0.0], []

    def warm(program):
        now[0] += 1.0
        calls.append(program)
        return 1.0 + noise * (len(calls) % 3)

    monkeypatch.setattr(measure, "come_to_rest", lambda: None)
    monkeypatch.setattr(measure, "_warm", warm)
    monkeypatch.setattr(measure.time, "perf_counter", lambda: now[0])
    (times,) = measure.take_turns(["a"], 10.0)
    assert len(times) == pytest.approx(turns, abs=1)


def test_a_quick_plan_is_a_part_of_the_full_one():
    def keys(planned):
        return {dataclasses.astuple(job.row)[:8] for job in planned}

    quick = plan.plan(quick=True)
    assert keys(quick) < keys(plan.plan())
    assert len(quick) < 220


def test_costly_rows_come_last():
    costly = [job.row.flops > plan.LARGE_FLOPS for job in plan.plan()]
    assert costly == sorted(costly)


@pytest.mark.parametrize(
    ("only", "wanted"),
    [
        ({"jax"}, lambda row: row.kind == "jax"),
        ({"getrf", "f64"}, lambda row: row.op == "getrf" and row.dtype == "f64"),
        ({"lapack_dgetrf_ffi"}, lambda row: row.name == "lapack_dgetrf_ffi"),
        ({"linear", "f32", "c64"}, lambda row: row.family == "linear" and row.dtype in "f32 c64"),
    ],
)
def test_only_names_kind_op_target_family_and_dtype(only, wanted):
    everything = [job.row for job in plan.plan()]
    chosen = [job.row for job in plan.plan(frozenset(only))]
    # By their text: a NaN is unequal to itself.
    assert list(map(repr, chosen)) == [repr(row) for row in everything if wanted(row)] != []


def test_only_refuses_a_word_that_names_nothing():
    with pytest.raises(ValueError, match="unknown getrv"):
        plan.plan(frozenset({"getrv"}))


def test_what_is_too_large_says_why():
    assert plan.too_large(ROW, 2**34) == ""
    assert "exceed 1/8 of memory" in plan.too_large(ROW, 2**20)
    assert "flops exceed" in plan.too_large(dataclasses.replace(ROW, flops=1e13), 2**40)


def test_statistics():
    assert rows.spread([1, 2, 3, 4, 5]) == pytest.approx(2 / 3)
    assert rows.geometric_mean([2, 8]) == pytest.approx(4)
    assert math.isnan(rows.geometric_mean([]))
    assert ROW.ratio == pytest.approx(20)
    assert (ROW.floor, ROW.ruled_by) == (2e-4, "flops")
    assert ROW.quiet
    assert not dataclasses.replace(ROW, spread=0.6).quiet
    assert not dataclasses.replace(ROW, theirs=math.nan).quiet


def test_csv_round_trip():
    file = io.StringIO(newline="")
    odd = dataclasses.replace(ROW, failed='stock, "wrong"', ours=math.inf)
    rows.write_csv(file, [ROW, odd], {"cpu": "fast: 3 GHz"})
    file.seek(0)
    read, machine = rows.read_csv(file)
    assert machine == {"cpu": "fast: 3 GHz"}
    assert list(map(repr, read)) == list(map(repr, [ROW, odd]))
    with pytest.raises(ValueError, match="columns"):
        rows.read_csv(io.StringIO("a,b\n1,2\n"))


def test_goals_are_means_of_their_rows():
    large = dataclasses.replace(ROW, n=16, m=16, batch=4_000)
    noisy = dataclasses.replace(ROW, spread=1.0)
    slow = dataclasses.replace(ROW, ours=4e-3)
    small, sixteen = goals.reached([ROW, slow, noisy, large])
    assert (small.mean, small.goal, small.met) == (pytest.approx(10), 15, False)
    assert (small.rows, small.left_out) == (2, 1)
    # Stock JAX takes 20 ms, the floor is the 0.2 ms of the flops.
    assert small.at_floor == pytest.approx(100)
    assert (sixteen.mean, sixteen.goal, sixteen.met) == (pytest.approx(20), 10, True)
    (complex_,) = goals.reached([dataclasses.replace(ROW, dtype="c64")])
    assert complex_.goal == 7.5
    assert {function.family for function in FUNCTIONS} >= set(goals.FAMILIES)


def test_goals_of_larger_orders_and_beside_mkl():
    large = dataclasses.replace(ROW, n=512, m=512, batch=1, mkl=2e-3)
    one, beside = goals.reached([large, dataclasses.replace(large, dtype="f32", mkl=5e-4)])
    assert (one.sizes, one.mean, one.goal) == ("n = 256 to 2048", pytest.approx(20), 2.5)
    assert (beside.sizes, beside.mean, beside.met) == ("beside MKL", pytest.approx(1), True)
    assert beside.at_floor == pytest.approx(5)
    planned = {(j.row.family, j.row.m, j.row.n, j.row.batch) for j in plan.plan()}
    for family in goals.FAMILIES:
        assert planned >= {(family, n, n, batch) for n, batch in goals.points(family)}


def test_lines_have_the_columns_of_the_head():
    assert len(text.line(ROW)) == len(text.HEAD)
    assert "skipped: no time" in text.line(text.skipped(ROW, "no time"))
    assert "wrong answer of lapax" in text.line(dataclasses.replace(ROW, failed="lapax"))


def test_html_is_well_formed():
    odd = dataclasses.replace(ROW, failed="<lapax> & 'stock'")
    page = report.html([ROW, odd], {"cpu": "a < b"}, {"one": b"\x89PNG"})
    parsed = ElementTree.fromstring(page.removeprefix("<!DOCTYPE html>"))
    assert len(parsed.findall(".//tr")) >= 4
    (image,) = parsed.findall(".//img")
    assert image.get("src", "").startswith("data:image/png;base64,")


def test_the_page_has_sizes_functions_conditions_and_the_machine():
    loop = dataclasses.replace(ROW, kind="loop", ours=5e-4)
    target = dataclasses.replace(ROW, kind="target", name="lapack_dpotrf_ffi", op="potrf")
    alone = dataclasses.replace(ROW, condition="threads=1", theirs=4e-3)
    shown = page.markdown([ROW, loop, target, alone], {"cpu": "fast"}, "rows.csv")
    lines = shown.splitlines()
    assert lines[0] == "<!-- python -m lapax bench --markdown rows.csv > docs/performance.md -->"
    assert "- cpu: fast" in lines
    (linear,) = [line for line in lines if "`cholesky`, `solve`" in line and "f64 | 20.0 |" in line]
    assert linear.endswith("| - | - | - | - | - |")
    assert "| `cholesky` | 1 | 20.00 | 20.00 | 40.00 | 40.00 | - | - |" in lines
    assert "| function | 1 core |" in lines
    assert "| `cholesky` | 4.00 |" in lines
    assert "| `potrf` | 1 | 20.00 | 20.00 |" in lines
    # A table stands wherever the template has room for one.
    assert not re.search("^<!-- [a-z]+ -->$", shown, re.MULTILINE)


def test_the_page_of_lapax_linalg_has_batches_and_single_matrices():
    batch = dataclasses.replace(ROW, kind="linalg", name="expm", batch=1000, scipy=1e-2)
    one = dataclasses.replace(batch, batch=1, theirs=math.nan, scipy=5e-4)
    noisy = dataclasses.replace(batch, spread=0.9, theirs=1.0)
    shown = page.linalg([batch, one, noisy, ROW], {"cpu": "fast"}, "rows.csv")
    lines = shown.splitlines()
    assert lines[0].startswith("<!-- python -m lapax bench --linalg rows.csv >")
    assert "| `expm` | 2 | 20.00 | 20.00 | 10.00 | 10.00 | - | - | 0.50 | 0.50 |" in lines
    assert sum(line.startswith("| `") for line in lines) == 1
    assert "- cpu: fast" in lines


def test_every_family_and_condition_has_words_for_the_page():
    assert set(page.FUNCTIONS) == set(goals.FAMILIES)
    assert set(page.CONDITIONS) >= set(conditions.CONDITIONS) - {"threads"}


def test_notes_have_goals_and_floors():
    shown = report.notes([ROW])
    (goal,) = [line for line in shown.splitlines() if line.startswith("| linear |")]
    assert "20.0 | 15 | met" in goal
    assert "| jax | cholesky | quiet | 1 | 20.00 | 20.00 |" in shown


def test_markdown_lists_rows_in_which_another_is_faster():
    slow = dataclasses.replace(ROW, name="slow", ours=4e-2)
    noise = dataclasses.replace(ROW, name="noise", ours=2.02e-2)
    mkl = dataclasses.replace(ROW, name="beside", mkl=5e-4)
    shown = report.slower([ROW, slow, noise, mkl])
    assert "in 2 of 4 rows" in shown
    names = ("slow", "beside", "noise", "cholesky")
    assert [name in shown for name in names] == [True, True, False, False]
    both = dataclasses.replace(slow, name="both", mkl=5e-4)
    shown = report.slower([slow, both])
    assert [shown.count(f"| {name} |") for name in ("slow", "both")] == [1, 1]
    # No time of MKL's: neither that nor the ratio to it.
    assert [line.count("| - ") for line in shown.splitlines() if "| slow |" in line] == [2]


def test_the_commit_is_that_of_a_tracked_file_alone(monkeypatch, tmp_path):
    def git(*words):
        name = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", "-C", str(tmp_path), *name, *words], check=True, capture_output=True)

    git("init")
    git("commit", "--allow-empty", "-m", "another project's")
    file = tmp_path / "machine.py"
    file.touch()
    monkeypatch.setattr(machine, "__file__", str(file))
    assert machine.about()["commit"] == "unknown"
    git("add", file.name)
    git("commit", "-m", "this file")
    assert re.fullmatch(r"[0-9a-f]{7,}", machine.about()["commit"])
    file.write_text("changed")
    assert machine.about()["commit"].endswith("+")


def test_charts_are_drawn():
    pytest.importorskip("matplotlib", reason="charts not tested: pip install matplotlib")
    drawn = charts.draw([ROW, dataclasses.replace(ROW, n=8, m=8)])
    assert all(image.startswith(b"\x89PNG") for image in drawn.values())
    assert {name.split("-")[0] for name in drawn} == {"ratio", "rate"}
    assert charts.draw([dataclasses.replace(ROW, m=2 * ROW.n)]) == {}


def test_without_matplotlib_charts_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(charts.MissingError, match=r"lapax\[bench\]"):
        charts.draw([ROW])


def test_nan_is_a_wrong_answer():
    assert measure.wrong([1.0, 2.0]) == ""
    assert measure.wrong([1.0, math.nan]) == "stock (residual nan)"


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
@pytest.mark.parametrize("dtype", ["f32", "c128"])
def test_functions_pass_their_own_check(function, dtype):
    if dtype not in function.dtypes:
        dtype = function.dtypes[0]
    shapes = [(5, 5), (8, 3), (3, 8)] if function.rectangular else [(1, 1), (5, 5)]
    with jax.enable_x64(True):
        for m, n in shapes:
            size = Size(m, n, (3,))
            prepared = plan.FunctionJob(function, dtype, size).prepare()
            for side in (prepared.ours, prepared.theirs):
                answer = side.answer()
                assert measure.wrong([prepared.check(answer)]) == ""
                spoilt = [np.full_like(ret, 0.37) for ret in answer]
                assert measure.wrong([prepared.check(spoilt)]) != "" or n == 1
        assert prepared.args[0].dtype == numpy_dtype(dtype)


def test_a_row_of_each_kind_is_measured():
    (target,) = [target for target in targets("cpu") if target.name == "lapack_dpotrf_ffi"]
    variant = target.signature.variant("f64")
    cholesky = next(function for function in FUNCTIONS if function.name == "cholesky")
    with jax.enable_x64(True):
        for job in (
            plan.FunctionJob(cholesky, "f64", Size(3, 3, (2,))),
            plan.TargetJob(Job(target, variant, 3, 2)),
        ):
            row = measure.measured(job, 0.001)
            assert row.failed == ""
            assert min(row.ours, row.theirs, row.copy, row.compute) > 0


def test_rows_whose_stock_side_may_never_return_are_skipped(monkeypatch):
    planned = {job.row.name: job.row for job in plan.plan()}
    alone = planned["solve_3x3"]
    side_by_side = [
        planned["grad_solve_3x3"],
        dataclasses.replace(alone, condition="concurrent"),
    ]
    monkeypatch.setattr(plan.metadata, "version", {"jaxlib": "0.10.2"}.__getitem__)
    assert plan.never_returns(alone) == ""
    assert all("jaxlib 0.10.2" in plan.never_returns(row) for row in side_by_side)
    skipped = list(conditions.measured(["concurrent"], frozenset({"cholesky"}), 0.001))
    assert skipped
    assert all(row.condition == "concurrent" and row.skipped for row in skipped)
    monkeypatch.setattr(plan.metadata, "version", {"jaxlib": "0.12.0.1"}.__getitem__)
    assert not any(map(plan.never_returns, side_by_side))


def test_command_line(capsys, tmp_path):
    only = "jax,solve_3x3"
    assert bench.main(["--quick", "--only", only, "--minutes", "1e-9", "--out", str(tmp_path)]) == 0
    assert "1 of 1 rows skipped" in capsys.readouterr().out
    path = tmp_path / "rows.csv"
    with path.open(newline="") as file:
        (row,), about = rows.read_csv(file)
    assert "minutes were over" in row.skipped
    assert about["jax"] == jax.__version__
    assert bench.main(["--markdown", str(path)]) == 0
    assert capsys.readouterr().out.startswith(
        f"<!-- python -m lapax bench --markdown {path.name} >"
    )
    assert bench.main(["--linalg", str(path)]) == 0
    assert "# Performance of lapax.linalg" in capsys.readouterr().out
    assert bench.main(["--notes", str(path)]) == 0
    assert capsys.readouterr().out.startswith("## Goals\n")
    with pytest.raises(SystemExit):
        bench.main(["--only", "nothing"])


def test_nothing_to_measure_is_said(capsys, tmp_path):
    words = ["--only", "cholesky,f32,jax", "--out", str(tmp_path)]
    with pytest.raises(SystemExit, match=r"^2$"):
        bench.main(["--quick", *words])
    rows = len(plan.plan(frozenset({"cholesky", "f32", "jax"})))
    said = f"no row is all of cholesky,f32,jax; without --quick there are {rows}\n"
    assert capsys.readouterr().err.endswith(said)
    assert rows > 0


def test_a_folder_that_cannot_be_made_is_said_before_the_run(capsys, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(SystemExit, match=r"^2$"):
        bench.main(["--quick", "--only", "jax,cholesky", "--out", str(file / "folder")])
    assert f"--out: {file / 'folder'} cannot be made: " in capsys.readouterr().err


def test_a_busy_machine_is_said(monkeypatch):
    monkeypatch.setattr(machine.os, "getloadavg", lambda: (machine.cores() + 0.5, 0.0, 0.0))
    assert machine.busy() == f"load {machine.cores() + 0.5:.1f} on {machine.cores()} cores"
    monkeypatch.setattr(machine.os, "getloadavg", lambda: (0.5, 9e9, 9e9))
    assert machine.busy() is None


def test_bench_starts_where_linux_calls_are_missing():
    code = """
import os, sys
for name in ("sched_getaffinity", "sched_setaffinity", "getloadavg", "sysconf"):
    delattr(os, name)
from lapax import bench
from lapax._bench import conditions, machine, plan
sys.platform = "darwin"
print(machine.cores() == os.cpu_count(), plan.memory() > 0, machine.busy())
rows = list(conditions.measured(["threads", "memory"], frozenset({"cholesky", "f64", "jax"}), 0.1))
print({(row.condition, row.skipped) for row in rows} ==
      {(name, "Linux counts that") for name in ("threads", "memory")})
"""
    assert run_python(code).splitlines() == ["True True None", "True"]


def test_after_an_earlier_run_only_what_it_lacks_is_measured(capsys, tmp_path):
    job = next(job for job in plan.plan() if job.row.name == "solve_3x3")
    quiet = dataclasses.replace(job.row, ours=1.0, theirs=3.0, spread=0.1, residual=0.5)
    busy = dataclasses.replace(quiet, ours=2.0, spread=9.0)
    other = dataclasses.replace(quiet, condition="memory")
    file = tmp_path / "rows.csv"

    def run(*earlier, minutes="1", about=ABOUT):
        with file.open("w", newline="") as lines:
            rows.write_csv(lines, earlier, about)
        words = ["--quick", "--only", "jax,solve_3x3", "--minutes", minutes, "--after", str(file)]
        assert bench.main([*words, "--out", str(tmp_path / "out")]) == 0
        with (tmp_path / "out" / "rows.csv").open(newline="") as lines:
            return rows.read_csv(lines)[0]

    assert [row.ratio for row in run(quiet, other)] == [3.0, 3.0]
    assert [row.ratio for row in run(busy, minutes="1e-9")] == [1.5]
    (again,) = run(busy)
    assert (again.failed, again.skipped) == ("", "")
    assert again.ours != busy.ours
    assert again.ratio > 0
    with pytest.raises(SystemExit):
        run(quiet, about=ABOUT | {"cpu": "another"})
    assert "cpu another" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        bench.main(["--after", str(tmp_path / "none.csv")])


@pytest.mark.parametrize("condition", conditions.CONDITIONS)
def test_every_condition_has_rows(condition, monkeypatch):
    monkeypatch.setattr(conditions, "POINTS", ((3, 20),))
    only = frozenset({"jax", "cholesky", "f64"})
    with jax.enable_x64(True):
        found = list(conditions.measured([condition], only, 0.001))
    assert found
    for row in found:
        why = plan.never_returns(row)
        assert (row.failed, row.skipped) == ("", why)
        assert row.condition.startswith(condition)
        assert why or row.ratio > 0
        assert text.line(row)


def test_conditions_leave_out_what_only_does_not_name():
    assert list(conditions.measured(["contended"], frozenset({"getrf"}), 0.001)) == []


@pytest.mark.parametrize("change", [{"n": 32, "m": 32}, {"dtype": "c128"}, {"kind": "target"}])
def test_mkl_says_which_rows_it_has_no_time_of(change):
    row = dataclasses.replace(ROW, **{"n": 64, "m": 64} | change)
    with pytest.raises(rows.UnavailableError, match="MKL is"):
        mkl.program(None, row, ())


def _double_of_cholesky():
    cholesky = next(function for function in FUNCTIONS if function.name == "cholesky")
    return plan.FunctionJob(cholesky, "f64", Size(3, 3, (2,)))


def test_the_lapack_backend_is_a_column(monkeypatch):
    names = [Backend("faer"), Backend("lapack")]
    monkeypatch.setattr(_backend, "backends", lambda: names)
    chosen = []
    monkeypatch.setattr(_backend, "set_backend", chosen.append)
    with jax.enable_x64(True):
        row = measure.measured(_double_of_cholesky(), 0.001, others={"lapack": lapack.load()})
    assert row.lapack > 0
    assert math.isnan(row.mkl)
    assert "LAPACK" in text.line(row)
    assert chosen[:2] == ["lapack", _backend.backend()]
    assert chosen == chosen[:2] * (len(chosen) // 2)
    del names[1]
    with pytest.raises(rows.UnavailableError, match="without a LAPACK"):
        lapack.load()


@pytest.mark.parametrize("name", ["ldl", "block_tridiagonal_solve", "logm"])
def test_scipy_is_a_column_and_todays_code_the_other_side(name):
    (function,) = (function for function in linalg.FUNCTIONS if function.name == name)
    with jax.enable_x64(True):
        job = plan.FunctionJob(function, "f64", Size(function.rows or 8, 8, (2,)))
        row = measure.measured(job, 0.001, others={"scipy": scipy_side.load()})
    assert not row.failed
    assert row.ours > 0
    assert (row.scipy > 0) == (function.scipy is not None)
    assert (row.theirs > 0) == (function.today is not None)


@pytest.mark.parametrize("function", linalg.FUNCTIONS, ids=lambda function: function.name)
def test_answers_of_linalg_are_checked(function):
    """A right answer is below the limit, one that is a hundredth off is not."""
    if function.scipy is None:
        return
    dtype, size = np.dtype(np.float64), Size(function.rows or 8, 8, (2,))
    args = function.inputs(np.random.default_rng(1), dtype, size)
    found = function.scipy(*args)
    results = [np.asarray(x) for x in (found if isinstance(found, (tuple, list)) else (found,))]
    assert np.max(function.ratios(args, results)) < check.LIMIT
    results[0] = results[0] * 1.01
    assert np.max(function.ratios(args, results)) > check.LIMIT


def test_a_wrong_answer_of_the_lapack_backend_has_no_time(monkeypatch):
    monkeypatch.setattr(_backend, "set_backend", lambda name: None)
    with jax.enable_x64(True):
        job = _double_of_cholesky()
        prepared = dataclasses.replace(job.prepare(), check=lambda answer: math.nan)
        with pytest.raises(rows.UnavailableError, match="residual nan"):
            lapack.program(job.row, prepared)


def test_without_mkl_the_benchmark_says_so(monkeypatch):
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "prefix", "/nowhere")
    with pytest.raises(rows.UnavailableError, match=r"lapax\[mkl\]"):
        mkl.load()
