"""DataFrames of any library: numbers and labels out of them, and results back into their kind.

Those of pandas, and of libraries like it, have an index and are read by their own methods. All
others (polars, PyArrow, ...) come and go through narwhals, which is loaded when the first arrives.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bayesmf._errors import DataError

_PANDAS = ("index", "columns", "to_numpy")


class Kind(NamedTuple):
    """What a DataFrame is besides its values: its library, and names of columns and rows."""

    library: Any  # the class of frames with an index, or what narwhals calls a library
    columns: Any
    index: Any

    def frame(self, values: npt.NDArray[np.float64]) -> Any:
        """A DataFrame of this kind with these values (I, J)."""
        if self.index is not None:
            return self.library(values, index=self.index, columns=self.columns)
        import narwhals as nw

        return nw.from_numpy(values, self.columns, backend=self.library).to_native()


def is_frame(X: Any) -> bool:
    """Whether it is a DataFrame."""
    return hasattr(type(X), "columns")  # of the class: a lazy frame would be looked through


def has_index(X: Any) -> bool:
    """Whether it is a DataFrame of pandas, or one like it."""
    return all(hasattr(X, name) for name in _PANDAS)


def kind_of(X: Any) -> Kind | None:
    """The kind of a DataFrame; None of anything else."""
    if not is_frame(X):
        return None
    if has_index(X):
        return Kind(type(X), X.columns, X.index)
    frame = _wrapped(X)
    return Kind(frame.implementation, list(frame.columns), None)


def labels(X: Any) -> tuple[Any, Any]:
    """Labels of rows and columns; none of rows if some are repeated, or there is no index."""
    if not has_index(X):
        return None, list(_wrapped(X).columns)
    return (X.index if X.index.is_unique else None), X.columns


def numbers(X: Any) -> npt.NDArray[np.float64]:
    """The values (I, J) of a DataFrame without an index, NaN where missing."""
    import narwhals as nw

    frame = _wrapped(X)
    columns = [frame[name].cast(nw.Float64()).to_numpy() for name in frame.columns]
    return np.column_stack(columns) if columns else np.empty((len(frame), 0))


def refuse_text(X: Any) -> None:
    """Refuse columns that hold categories, texts or dates, by name."""
    bad = _with_index(X) if has_index(X) else _without_index(X)
    if not bad:
        return
    names = ", ".join(map(repr, list(bad)[:8])) + (", ..." if len(bad) > 8 else "")
    one = len(bad) == 1
    what = ", ".join(dict.fromkeys(bad.values()))
    raise DataError(
        f"{'Column' if one else 'Columns'} {names} {'holds' if one else 'hold'} {what}, not "
        f"numbers; leave {'it' if one else 'them'} out, or code {'it' if one else 'them'} as "
        "numbers."
    )


def _with_index(X: Any) -> dict[Any, str]:
    bad = {}
    for j, (name, dtype) in enumerate(zip(X.columns, X.dtypes, strict=True)):
        kind = getattr(dtype, "kind", "O")
        if str(dtype) == "category":
            bad[name] = "categories"
        elif kind in "mM":
            bad[name] = "dates"
        elif kind not in "biufc":
            known = X.iloc[:, j].dropna()
            texts = [isinstance(value, str) for value in known]
            if any(texts) and all(texts):
                bad[name] = "text"
            elif any(texts):
                k = texts.index(True)
                row = known.index[k : k + 1].tolist()[0]
                raise DataError(
                    f"row {row!r}, column {name!r} holds {known.iloc[k]!r}, which is "
                    "not a number; correct it, or use NaN for a missing entry."
                )
    return bad


def _without_index(X: Any) -> dict[Any, str]:
    import narwhals as nw

    words = {
        nw.Categorical: "categories", nw.Enum: "categories", nw.String: "text",
        nw.Date: "dates", nw.Datetime: "dates", nw.Duration: "dates", nw.Time: "dates",
    }  # fmt: skip
    return {
        name: word
        for name, dtype in _wrapped(X).schema.items()
        for kind, word in words.items()
        if isinstance(dtype, kind)
    }


def _wrapped(X: Any) -> Any:
    import narwhals as nw

    try:
        return nw.from_native(X, eager_only=True)
    except TypeError:
        raise DataError(
            f"A {type(X).__name__} cannot be read; collect it, or make it a DataFrame of pandas or "
            "polars."
        ) from None
