"""What fetching ahead brings: sweeps of large matrices with and without it.

    python benchmarks/fetching.py [--repeats 3] [--json FILE]
    python benchmarks/fetching.py --readme

Kernels ask for the rows of the other side that they will need some entries later, unless all rows
fit into the caches of one core. Here they are also compiled with caches that are taken to hold
everything, so that they never ask. The matrices are those of ``scaling.py``; processes of either
kind run in turns, on one thread, and the shortest times are compared. ``--readme`` runs nothing,
and puts ``results/fetching.json`` into docs/performance.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from typing import Any

from _common import machine, print_machine, print_table, write_json
from _report import PAGE, RESULTS, markdown_table, quote

MODELS = ("GGGA", "GEE", "PGG")
SIZES = (1_000_000, 10_000_000)
HEADER = ("ms per sweep", "entries", "without", "with", "ratio")
FOUND = RESULTS / "fetching.json"
KINDS = ("without", "with")


def sweeps(size: int, kind: str) -> dict[str, float]:
    """Milliseconds per sweep of every model, in this process."""
    if kind == "without":
        if "bayesmf.kernels.rows" in sys.modules:
            raise RuntimeError("the kernels have been loaded already, with fetching")
        from bayesmf.kernels import linalg

        linalg.NEAR = 2**62
    from _timing import milliseconds
    from scaling import RANK, matrix

    return milliseconds(matrix(size), MODELS, RANK, 3)


def in_turns(size: int, repeats: int, cache: str) -> dict[str, dict[str, float]]:
    """The shortest times of either kind, each in processes and a kernel cache of its own."""
    runs: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
    for _ in range(repeats):
        for kind, done in runs.items():
            print(f"{size:,} entries, {kind} ...", file=sys.stderr)
            command = [sys.executable, __file__, "--alone", str(size), kind]
            own = os.environ | {"BAYESMF_CACHE": os.path.join(cache, kind)}
            text = subprocess.run(command, env=own, check=True, stdout=subprocess.PIPE).stdout
            done.append(json.loads(text))
    return {
        model: {kind: min(ms[model] for ms in done) for kind, done in runs.items()}
        for model in MODELS
    }


def rows_of(found: dict[str, Any]) -> list[tuple[str, ...]]:
    """The lines of the table."""
    return [
        (model, f"{int(size):,}", f"{ms['without']:.0f}", f"{ms['with']:.0f}",
         f"{ms['with'] / ms['without']:.2f}")
        for size, models in found.items()
        for model, ms in models.items()
    ]  # fmt: skip


def as_markdown(found: dict[str, Any]) -> str:
    """What the docs quote."""
    return markdown_table(list(HEADER), [list(row) for row in rows_of(found["fetching"])])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", metavar="FILE", help="also write all figures to this file")
    parser.add_argument("--readme", action="store_true", help="put the results into the docs")
    parser.add_argument("--alone", nargs=2, metavar=("SIZE", "KIND"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.readme:
        return quote(PAGE, "fetching", as_markdown(json.loads(FOUND.read_text())))
    if args.alone:
        return print(json.dumps(sweeps(int(args.alone[0]), args.alone[1])))
    with tempfile.TemporaryDirectory() as cache:
        found = {str(size): in_turns(size, args.repeats, cache) for size in SIZES}
    print_table(HEADER, rows_of(found))
    facts = machine()
    print_machine(facts)
    write_json(args.json, {"machine": facts, "fetching": found})


if __name__ == "__main__":
    main()
