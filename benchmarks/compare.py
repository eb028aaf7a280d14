"""Whether the recommendation of `bayesmf.compare` is a good one, and how long it takes.

A tenth of the entries is set aside (seed 0). `compare` sees the rest alone, with its default budget
on two processes. Then all models are fitted to the same rest, each with the rank that the
comparison found for it (or, if it was stopped early, had found by then), and judged on the tenth.
The recommended model's error should be within 2 % of the best of all.
"""

from __future__ import annotations

import time
from typing import Any

from bayesmf import compare
from bayesmf.metrics import mse
from bayesmf.splits import holdout
from benchmarks.common import Dataset, facts, load_real, say
from benchmarks.report import Options, claim, table

TOLERANCE, MINUTES = 1.02, 10
DATA = ("ccle", "methylation")
QUICK: dict[str, Any] = {"models": ["GGG", "GEE"], "ranks": [1, 2], "budget": "quick"}


def measure(dataset: Dataset, quick: bool) -> dict[str, Any]:
    """The recommendation for one matrix, and the error of every model on the entries set aside."""
    say(dataset.name)
    train, test = holdout(dataset.X, 0.1, random_state=0)
    begin = time.perf_counter()
    found = compare(train, n_jobs=2, **(QUICK if quick else {}))
    minutes = (time.perf_counter() - begin) / 60
    standings, held = {}, {}
    for standing in found.standings:
        if "baseline" not in standing.status:
            predicted = found.fit(standing.model).predict(test[0], test[1])
            held[standing.model] = mse(test[2], predicted)
            standings[standing.model] = (standing.rank, standing.mse, standing.status)
    best = min(held, key=held.__getitem__)
    ratio = held[found.best_] / held[best]
    return {
        "minutes": minutes, "recommended": found.best_, "rank": found.best_rank_,
        "best": best, "ratio": ratio, "set aside": held,
        "met": ratio <= TOLERANCE and minutes <= MINUTES,
        "recommendation": found.recommendation, "standings": standings,
    }  # fmt: skip


def tables(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Every model's errors, the best on the entries set aside first."""
    made = []
    for name, found in data["compare"].items():
        held, standings = found["set aside"], found.get("standings", {})
        rows = [
            (model, *standings.get(model, (None, None, "-")), held[model])
            for model in sorted(held, key=held.__getitem__)
        ]
        header = ("model", "rank", "cross-validated", "verdict", "set aside")
        title = f"{name}: recommended is {found['recommended']}, {found['minutes']:.1f} minutes"
        made.append(table(title, header, rows, found.get("recommendation", "")))
    return made


def part(options: Options) -> dict[str, Any]:
    """The advice on real matrices, against what every model does on entries set aside."""
    names = options.data or (DATA[:1] if options.quick else DATA)
    datasets = [load_real(name, options.quick) for name in names]
    data = {"compare": {d.name: measure(d, options.quick) for d in datasets}}
    claims = []
    for name, found in data["compare"].items():
        what = f"{name}: error of the recommended model / that of the best ({found['best']})"
        claims.append(claim(what, found["ratio"], "times", most=TOLERANCE))
        claims.append(claim(f"{name}: time of compare", found["minutes"], "min", most=MINUTES))
    return {"claims": claims, "tables": tables(data), "data": data, "datasets": facts(*datasets)}
