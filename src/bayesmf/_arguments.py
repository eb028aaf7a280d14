"""Arguments of public functions: what each may be, by its name, said and checked in one place.

A name means the same wherever it stands. A rule returns the value to go on with, or raises a
`ModelError`; what depends on the data or on other arguments is checked where it is used.
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from numbers import Integral, Real
from typing import Any, TypeVar

from bayesmf._errors import ModelError, whole_number

F = TypeVar("F", bound=Callable[..., Any])
Rule = Callable[[str, Any], Any]
_MOST = 2**31 - 1


def checked(function: F) -> F:
    """Check the arguments of a function by `RULES` before it is called."""
    signature = inspect.signature(function)

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        try:
            bound = signature.bind(*arguments, **named)
        except TypeError:
            return function(*arguments, **named)  # Python says what is wrong
        bound.arguments.update(check(bound.arguments))
        return function(*bound.args, **bound.kwargs)

    return call  # type: ignore[return-value]


def check(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by name, as `RULES` would have them; those without a rule are left out."""
    return {name: RULES[name](name, value) for name, value in arguments.items() if name in RULES}


def _refuse(name: str, what: str, value: Any) -> ModelError:
    text = repr(value)
    return ModelError(
        f"{name} must be {what}, got {text if len(text) < 80 else text[:77] + '...'}."
    )


# --- Kinds --------------------------------------------------------------------------------------


def _whole(least: int) -> Rule:
    def rule(name: str, value: Any) -> Any:
        if whole_number(name, value, least) > _MOST:
            raise ModelError(f"{name} must be at most {_MOST}, got {value!r}.")
        return int(value)

    return rule


def _share(name: str, value: Any) -> Any:
    if not _is_number(value) or not 0 < value < 1:
        raise ModelError(f"{name} must lie between 0 and 1, not {value!r}.")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def _is(what: str, test: Callable[[Any], bool]) -> Rule:
    def rule(name: str, value: Any) -> Any:
        if not test(value):
            raise _refuse(name, what, value)
        return value

    return rule


def _optional(rule: Rule) -> Rule:
    return lambda name, value: None if value is None else rule(name, value)


def _has(*attributes: str) -> Callable[[Any], bool]:
    return lambda value: all(hasattr(value, name) for name in attributes)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_name(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_flag(value: Any) -> bool:
    plain = isinstance(value, Integral) and value in (0, 1)
    return plain or (_has("dtype", "item")(value) and value.shape == () and value.dtype == bool)


def _is_path(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike)) and bool(str(value)) and "\0" not in str(value)


def _is_iterable(value: Any) -> bool:
    plain = isinstance(value, Iterable) and not isinstance(value, (str, bytes))
    return plain and getattr(value, "ndim", 1) == 1


def _is_sequence(value: Any) -> bool:
    """Whether something has items in an order."""
    return _is_iterable(value) and not isinstance(value, (set, frozenset))


def _are(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Whether all items are of a kind; those of an iterator are not looked at."""
    return lambda value: (
        _is_iterable(value) and (not hasattr(value, "__len__") or all(map(test, value)))
    )


def _either(*tests: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: any(test(value) for test in tests)


def _numbers(name: str, value: Any) -> Any:
    """A number, or anything that NumPy reads as numbers."""
    import numpy as np

    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise _refuse(name, "a number or an array of numbers", value) from None
    return float(array) if isinstance(value, Real) else value


def _seed(name: str, value: Any) -> Any:
    import numpy as np

    kinds = (np.random.Generator, np.random.SeedSequence, np.random.RandomState)
    several = _is_sequence(value) and not isinstance(value, Mapping)
    words = list(value) if several else [value]
    whole = all(isinstance(x, Integral) and int(x) >= 0 and x is not True for x in words)
    if value is None or isinstance(value, kinds) or (whole and words):
        return value
    if isinstance(value, Integral) and int(value) < 0:
        raise ModelError(f"{name} must not be negative, got {value!r}.")
    what = "None, a whole number of at least 0, a numpy Generator or a SeedSequence"
    raise _refuse(name, what, value)


def _rank(name: str, value: Any) -> Any:
    if _is_text(value):
        return value  # a way to find it
    return _ranks(name, value) if _is_sequence(value) else _whole(1)(name, value)


def _ranks(name: str, value: Any) -> Any:
    if not _is_sequence(value):
        raise _refuse(name, "several whole numbers", value)
    for rank in value:
        _whole(1)(name, rank)
    return value


def _pair(name: str, value: Any) -> Any:
    if not _are(lambda size: isinstance(size, Integral))(value):
        raise _refuse(name, "two whole numbers", value)
    return tuple(value)


# --- Rules --------------------------------------------------------------------------------------

_text = _is("a text", _is_text)
_flag = _is("True or False", _is_flag)
_path = _is("the path of a file or folder", _is_path)
_model = _either(_is_text, _has("likelihood", "rows", "cols"))
_settings = _is(
    "a dictionary of values by name",
    lambda value: isinstance(value, Mapping) and all(map(_is_text, value)),
)
_labels = _is("a sequence of labels", _either(_is_text, _is_sequence))
_posterior = _has("states", "draws", "settings")

RULES: dict[str, Rule] = {
    **dict.fromkeys(("draws", "thin", "chains", "iterations", "m", "n_cells"), _whole(1)),
    **dict.fromkeys(("burn_in", "number"), _whole(0)),
    **dict.fromkeys(("scale_move", "keep_singles", "return_std", "include_noise"), _flag),
    **dict.fromkeys(("latent", "single"), _flag),
    **dict.fromkeys(("center", "scale", "by", "labels", "method", "budget"), _text),
    **dict.fromkeys(("noise", "until", "dask"), _optional(_text)),
    **dict.fromkeys(("path", "source"), _path),
    **dict.fromkeys(("fraction", "level"), _share),
    **dict.fromkeys(("lower", "upper", "quantiles"), _optional(_numbers)),
    **dict.fromkeys(("low", "high"), _numbers),
    **dict.fromkeys(("row_labels", "col_labels"), _optional(_labels)),
    "n_components": _rank,
    "ranks": _optional(_ranks),
    "n_folds": _is("a whole number", _is_number),
    "folds": _optional(_whole(2)),
    "screen": _optional(_whole(1)),
    "unit": _is("a positive number", _is_number),
    "shape": _optional(_pair),
    "random_state": _seed,
    "store": _optional(_path),
    "hyperparameters": _optional(_settings),
    "biases": _optional(_is("True, False or Biases", _either(_is_flag, _has("variables")))),
    "progress": _is("True, False or a function", _either(_is_flag, callable)),
    "init": _is("'data', 'prior' or a Posterior", _either(_is_text, _posterior)),
    "keep": _is("a name or several names of variables", _either(_is_text, _are(_is_text))),
    "long": _optional(_is("three names of columns", _either(_is_text, _are(_is_text)))),
    "model": _is("the name of a model, or a Model", _model),
    "models": _optional(_is("names of models, or Models", _either(_model, _are(_model)))),
    "name": _text,
    "transformation": _optional(
        _is(
            "a name, one for each column, or a dictionary of columns",
            _either(_is_text, lambda value: isinstance(value, Mapping), _are(_is_name)),
        )
    ),
    "posterior": _is("a Posterior", _posterior),
    "problem": _is("a Problem", _has("X", "model", "side")),
    "state": _optional(_is("a State", _has("U", "V", "seed"))),
    "parts": _is("a list of classes", _are(lambda value: isinstance(value, type))),
}
