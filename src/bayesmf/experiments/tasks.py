"""Tasks: what a protocol asks for, one by one, each known by the hash of its content.

``paper`` is what the study did, ``sound`` the same questions with shared splits, means of U V^T,
long chains and one grid of ranks. Tasks of a quick budget are some of those of a full one, so that
nothing is ever done twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bayesmf._errors import ModelError, nearest
from bayesmf.experiments import settings
from bayesmf.experiments.published import own_rank
from bayesmf.experiments.settings import BUDGETS, EXPERIMENTS, Budget
from bayesmf.experiments.store import Work

PROTOCOLS = ("paper", "sound")
NARROW = "GLL narrow"  # GLL at the scale that the study really used, beside the stated one
INNER_RANKS = (1, 2, 3, 4, 6, 8, 10, 15)  # of the sound cross-validation


@dataclass(frozen=True)
class Task(Work):
    """One record's worth of work.

    ``setting`` is the rank, the noise ratio or the fraction unobserved, ``rank`` that of the model
    where it is given, ``repeat`` the number of the split, fold or run, ``inner`` the number of
    inner folds that choose the rank.
    """

    experiment: str
    protocol: str
    dataset: str
    model: str
    repeat: int = 0
    setting: float | None = None
    rank: int | None = None
    variant: str = ""
    inner: int = 0

    @property
    def place(self) -> tuple[str, ...]:
        """Folders of the record."""
        return self.protocol, self.experiment, self.dataset

    @property
    def alone(self) -> bool:  # type: ignore[override]
        """Whether nothing may run beside it, because it measures time."""
        return self.experiment == "runtime"

    def __str__(self) -> str:
        parts = [self.protocol, self.experiment, self.dataset, self.variant, self.model]
        parts += [] if self.setting is None else [f"at {self.setting:g}"]
        return " ".join(filter(None, [*parts, f"#{self.repeat}"]))


def expand(
    experiment: str, protocol: str, budget: str = "quick", dataset: str | None = None
) -> list[Task]:
    """All tasks of an experiment, on one of its datasets or on all."""
    settings.check_experiment(experiment)
    for name, known in (("protocol", PROTOCOLS), ("budget", tuple(BUDGETS))):
        value = {"protocol": protocol, "budget": budget}[name]
        if value not in known:
            raise ModelError(f"{name} must be {' or '.join(known)}, got {value!r}.")
    names = list(EXPERIMENTS[experiment])
    if protocol == "sound" and "CCLE_EC50" in names:
        names.insert(names.index("CCLE_EC50") + 1, "CCLE_EC50_clean")
    if dataset is not None:
        names = [dataset]
    make = _MAKERS[experiment]
    return [task for name in names for task in make(protocol, name, BUDGETS[budget])]


def models(protocol: str, averages: bool = True) -> tuple[str, ...]:
    """All methods of a protocol: seventeen, the narrow GLL in the sound one, the averages."""
    found = settings.MODELS
    if protocol == "sound":
        place = found.index("GLL") + 1
        found = (*found[:place], NARROW, *found[place:])
    return (*found, *settings.AVERAGES) if averages else found


def check_models(names: list[str]) -> None:
    """Refuse methods of unknown name."""
    known = models("sound")
    for name in names:
        if name not in known:
            raise ModelError(
                f"Unknown model {name!r}; there are {', '.join(known)}.{nearest(name, known)}"
            )


def _rank(model: str, dataset: str, variant: str) -> int | None:
    if model in settings.AVERAGES:
        return None
    if variant == "perModelK":
        return own_rank(dataset, model.partition(" ")[0])
    if (model, dataset) == ("GEEA", "MovieLens_100K"):
        return 2  # as the study ran it, whatever it says
    return settings.SAME_RANK


def _convergence(protocol: str, dataset: str, budget: Budget) -> Iterator[Task]:
    for model in models(protocol):
        average = model in settings.AVERAGES
        rank = None if average else settings.CONVERGENCE_RANK
        for repeat in range(1 if average else budget.convergence):
            yield Task("convergence", protocol, dataset, model, repeat, rank=rank)


def _runtime(protocol: str, dataset: str, budget: Budget) -> Iterator[Task]:
    for model in models("paper", averages=False):
        for rank in settings.RUNTIME_RANKS:
            yield Task("runtime", protocol, dataset, model, setting=rank, rank=rank)


def _cross_validation(protocol: str, dataset: str, budget: Budget) -> Iterator[Task]:
    for model in models(protocol):
        inner = 0 if model in settings.AVERAGES else budget.inner
        for fold in range(budget.outer):
            yield Task("cross_validation", protocol, dataset, model, fold, inner=inner)


def _noise(protocol: str, dataset: str, budget: Budget) -> Iterator[Task]:
    for variant in settings.VARIANTS.get(("noise", dataset), ("sameK",)):
        for model in models(protocol):
            if dataset == "MovieLens_100K" and model in ("GLL", "GLLI") and protocol == "paper":
                continue
            rank = _rank(model, dataset, variant)
            for ratio in settings.RATIOS:
                for repeat in range(budget.noise):
                    yield Task("noise", protocol, dataset, model, repeat, ratio, rank, variant)


def _sparsity(protocol: str, dataset: str, budget: Budget) -> Iterator[Task]:
    fractions = settings.FRACTIONS.get(dataset, (0.5, 0.7, 0.9))
    for variant in settings.VARIANTS.get(("sparsity", dataset), ("sameK",)):
        for model in models(protocol):
            rank = _rank(model, dataset, variant)
            for fraction in fractions:
                for repeat in range(budget.sparsity):
                    yield Task(
                        "sparsity", protocol, dataset, model, repeat, fraction, rank, variant
                    )


def _model_selection(protocol: str, dataset: str, budget: Budget) -> Iterator[Task]:
    for model in models(protocol, averages=False):
        for rank in settings.RANKS:
            if rank > settings.MOST.get(dataset, 30):
                continue
            for fold in range(budget.folds):
                yield Task("model_selection", protocol, dataset, model, fold, rank, rank)


_MAKERS = {
    "convergence": _convergence,
    "runtime": _runtime,
    "cross_validation": _cross_validation,
    "noise": _noise,
    "sparsity": _sparsity,
    "model_selection": _model_selection,
}
