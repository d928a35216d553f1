"""Two ordinary JAX programs on stock JAX and on lapax: times, ratio, largest difference.

Writes out/co2_gp.png, out/small_solves.png and the table, out/demo.md.
"""

from __future__ import annotations

import platform

import jax

import co2_gp
import small_solves
from side_by_side import output_folder, table


def main() -> None:
    text = table(co2_gp.main() + small_solves.main())
    path = output_folder() / "demo.md"
    path.write_text(f"{text}\n\nJAX {jax.__version__} on the CPU, {platform.machine()}.\n", "utf-8")
    print(f"\n{text}\n\nThe table is also in {path.parent.name}/{path.name}.")


if __name__ == "__main__":
    main()
