"""The oldest versions of the dependencies that pyproject.toml allows, as constraints for pip.

python tests/oldest.py > constraints.txt
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
OPTIONAL = ("data", "plots", "report", "dask", "arviz", "anndata", "excel")
BESIDE = ("pyparsing<3.3",)  # later ones warn of what the oldest matplotlib calls
REQUIREMENT = re.compile(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)$")


def oldest() -> dict[str, str]:
    """Versions by package, of what the package itself and its extras for users need."""
    project = tomllib.loads(PROJECT.read_text())["project"]
    needed = list(project["dependencies"])
    for extra in OPTIONAL:
        needed += project["optional-dependencies"][extra]
    return dict(found.groups() for one in needed if (found := REQUIREMENT.match(one)))


if __name__ == "__main__":
    print(*(f"{name}=={version}" for name, version in oldest().items()), *BESIDE, sep="\n")
