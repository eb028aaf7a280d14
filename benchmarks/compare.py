"""Whether the recommendation of `bayesmf.compare` is a good one, and how long it takes.

    BAYESMF_DATA=... python benchmarks/compare.py [--data ccle,methylation] [--json FILE]

A tenth of the entries is set aside (seed 0). `compare` sees the rest alone, with its default budget
on two processes. Then all sixteen models are fitted to the same rest, each with the rank that the
comparison found for it (or, if it was stopped early, had found by then), and judged on the tenth.
The recommended model's error should be within 2 % of the best of all.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from typing import Any

from _common import load, machine, print_machine, print_table, write_json
from bayesmf import PRESETS, BayesianMF, ConvergenceWarning, compare
from bayesmf.metrics import mse
from bayesmf.splits import holdout

TOLERANCE, MINUTES = 1.02, 10


def errors(train: Any, test: Any, ranks: dict[str, int]) -> dict[str, float]:
    """Error of every model on the entries set aside."""
    found = {}
    for model, rank in ranks.items():
        mf = BayesianMF(
            model, rank, draws=500, burn_in=500, chains=2, random_state=0, n_jobs=2
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found[model] = mse(test[2], mf.fit(train).predict(test[0], test[1]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", default="ccle,methylation")
    parser.add_argument("--json", metavar="FILE", help="also write all figures to this file")
    args = parser.parse_args()
    results: dict[str, Any] = {}
    for name in args.data.split(","):
        dataset = load(name)
        if not dataset.real:
            sys.exit(f"{name}: this needs the real matrix; set BAYESMF_DATA.")
        train, test = holdout(dataset.X, 0.1, random_state=0)
        begin = time.perf_counter()
        found = compare(train, n_jobs=2)
        minutes = (time.perf_counter() - begin) / 60
        standing = {s.model: s for s in found.standings}
        held = errors(train, test, {m: s.rank for m, s in standing.items() if m in PRESETS})
        best = min(held, key=held.__getitem__)
        ratio = held[found.best_model_] / held[best]
        print(f"\n{name}: {minutes:.1f} minutes (at most {MINUTES}); {found.recommendation}")
        print(
            f"On the tenth that it never saw: {held[found.best_model_]:.5g}, "
            f"{ratio:.4f} times the best ({best}, {held[best]:.5g}); at most {TOLERANCE}."
        )
        rows = [
            (m, standing[m].rank, f"{standing[m].mse:.5g}", standing[m].status, f"{held[m]:.5g}")
            for m in sorted(held, key=held.__getitem__)
        ]
        print_table(("model", "rank", "cross-validated", "verdict", "set aside"), rows)
        results[name] = {
            "minutes": minutes, "recommended": found.best_model_, "rank": found.best_rank_,
            "best": best, "ratio": ratio, "set aside": held,
            "met": ratio <= TOLERANCE and minutes <= MINUTES,
        }  # fmt: skip
    facts = machine()
    print_machine(facts)
    write_json(args.json, {"machine": facts, "compare": results})


if __name__ == "__main__":
    main()
