"""What `evening.py` found, as CSV, PNG and the page that goes into docs/gpu-results.md.

    python tests/gpu/evening_page.py FOLDER [--commit NAME]

Reads the lines of the steps; writes a CSV for each step, heat.png, and page.md. Needs matplotlib
for the picture alone. Exits with 1 where a line says that something is wrong.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import importlib
import itertools
import json
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from evening import STEPS

from lapax._bench import machine
from lapax._bench.report import pipes
from lapax._bench.rows import geometric_mean

Line = dict[str, Any]

STEEP = 3.0
"""How much more than the work grows from an order to the next of the heat map is a cliff."""


def main() -> int:
    """Writes everything; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--commit")
    options = parser.parse_args()
    read = lines(options.out)
    names = [*(step.name for step in STEPS), *(line.get("step") for line in read)]
    found = {name: pieces(read, name) for name in dict.fromkeys(filter(None, names))}
    for name, of_step in found.items():
        if of_step:
            _write_csv(options.out / f"{name}.csv", of_step)
    about = {key: it for line in read for key, it in line.get("about", {}).items()}
    text = page(found, about, options.commit or machine.about()["commit"])
    (options.out / "page.md").write_text(text, encoding="utf-8")
    _draw(options.out / "heat.png", found["heat"])
    wrong = [line for of_step in found.values() for line in of_step if "wrong" in line]
    for line in wrong:
        print(f"{line['piece']}: {line['wrong']}")
    print(f"{len(wrong)} wrong; {options.out}/page.md, CSV and PNG")
    return 1 if wrong else 0


def lines(out: Path) -> list[Line]:
    """Those of all processes."""
    texts = [file.read_text(encoding="utf-8") for file in sorted(out.glob("*.jsonl"))]
    return [json.loads(line) for text in texts for line in text.splitlines()]


def pieces(read: Sequence[Line], step: str) -> list[Line]:
    """What became of each piece of a step: where a later run has done it, that."""
    known: dict[str, Line] = {}
    for line in read:
        if line.get("step") == step:
            name = line.get("piece") or line["begin"]
            known[name] = line if "piece" in line else {"piece": name, "wrong": "never ended"}
    return list(known.values())


def page(found: dict[str, list[Line]], about: dict[str, Any], commit: str) -> str:
    """The section of docs/gpu-results.md."""
    date = datetime.datetime.now(datetime.UTC).date()
    named = ", ".join(f"{name} {value}" for name, value in about.items() if name != "gpu")
    parts = [
        f"## {date:%-d %B %Y}, {about.get('gpu', 'no GPU')}, commit {commit}\n\n{named}.\n",
        pipes(("step", "pieces", "done", "wrong", "left out"), map(_counts, found, found.values())),
        *_wrong(found),
        _times(found),
        _cliffs(found["heat"]),
        *(f"{said}\n" for line in found["tune"] for said in line.get("said", ())),
    ]
    return "\n".join(filter(None, parts))


def _counts(name: str, of_step: Sequence[Line]) -> tuple[str, ...]:
    wrong, left = (sum(key in line for line in of_step) for key in ("wrong", "left"))
    return name, *map(str, (len(of_step), len(of_step) - wrong - left, wrong, left))


def _wrong(found: dict[str, list[Line]]) -> Iterator[str]:
    items = [
        f"- {name}: `{line['piece']}`: {line['wrong']}\n"
        for name, of_step in found.items()
        for line in of_step
        if "wrong" in line
    ]
    if items:
        yield "Not right, or not ended:\n\n" + "".join(items)


def _times(found: dict[str, list[Line]]) -> str:
    """A row for each function, dtype and size, and how many times as long as lapax others take."""
    others = {
        name: {line["piece"]: line["seconds"] for line in found[name] if "seconds" in line}
        for name in ("torch", "cupy")
    }
    rows, ratios = [], dict[str, list[float]]()
    for line in found["rows"]:
        if "lapax" not in line:
            continue
        beside = {"stock JAX": line.get("stock", math.nan)}
        beside |= {name: of.get(line["piece"], math.nan) for name, of in others.items()}
        for name, seconds in beside.items():
            if not math.isnan(seconds):
                ratios.setdefault(name, []).append(seconds / line["lapax"])
        sizes = (line["name"], line["dtype"], str(line["n"]), str(line["batch"]))
        times = (line["lapax"], *beside.values(), line["floor"])
        rows.append((*sizes, *map(_microseconds, times), _ratio(line["lapax"] / line["floor"])))
    if not rows:
        return ""
    means = "; ".join(
        f"{name} {geometric_mean(of):.2f} in the mean of {len(of)}, at the least {min(of):.2f}"
        for name, of in ratios.items()
    )
    head = (
        "function",
        "dtype",
        "n",
        "batch",
        "lapax µs",
        "stock JAX",
        "torch",
        "cupy",
        "floor",
        "over it",
    )
    return f"As many times as long as lapax take: {means}.\n\n{pipes(head, rows)}"


def _microseconds(seconds: float) -> str:
    return "-" if math.isnan(seconds) else f"{1e6 * seconds:.3g}"


def _ratio(value: float) -> str:
    return f"{value:.2f}"


def _cliffs(heat: Sequence[Line]) -> str:
    """Neighbouring orders between which the time grows by more than their work does."""
    known = sorted((it["name"], it["batch"], it["n"], it["lapax"]) for it in heat if "lapax" in it)
    steep = []
    for (*place, n, seconds), (*at, larger, longer) in itertools.pairwise(known):
        times = longer / seconds
        if place == at and times > STEEP * (larger / n) ** 3:
            steep.append((*map(str, place), f"{n} → {larger}", f"{times:.1f}"))
    if not known:
        return ""
    table = pipes(("function", "batch", "n", "times"), steep) if steep else ""
    return (
        f"Between neighbouring orders of the heat map (heat.png, f32, {len(known)} points) the "
        f"time grows {len(steep)} times by more than {STEEP:g} times what the work does.\n\n{table}"
    )


def _write_csv(file: Path, of_step: Sequence[Line]) -> None:
    names = list(dict.fromkeys(name for line in of_step for name in line))
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, names)
        writer.writeheader()
        writer.writerows(of_step)


def _draw(file: Path, heat: Iterable[Line]) -> None:
    """A map for each function: times over the floor, at each order and batch."""
    points = [line for line in heat if "lapax" in line]
    try:
        figure = importlib.import_module("matplotlib.figure")
    except ImportError:
        print("no heat.png: matplotlib is not installed", file=sys.stderr)
        return
    names = list(dict.fromkeys(line["name"] for line in points))
    if not names:
        return
    orders = sorted({line["n"] for line in points})
    batches = sorted({line["batch"] for line in points})
    picture = figure.Figure(figsize=(7, 3 * len(names)), layout="constrained")
    for axes, name in zip(picture.subplots(len(names), squeeze=False)[:, 0], names, strict=True):
        known = {(it["n"], it["batch"]): it for it in points if it["name"] == name}
        over = {at: math.log10(it["lapax"] / it["floor"]) for at, it in known.items()}
        grid = [[over.get((n, batch), math.nan) for n in orders] for batch in batches]
        axes.imshow(grid, cmap="RdYlGn_r", vmin=0, vmax=4, origin="lower", aspect="auto")
        for (n, batch), it in known.items():
            at = orders.index(n), batches.index(batch)
            axes.text(*at, f"{1e6 * it['lapax']:.3g}", ha="center", va="center", fontsize=7)
        axes.set_xticks(range(len(orders)), map(str, orders))
        axes.set_yticks(range(len(batches)), map(str, batches))
        axes.set(xlabel="n", ylabel="batch", title=f"{name}, f32: µs; colour: over the floor")
    picture.savefig(file, dpi=110)


if __name__ == "__main__":
    sys.exit(main())
