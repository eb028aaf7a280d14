"""Who takes part in a comparison: models, each with its noise, limits, transformation and biases.

A name says all of it, as in "GGGW + noise cols + log + biases", and can be given as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bayesmf._errors import ModelError, nearest
from bayesmf.baselines import BASELINES, spelt
from bayesmf.data.inspection import RATINGS, heaps
from bayesmf.data.observed import ObservedMatrix
from bayesmf.data.units import fit_units
from bayesmf.model.model import Model
from bayesmf.model.presets import (
    COUNTS,
    NONNEGATIVE,
    PRESETS,
    REAL,
    SEMI,
    SUITS,
    as_model,
    known_name,
    lookup,
)

BASE = "GGGW"  # the priors with which likelihoods are tried
NOISES = ("rows", "cols", "both")
TRANSFORMS = ("log", "log1p", "logit", "sqrt", "rank")
OPTIONS_MEAN = {  # in the order in which names have them
    "noise rows": "every row has noise of its own",
    "noise cols": "every column has noise of its own",
    "noise both": "every row and every column has noise of its own",
    "limits": "values at a heaped end of the range stand for all that lie beyond",
    "log": "the logarithm of the values is modelled",
    "log1p": "the logarithm of one more than the values is modelled",
    "logit": "the logit of the values, log(x / (1 - x)), is modelled",
    "sqrt": "the square root of the values is modelled",
    "rank": "the ranks of the values in their column are modelled, as normal quantiles",
    "biases": "an average of all, and what each row and each column adds to it, are beside the "
    "factors",
    "features": "what is known of rows and columns, besides their entries, tells of their factors",
}
BASELINES_MEAN = {
    "NMF": "nonnegative matrix factorisation, without uncertainty",
    "row-average": "every cell is the average of its row",
    "column-average": "every cell is the average of its column",
    "effects": "every cell is an average of all, plus what its row and its column add",
    "grand-average": "every cell is the average of all",
}
RATIO = 3.0  # of the 0.95 and 0.5 quantiles of positive values, from which on ratios are modelled
HIGH = 0.3  # of few different values at the largest, from which on it may be a limit
PRIORS, OPTIONS = 4, 2  # the best of each are tried together

Models = Mapping[str, Model]
End = float | tuple[float, ...] | None  # of the range: of all columns, of each, or not there
Ends = tuple[End, End]


class Entrant(NamedTuple):
    """A model of the table, a baseline, or a model of one's own, with options."""

    model: str
    noise: str | None = None
    limits: bool = False  # values at a heaped end of the range are limits
    transformation: str | None = None
    biases: bool = False
    features: bool = False  # whether priors see what is known of rows and columns

    def __str__(self) -> str:
        parts = [self.model]
        parts += [f"noise {self.noise}"] * (self.noise is not None)
        parts += ["limits"] * self.limits
        parts += [str(self.transformation)] * (self.transformation is not None)
        parts += ["biases"] * self.biases
        return " + ".join([*parts, *(["features"] * self.features)])

    @property
    def options(self) -> Entrant:
        """The same without its model."""
        return self._replace(model="")

    def built(self, own: Models, ends: Ends = (None, None)) -> Model:
        """The model itself."""
        model = own.get(self.model, self.model)
        lower, upper = (as_limit(end) if self.limits else None for end in ends)
        return as_model(model, None, self.biases, self.noise, (lower, upper))


def as_limit(end: End) -> float | np.ndarray | None:
    """A limit as models take it."""
    return np.array(end) if isinstance(end, tuple) else end


def group(name: str, own: Models) -> str:
    """The group of the table in which a model stands; baselines have one of their own."""
    if name in BASELINES:
        return "baseline"
    model = own[name] if name in own else as_model(name, None)
    if model.likelihood.counts:
        return COUNTS
    return (REAL, SEMI, NONNEGATIVE)[sum(model.nonnegative)]


def meaning(names: Iterable[str]) -> dict[str, str]:
    """What the parts of names mean, in words: models, baselines and options, each once."""
    parts = [part for name in names for part in name.split(" + ")]
    models = [part for part in dict.fromkeys(parts) if part not in OPTIONS_MEAN]
    found = {name: BASELINES_MEAN.get(name) or _model_means(name) for name in models}
    found |= {option: words for option, words in OPTIONS_MEAN.items() if option in parts}
    return {name: words for name, words in found.items() if words}


def _model_means(name: str) -> str:
    """What a model is good for; nothing is known of those of one's own."""
    try:
        return f"{SUITS[name[0]]}; good for {lookup(name).good_for}"
    except (ModelError, KeyError):
        return ""


def read(asked: Sequence[str | Model]) -> tuple[list[Entrant], dict[str, Model]]:
    """Entrants of a list of names and models, and the models among them by name."""
    found: list[Entrant] = []
    own: dict[str, Model] = {}
    for one in asked:
        if isinstance(one, Model):
            if one.name in PRESETS and one != as_model(one.name, None):
                one = _renamed(one, own)
            own[one.name] = one
            found.append(Entrant(one.name))
        elif isinstance(one, str):
            found.append(_read(one))
        else:
            raise ModelError(f"models must be names or Models, got {type(one).__name__}.")
    return list(dict.fromkeys(found)), own


def _renamed(model: Model, own: Models) -> Model:
    """A preset with other hyperparameters has its name, but is another model."""
    number = 1 + sum(name.startswith(f"{model.name} (") for name in own)
    return replace(model, name=f"{model.name} (own {number})")


def _read(text: str) -> Entrant:
    """The entrant of a name, in capitals or not, with options after plus signs."""
    name, *options = (part.strip() for part in text.split("+"))
    entrant = Entrant(_known(name))
    for option in options:
        word = option.casefold()
        if word == "biases":
            entrant = entrant._replace(biases=True)
        elif word == "limits":
            entrant = entrant._replace(limits=True)
        elif word == "features":
            entrant = entrant._replace(features=True)
        elif word.removeprefix("noise ") in NOISES:
            entrant = entrant._replace(noise=word.removeprefix("noise "))
        elif word in TRANSFORMS:
            entrant = entrant._replace(transformation=word)
        else:
            known = ", ".join(OPTIONS_MEAN)
            raise ModelError(f"{text}: unknown option {option!r}; there are {known}.")
    return entrant


def _known(name: str) -> str:
    """The name of a model or baseline as it is in the table."""
    if spelt(name) in BASELINES:
        return spelt(name)
    known = known_name(name)
    if any(known[1:] == one[1:] for one in PRESETS):
        lookup(known)  # a letter that does not fit is refused
        return known
    every = (*PRESETS, *BASELINES)
    raise ModelError(
        f"Unknown model {name!r}; there are {', '.join(every)}, and others with the letter of "
        f"another likelihood.{nearest(name, every)}"
    )


def field(X: ObservedMatrix, biases: bool | None, transformation: str | None) -> list[Entrant]:
    """All that suits the data: every prior, and every likelihood with the priors of `BASE`.

    The latter with biases too, unless these are not wanted; if they are, every model that takes
    them. If something is known of rows or columns besides their entries, with that too.
    """
    values = X.rows.values
    found = [Entrant(name) for name in (*PRESETS, *BASELINES)]
    whole = bool((values % 1 == 0).all())
    if whole and (values >= 0).all():
        letter = "B" if np.isin(values, (0, 1)).all() else "N"
        found += [Entrant(letter + name[1:]) for name in ("PGG", "PGGG")]
    options = [Entrant(BASE, noise) for noise in NOISES]
    options += [Entrant("TGGW", noise) for noise in (None, *NOISES)]
    if limits_of(X) != (None, None):
        options += [Entrant(BASE, noise, limits=True) for noise in (None, "cols")]
    if whole and np.unique(values).size <= RATINGS:
        options.append(Entrant("OGGW"))
    if transformation is None:
        options += [
            Entrant(BASE, noise, transformation=name)
            for name in transforms_for(X)
            for noise in (None, "cols")
        ]
    if biases is not False:
        options += [one._replace(biases=True) for one in (Entrant(BASE), *options)]
    if biases:
        options += [one._replace(biases=True) for one in found if _takes_biases(one.model)]
    if X.has_features:
        options += [
            Entrant(BASE, noise, biases=beside, features=True)
            for noise in (None, "cols", "both")
            for beside in ((False,) if biases is False else (False, True))
        ]
    return list(dict.fromkeys([*found, *options]))


def _takes_biases(name: str) -> bool:
    return name in PRESETS and PRESETS[name].likelihood.takes_biases


def limits_of(X: ObservedMatrix) -> Ends:
    """Lower and upper ends of the range at which values heap, as limits may.

    Zeros of counts are none, but counts do not heap at their largest value.
    """
    if X.bounds is not None:
        return None, None
    high = any(heap.side == "upper" for heap in heaps(X, HIGH, ratings=2))
    found = {heap.side: heap.end for heap in heaps(X, ratings=2 if high else RATINGS)}
    counts = bool((X.rows.values >= 0).all() and (X.rows.values % 1 == 0).all())
    lower = None if counts and "upper" not in found else found.get("lower")
    return lower, found.get("upper")


def transforms_for(X: ObservedMatrix) -> list[str]:
    """Transformations that the range of the values suggests."""
    values = X.rows.values
    if X.bounds is not None or X.errors is not None or values.min() < 0:
        return []
    if np.unique(values[:10_000]).size <= RATINGS:
        return []
    found = []
    middle, high = np.quantile(values, [0.5, 0.95])
    if high > RATIO * middle:
        found += ["log" if values.min() > 0 else "log1p", "sqrt"]
    for whole in (1.0, 100.0):
        if 0.9 * whole < values.max() < whole and 0 < values.min() < 0.1 * whole:
            found.append("logit")
    return found


def crossed(best: Sequence[Entrant], base: Entrant) -> list[Entrant]:
    """The best priors with the best options, from entrants in their order, the best first.

    ``base`` is the one with which options were tried.
    """
    plain = [
        one.model for one in best
        if one.options == base.options and one.model in PRESETS and one.model[0] == "G"
    ]  # fmt: skip
    ahead = best[: best.index(base)] if base in best else best  # the rest is no better than none
    options = [one for one in ahead if one.model[1:] == base.model[1:] and one.model[0] in "GT"]
    return [
        one._replace(model=one.model[0] + name[1:])
        for one in options[:OPTIONS]
        for name in plain[:PRIORS]
        if name != base.model
    ]


def forbidden(
    X: ObservedMatrix,
    entrants: Iterable[Entrant],
    own: Models,
    transformation: str | None = None,
    ends: Ends = (None, None),
) -> dict[str, str]:
    """Names of entrants that the data forbid, each with the reason."""
    found = {}
    seen: dict[str | None, bool] = {}
    for one in entrants:
        asked = one.transformation or transformation
        if asked not in seen:
            units = fit_units(X, "none", "none", asked)
            seen[asked] = bool((units.off(X).rows.values < 0).any())
        why = _why_not(X, one, own, asked, seen[asked], ends)
        if why:
            found[str(one)] = why
    return found


def _why_not(
    X: ObservedMatrix, one: Entrant, own: Models, asked: str | None, negative: bool, ends: Ends
) -> str:
    """The reason why an entrant cannot take part, if there is one."""
    values = X.rows.values
    below = "nonnegative factors cannot fit negative values"
    if one.model in BASELINES:
        return below if one.model == "NMF" and (values < 0).any() else ""
    if one.features and not X.has_features:
        return "nothing is known of rows and columns besides their entries"
    if one.limits and ends == (None, None):
        return "no values heap at an end of the range"
    try:
        model = one.built(own, ends)
        if one.features:
            model.informed(X)
    except ModelError as error:
        return str(error)
    likelihood = model.likelihood
    if not likelihood.allowed(values).all():
        return f"the {likelihood.name} likelihood needs {likelihood.needs}"
    if X.bounds is not None and not likelihood.takes_limits:
        return f"the {likelihood.name} likelihood has no use for limits"
    if asked is not None and not likelihood.takes_transforms:
        return f"the {likelihood.name} likelihood has no use for a transformation"
    if one.biases and not likelihood.takes_biases:
        return f"the {likelihood.name} likelihood takes no biases"
    return below if negative and all(model.nonnegative) else ""
