"""What the study did, as data: models, lengths of chains, ranks, volume strengths, repeats.

Found in the paper and in what its authors published with it. Lengths are (sweeps, burn-in,
thin), for NMF the number of iterations; a key of words is for the models named, "" for the rest.
"""

from __future__ import annotations

from typing import NamedTuple

from bayesmf._errors import ModelError
from bayesmf.presets import PAPER

MODELS = (*PAPER, "NMF")  # the seventeen methods
AVERAGES = ("row_average", "column_average")
BASELINES = ("NMF", *AVERAGES)

EXPERIMENTS = {
    "convergence": ("GDSC", "MovieLens_100K"),
    "runtime": ("GDSC", "MovieLens_100K"),
    "cross_validation": (
        "GDSC", "CTRP", "CCLE_IC50", "CCLE_EC50", "MovieLens_100K", "MovieLens_1M",
        "Methylation_GM", "Methylation_PM",
    ),
    "noise": ("GDSC", "Methylation_GM", "MovieLens_100K"),
    "sparsity": ("GDSC", "Methylation_GM", "MovieLens_100K"),
    "model_selection": ("GDSC", "CCLE_IC50", "Methylation_GM", "MovieLens_100K"),
}  # fmt: skip


class Length(NamedTuple):
    """Sweeps in all, of which the first are not kept, and of the others every so many."""

    sweeps: int
    burn_in: int = 0
    thin: int = 1


class Budget(NamedTuple):
    """How often things are repeated; ``inner`` folds of five are used to choose a rank."""

    convergence: int
    outer: int
    inner: int
    noise: int
    sparsity: int
    folds: int


BUDGETS = {
    "quick": Budget(convergence=1, outer=2, inner=1, noise=1, sparsity=1, folds=1),
    "full": Budget(convergence=10, outer=5, inner=5, noise=10, sparsity=10, folds=10),
}

RATIOS = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)  # noise variance over variance of the data
FRACTIONS = {  # of the whole matrix that is not observed
    "GDSC": (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
    "Methylation_GM": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99),
    "MovieLens_100K": (0.93, 0.94, 0.95, 0.96, 0.97, 0.98),
}
RANKS = (1, 2, 3, 4, 6, 8, 10, 15, 20, 30)
MOST = {"MovieLens_100K": 15}  # largest rank of the model selection
RUNTIME_RANKS = (5, 10, 20, 50)
CONVERGENCE_RANK, CONVERGENCE_SWEEPS = 20, 200
SAME_RANK = 5
VARIANTS = {  # same rank for all, or each model's own: those that the study ran
    ("noise", "GDSC"): ("sameK", "perModelK"),
    ("noise", "Methylation_GM"): ("perModelK",),
    ("noise", "MovieLens_100K"): ("perModelK",),
    ("sparsity", "GDSC"): ("sameK", "perModelK"),
    ("sparsity", "Methylation_GM"): ("sameK", "perModelK"),
    ("sparsity", "MovieLens_100K"): ("sameK", "perModelK"),
}

_DATASETS = (
    "GDSC", "CTRP", "CCLE_IC50", "CCLE_EC50", "MovieLens_100K", "MovieLens_1M", "Methylation_GM",
    "Methylation_PM",
)  # fmt: skip
_RANGES = """
GGG  5-8   3-6 3-7  1-3 1-3 3-7   1-7  1-7
GGGU 4-7   2-7 3-7  1-3 1-3 1-4   1-7  1-7
GGGA 9-12  4-7 3-7  1-3 1-5 7-10  1-7  1-7
GGGW 14-17 4-9 4-8  1-3 1-7 12-14 5-10 2-6
GLL  7-11  4-7 3-7  1-3 1-3 6-8   1-7  1-7
GLLI 7-11  4-7 3-7  1-3 1-3 7-9   1-7  1-7
GVG  9-11  3-6 4-7  2-3 2-4 2-4   1-5  1-5
GEE  6-9   4-7 3-7  1-3 1-3 7-10  1-7  1-7
GEEA 8-12  5-8 3-7  1-3 1-5 7-10  1-7  1-7
GTT  7-12  4-8 3-7  1-3 1-3 7-11  1-7  1-7
GTTN 6-10  4-8 3-7  1-3 1-3 7-11  1-7  1-7
GL21 5-8   4-7 3-7  1-3 1-3 7-9   1-7  1-7
GEG  6-9   3-7 3-7  1-3 1-3 3-7   1-7  1-7
GVnG 10-12 5-8 4-7  2-3 1-3 1-3   1-5  1-5
PGG  3-5   1-3 9-14 1-3 1-3 1-3   1-7  1-7
PGGG 4-6   1-3 9-14 1-3 1-3 1-3   1-7  1-7
NMF  3-7   1-3 1-3  1-3 1-2 2-4   1-5  1-5
"""


def _ranges() -> dict[tuple[str, str], tuple[int, ...]]:
    found = {}
    for line in _RANGES.split("\n"):
        model, *parts = line.split() or [""]
        for dataset, part in zip(_DATASETS, parts, strict=False):
            low, high = map(int, part.split("-"))
            found[model, dataset] = tuple(range(low, high + 1))
    return found


CANDIDATES = _ranges()  # ranks among which the study's cross-validation chose

_VOLUME = "GVG GVnG"
_LAPLACE = "GLL GLLI"
_THREE = "GL21 GLL GLLI"
_CCLE = {"": (250, 200), _VOLUME: (150, 100), "NMF": (500,)}
_METHYLATION = {"": (220, 200), _VOLUME: (120, 100), "NMF": (1000,)}
_DRUGS = {"": (200, 180), _THREE: (250, 200), _VOLUME: (100, 80), "NMF": (500,)}
_OWN = {"": (250, 200, 2), _VOLUME: (120, 100)}
_LENGTHS: dict[tuple[str, ...], dict[str, tuple[int, ...]]] = {
    ("cross_validation", "GDSC"): _DRUGS,
    ("cross_validation", "CTRP"): _DRUGS,
    ("cross_validation", "CCLE_IC50"): {**_CCLE, "PGG PGGG": (500, 400)},
    ("cross_validation", "CCLE_EC50"): _CCLE,
    ("cross_validation", "MovieLens_100K"): {"": (200, 180), _VOLUME: (100, 80), "NMF": (300,)},
    ("cross_validation", "MovieLens_1M"): {
        "": (120, 100), "GLL GLLI GVnG": (100, 80), "GVG": (70, 50), "NMF": (200,),
    },
    ("cross_validation", "Methylation_GM"): _METHYLATION,
    ("cross_validation", "Methylation_PM"): _METHYLATION,
    ("sparsity", "GDSC", "sameK"): {
        "": (250, 200), "GGGW": (250, 200, 2), _VOLUME: (120, 100), "NMF": (1000,),
    },
    ("sparsity", "Methylation_GM", "sameK"): {"": (500, 450), _VOLUME: (200, 150), "NMF": (1000,)},
    ("sparsity", "MovieLens_100K", "sameK"): {
        "": (250, 200), "GEEA": (250, 200, 2), _VOLUME: (150, 100), "NMF": (500,),
    },
    ("sparsity", "GDSC", "perModelK"): {**_OWN, _THREE: (250, 200), "NMF": (1000,)},
    ("sparsity", "Methylation_GM", "perModelK"): {**_OWN, "NMF": (500,)},
    ("sparsity", "MovieLens_100K", "perModelK"): {**_OWN, "NMF": (20,)},
    ("noise", "GDSC"): {**_OWN, _THREE: (250, 200), "NMF": (1000,)},
    ("noise", "Methylation_GM"): {**_OWN, "PGG PGGG": (150, 100, 2), "NMF": (1000,)},
    ("noise", "MovieLens_100K"): {
        "": (100, 80), "GEE GEEA GL21": (250, 200, 2), "GVG GVnG PGG PGGG": (70, 50), "NMF": (20,),
    },
    ("model_selection", "GDSC"): {
        "": (200, 180, 2), _LAPLACE: (250, 200), _VOLUME: (100, 90), "NMF": (1000,),
    },
    ("model_selection", "CCLE_IC50"): _CCLE,  # not in the study: its cross-validation's
    ("model_selection", "Methylation_GM"): {"": (500, 450), _VOLUME: (200, 180), "NMF": (2000,)},
    ("model_selection", "MovieLens_100K"): {"": (200, 180), _VOLUME: (100, 80), "NMF": (300,)},
    ("runtime", "GDSC"): {"": (100,), "GVG GVnG GTTN": (10,)},
    ("runtime", "MovieLens_100K"): {"": (10,), "PGG PGGG": (20,), "NMF": (100,)},
}  # fmt: skip

_GAMMA = {  # strength of the volume prior as printed, by experiment
    "cross_validation": {
        "GDSC": 1e-30, "CTRP": 1e-20, "CCLE_IC50": 1e-10, "CCLE_EC50": 1e-10,
    },
    "model_selection": {"GDSC": 1e-30, "CCLE_IC50": 1e-10},
    "sparsity sameK": {"GDSC": 1e-30},
    "sparsity perModelK": {"GDSC": 1e-30, "MovieLens_100K": 1e-30},
    "noise": {"GDSC": 1e-30, "MovieLens_100K": 1e-30},
    "convergence": {"GDSC": 1e-50, "MovieLens_100K": 1e-50},
    "runtime": {"GDSC": 1e-50, "MovieLens_100K": 1e-50},
}  # fmt: skip


def length(experiment: str, dataset: str, variant: str, model: str) -> Length:
    """How long the study ran a model."""
    if experiment == "convergence":
        return Length(CONVERGENCE_SWEEPS)
    table = _LENGTHS.get((experiment, dataset)) or _LENGTHS.get((experiment, dataset, variant))
    if table is None:  # a matrix that the study did not have: as its cross-validation of GDSC
        table = _DRUGS
    for names, found in table.items():
        if model in names.split():
            return Length(*found)
    return Length(*table[""])


def gamma(experiment: str, dataset: str, variant: str = "") -> float:
    """Strength of the volume prior as the study printed it; 1 where it names none."""
    table = _GAMMA.get(experiment) or _GAMMA.get(f"{experiment} {variant}") or {}
    return table.get(dataset.removesuffix("_clean"), 1.0)


def check_experiment(name: str) -> None:
    """Refuse an experiment of unknown name."""
    if name not in EXPERIMENTS:
        raise ModelError(f"Unknown experiment {name!r}; there are {', '.join(EXPERIMENTS)}.")
