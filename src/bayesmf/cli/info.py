"""Commands that tell what there is."""

from __future__ import annotations

import argparse
import json
from typing import Any

from bayesmf.cli.tools import command


def add(commands: Any) -> None:
    """Add the commands of this module."""
    parser = command(
        commands,
        "datasets",
        _datasets,
        "list the known matrices and whether they are here",
        "Matrices are looked for in the folder that BAYESMF_DATA names, then in the cache.",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def _datasets(options: argparse.Namespace) -> int:
    from bayesmf.datasets import CATALOGUE, present

    rows = []
    for name, entry in CATALOGUE.items():
        n, m = entry.shape
        rows.append(
            {
                "name": name,
                "rows": n,
                "columns": m,
                "observed": entry.n_observed / (n * m),
                "present": present(name),
                "title": entry.title,
                "licence": entry.licence,
                "source": entry.source,
            }
        )
    if options.json:
        print(json.dumps(rows, indent=1))
        return 0
    for row in rows:
        here = "here  " if row["present"] else "absent"
        print(
            f"{row['name']:17} {row['rows']:5} x {row['columns']:<5} {row['observed']:6.1%}  "
            f"{here}  {row['title']}"
        )
        print(f"{'':17} {row['source']}")
    return 0
