"""What a second chain costs: two chains on two cores against one chain on one core.

    python benchmarks/chains.py [--repeats 15] [--json FILE]
    python benchmarks/chains.py --readme

Chains run side by side on threads; kernels run without Python's lock. Both runs of a pair are made
in turns, and the shortest of each is compared, on GDSC's IC50 matrix (or one like it where the data
is absent: set BAYESMF_DATA). ``--readme`` runs nothing, and puts ``results/chains.json`` into
docs/performance.md.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from _common import load, machine, print_machine, print_table, write_json
from _report import PAGE, RESULTS, markdown_table, quote
from bayesmf import ObservedMatrix, sample

MODELS = ("GGGA", "GGGW", "GEE", "GVG", "PGG")
RANK, SWEEPS, TARGET = 10, 200, 1.3
HEADER = ("model", "one chain, s", "two chains, s", "ratio")
FOUND = RESULTS / "chains.json"


def seconds(X: ObservedMatrix, model: str, chains: int) -> float:
    """Time of a run with as many threads as chains."""
    begin = time.perf_counter()
    sample(
        X, model, RANK, draws=SWEEPS // 2, burn_in=SWEEPS // 2, chains=chains, n_jobs=chains,
        random_state=0, cells=([0], [0]),
    )  # fmt: skip
    return time.perf_counter() - begin


def rows_of(results: dict[str, Any]) -> list[tuple[str, ...]]:
    """The lines of the table."""
    return [
        (m, f"{r['one']:.3f}", f"{r['two']:.3f}", f"{r['ratio']:.2f}") for m, r in results.items()
    ]


def as_markdown(found: dict[str, Any]) -> str:
    """What the docs quote."""
    return markdown_table(list(HEADER), [list(row) for row in rows_of(found["chains"])])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--json", metavar="FILE", help="also write all figures to this file")
    parser.add_argument("--readme", action="store_true", help="put the results into the docs")
    args = parser.parse_args()
    if args.readme:
        return quote(PAGE, "chains", as_markdown(json.loads(FOUND.read_text())))
    dataset = load("gdsc")
    results = {}
    for model in MODELS:
        seconds(dataset.X, model, 2)  # compiles
        times = [[seconds(dataset.X, model, n) for n in (1, 2)] for _ in range(args.repeats)]
        one, two = (min(column) for column in zip(*times, strict=True))
        results[model] = {"one": one, "two": two, "ratio": two / one}
    print(f"{dataset.name}, K = {RANK}, {SWEEPS} sweeps; target: at most {TARGET}")
    print_table(HEADER, rows_of(results))
    facts = machine()
    print_machine(facts)
    write_json(args.json, {"machine": facts, "target": TARGET, "chains": results})


if __name__ == "__main__":
    main()
