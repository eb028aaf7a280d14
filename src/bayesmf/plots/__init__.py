"""Pictures of fits and comparisons, drawn with matplotlib (``pip install 'bayesmf[plots]'``).

Every function takes a fitted estimator, or a `Posterior` and, where the data are needed, ``X``; it
draws on ``ax`` or on a new figure, and returns the Axes, or an array of them. They are also the
kinds of ``plot`` of estimators: ``mf.plot("residuals", by="rows")``.
"""

from bayesmf.plots.chains import rank_histograms, traces
from bayesmf.plots.choices import models, rank_curves
from bayesmf.plots.factors import factors, loadings, variance
from bayesmf.plots.matrices import cells, matrix
from bayesmf.plots.quality import calibration, noise, pit, predictive_checks, residuals

__all__ = [
    "calibration", "cells", "factors", "loadings", "matrix", "models", "noise", "pit",
    "predictive_checks", "rank_curves", "rank_histograms", "residuals", "traces", "variance",
]  # fmt: skip
