"""Results as AnnData: the completed matrix and its uncertainty as layers, factors beside them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from bayesmf._errors import DataError, needs
from bayesmf._versions import versions
from bayesmf.posterior.fitted import Fitted

KEY = "bayesmf"


def to_anndata(fitted: Fitted, data: Any = None) -> Any:
    """Layers "completed" and "sd", factors in obsm and varm, settings in uns."""
    try:
        from anndata import AnnData
    except ImportError:
        raise needs("to_anndata", "anndata", "anndata") from None
    X, names = fitted.X.to_array(), fitted.X.names()
    if data is None:
        data = AnnData(X)
        data.obs_names, data.var_names = names
    elif (list(map(str, data.obs_names)), list(map(str, data.var_names))) != names:
        raise DataError("The rows or columns of the AnnData object are not those of the fit.")
    mean, std = fitted.predictive().quantities(None, True, None, True)
    data.layers[f"{KEY}_completed"] = np.where(np.isnan(X), mean, X)
    data.layers[f"{KEY}_sd"] = std
    U, V = (side.mean(axis=0) for side in fitted.posterior.align())
    data.obsm[f"X_{KEY}"], data.varm[KEY] = U, V
    model, settings = fitted.posterior.model, fitted.posterior.settings
    data.uns[KEY] = {
        "model": model.name, "model_in_full": repr(model),
        "n_components": fitted.posterior.n_components, "settings": json.dumps(settings),
        "notes": list(fitted.posterior.notes), "versions": versions(),
    }  # fmt: skip
    return data
