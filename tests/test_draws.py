"""The table of draws: what a seed gave once, it gives for ever.

Every line of ``draws.json`` is a short run: a hash of all that it drew, and one number made of the
same draws. Hashes depend on the processor and on the versions of the libraries that compile and
sum, so the table names those under which it was made: there every bit must agree. Elsewhere sums
are rounded in another order, and the number must agree to a millionth; where rows are reflected by
walls, to a twentieth.

A change that means to alter draws makes the table anew, in a commit that says why:
``python tests/test_draws.py``.
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayesmf import (
    ARD,
    BASELINES,
    L21,
    PRESETS,
    BayesianImputer,
    BayesianMF,
    BernoulliPoisson,
    Biases,
    Censored,
    ConvergenceWarning,
    Exponential,
    Gamma,
    GammaRate,
    Gaussian,
    InverseGaussian,
    Laplace,
    Model,
    MultivariateNormal,
    NegativeBinomial,
    Normal,
    NormalInverseWishart,
    ObservedMatrix,
    Ordinal,
    Poisson,
    Posterior,
    StudentT,
    TruncatedNormal,
    TruncatedNormalHyper,
    Volume,
    baseline,
    preset,
    sample,
)
from bayesmf.likelihoods import Likelihood
from bayesmf.priors import Horseshoe

TABLE = Path(__file__).with_name("draws.json")
CLOSE = 1e-6  # for other processors and libraries: runs are short, so that rounding stays small
LOOSE = 0.05  # where rows are reflected by walls, which make much of rounding
REFLECTED = ("GE", "GT", "GL21", "GVnG", "exponential", "L21", "trunc", "two families")

Result = Iterable[np.ndarray]


def environment() -> dict[str, str]:
    """What the last bits of a draw depend on."""
    import llvmlite.binding

    features = llvmlite.binding.get_host_cpu_features()
    vectors = [name for name in ("avx2", "fma", "avx512f") if features.get(name)]
    known = {
        "processor": llvmlite.binding.get_host_cpu_name(),
        "vectors": " ".join(vectors),
        "system": platform.system(),
    }
    libraries = ("numpy", "scipy", "numba", "llvmlite", "scikit-learn")
    return known | {name: metadata.version(name) for name in libraries}


def counts(shape: tuple[int, int], density: float, seed: int, empty: bool = False) -> np.ndarray:
    """Counts with NaN for missing: data that every model accepts."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(rng.gamma(2.0, 1.0, (shape[0], 3)) @ rng.gamma(1.0, 1.0, (3, shape[1])))
    X = np.where(rng.random(shape) < density, X, np.nan)
    if empty:
        X[3], X[:, 2] = np.nan, np.nan
    X[0, 0] = 3.0
    return X


DATA = {
    "sparse": (counts((40, 30), 0.2, 1, empty=True), 3),
    "dense": (counts((30, 20), 0.7, 2, empty=True), 9),
    "complete": (counts((14, 11), 1.0, 3), 2),
}
FEW_COLUMNS = counts((30, 6), 0.8, 4)  # a volume prior of rank 5 is improper here
NEW = counts((7, 20), 0.5, 5)
SHORT = {"draws": 3, "burn_in": 2, "chains": 2, "random_state": 7}
PLAIN = {**SHORT, "center": "none", "scale": "none"}  # estimators, in the units of the data


def run(X: Any, model: Any, K: int, **options: Any) -> Result:
    """All that a run draws."""
    return drawn(sample(X, model, K, **{**SHORT, "keep": "all", **options}))


def drawn(posterior: Posterior) -> Result:
    arrays = [posterior.draws[name] for name in sorted(posterior.draws)]
    last = [v for state in posterior.states for _, v in sorted(state.variables().items())]
    return [*arrays, posterior.mean, posterior.variance, posterior.train_mse, *last]


@cache
def fitted(name: str, biases: bool = False) -> BayesianMF:
    X, _ = DATA["dense"]
    return BayesianMF(name, 3, biases=biases, **PLAIN).fit(X)


def of_new_rows(name: str, biases: bool) -> Result:
    mf = fitted(name, biases)
    return [*mf.predict(NEW, return_std=True, quantiles=[0.1, 0.9]), mf.transform(NEW)]


def predictions(name: str, biases: bool) -> Result:
    mf, cells = fitted(name, biases), (np.array([0, 5, 9]), np.array([1, 0, 19]))
    return [
        *mf.predict(return_std=True, quantiles=[0.05, 0.5, 0.95]),
        *mf.predict(*cells, return_std=True, quantiles=[0.25], include_noise=False),
        mf.sample_predictive(2),
        mf.log_density(*cells, [1.0, 0.0, 4.0]),
        np.array(mf.score(NEW)),
        mf.components_,
        *mf.posterior_.align(),
        mf.posterior_.predict(method="product_of_means") if not biases else np.zeros(1),
    ]


def imputations(name: str, **options: Any) -> Result:
    X, _ = DATA["dense"]
    imputer = BayesianImputer(name, 3, **{**PLAIN, **options})
    return [imputer.fit_transform(X), imputer.impute(3), imputer.transform(NEW)]


def ranks(name: str, n_components: Any) -> Result:
    X, _ = DATA["complete"]
    mf = BayesianMF(name, n_components, **PLAIN).fit(X)
    return [np.array([mf.n_components_, mf.effective_rank_]), *drawn(mf.posterior_)]


def on_and_on() -> Result:
    X, K = DATA["dense"]
    first = sample(X, "GGGA", K, keep="all", **SHORT)
    return drawn(sample(X, "GGGA", K, keep="all", **{**SHORT, "init": first, "burn_in": 0}))


def nmf(X: Any, K: int) -> Result:
    found = baseline(X, "NMF", K, iterations=5, random_state=7)
    return [found.U, found.V, found.train_mse]


CUSTOM = {
    "exponential ARD, Laplace": Model(Gaussian(2, 0.5), Exponential(ARD(2, 3)), Laplace(0.8)),
    "two ARDs": Model(Gaussian(), *2 * [Normal(ARD(1, 2, shared=False))]),
    "one ARD, two families": Model(
        Gaussian(), Exponential(ARD(2, 0.5)), Normal(ARD(2, 0.5), "entries")
    ),
    "Wishart, L21": Model(
        Gaussian(), MultivariateNormal(NormalInverseWishart(beta=0.3, scale=2.0)), L21(0.4)
    ),
    "Wishart mean, truncated mean": Model(
        Gaussian(), MultivariateNormal(NormalInverseWishart(mean=0.8)), TruncatedNormal(0.7, 0.5)
    ),
    "eta, truncation": Model(
        Gaussian(),
        Laplace(InverseGaussian(2.0, 3.0, "rate")),
        TruncatedNormal(0.0, TruncatedNormalHyper(0.0, 0.3, 1.7, 0.6)),
    ),
    "horseshoe, volume": Model(Gaussian(), Horseshoe(2.0), Volume(gamma=0.02)),
    "volume, exponential": Model(
        Gaussian(), Volume(gamma=0.02, signs="nonnegative"), Exponential(0.4)
    ),
    "counts": Model(Poisson(), Exponential(0.5), Gamma(2.0, GammaRate(1.5, 0.4))),
    "counts, one ARD": Model(Poisson(), Gamma(0.7, ARD(1, 2)), Exponential(ARD(1, 2))),
}

# Likelihoods other than a preset's own, beside a prior of every kernel: rows, entries, volume.
NORMAL = {
    "rows": Gaussian(rows=True),
    "cols": Gaussian(cols=True),
    "both": Gaussian(rows=True, cols=True),
    "Student": StudentT(),
    "Student both": StudentT(rows=True, cols=True),
    "censored": Censored(1, 6),
    "censored Student cols": Censored(1, 6, noise=StudentT(cols=True)),
    "ordinal": Ordinal(),
}
KERNELS = ("GGGW", "GEE", "GVG")
COUNTED = {"negative binomial": NegativeBinomial(), "presence": BernoulliPoisson()}


def changed(name: str, likelihood: Likelihood) -> Model:
    return replace(preset(name), likelihood=likelihood)


def suited(X: np.ndarray, likelihood: Likelihood) -> np.ndarray:
    """The counts, or few categories of them, or whether there are any."""
    most = {"ordinal": 4.0, "Bernoulli-Poisson": 1.0}.get(likelihood.name, np.inf)
    return np.minimum(X, most)


def of_likelihood(likelihood: Likelihood, name: str, biases: bool) -> Result:
    """A fit, its predictions and those of new rows."""
    X, _ = DATA["dense"]
    mf = BayesianMF(changed(name, likelihood), 3, biases=biases, **PLAIN)
    mf.fit(suited(X, likelihood))
    new = suited(NEW, likelihood)
    return [
        *drawn(mf.posterior_),
        *mf.predict(return_std=True, quantiles=[0.1, 0.9]),
        *mf.predict(new, return_std=True),
        mf.sample_predictive(2),
        mf.log_density([0, 5], [1, 0], [1.0, 0.0]),
    ]


def with_errors() -> Result:
    X, K = DATA["dense"]
    errors = np.random.default_rng(8).uniform(0.5, 2.0, X.shape)
    mf = BayesianMF("GGGW", K, biases=True, noise="cols", **PLAIN).fit(X, errors=errors)
    return [*drawn(mf.posterior_), *mf.predict(return_std=True)]


def of_likelihoods() -> dict[str, Callable[[], Result]]:
    """The lines of the other likelihoods."""
    found: dict[str, Callable[[], Result]] = {}
    pairs = [(n, like, name) for n, like in NORMAL.items() for name in KERNELS]
    pairs += [(n, like, name) for n, like in COUNTED.items() for name in ("PGG", "PGGG")]
    for title, like, name in pairs:
        for where in ("sparse", "complete"):
            X, K = DATA[where]
            found[f"{name} {title}, {where}"] = lambda X=X, K=K, like=like, name=name: run(
                suited(X, like), changed(name, like), K
            )
        for biases in (False, True)[: 1 + like.takes_biases]:
            found[f"{name} {title}{', biases' * biases}, predictions"] = (
                lambda like=like, name=name, biases=biases: of_likelihood(like, name, biases)
            )
    found["GGGW, errors"] = with_errors
    return found


def informed(X: np.ndarray) -> ObservedMatrix:
    """Features of rows and columns, a kernel of the rows, and the pattern of both."""
    rng, (n, m) = np.random.default_rng(9), X.shape
    kernel = np.cov(rng.normal(size=(n, 2 * n)))
    rows, cols = rng.normal(size=(n, 5)), rng.normal(size=(m, 2 * m))
    return ObservedMatrix.of(X).with_features(rows, cols, row_kernel=kernel, pattern="both")


def of_new_sides() -> Result:
    """Rows and columns that have features alone, and rows with entries too."""
    X, _ = DATA["dense"]
    rng = np.random.default_rng(9)
    rows, cols = rng.normal(size=(37, 5)), rng.normal(size=(24, 3))
    mf = BayesianMF("GGGW", 3, biases=True, noise="both", **PLAIN)
    mf.fit(X, row_features=rows[:30], col_features=cols[:20])
    new = {"row_features": rows[30:]}
    return [
        *mf.predict(**new, return_std=True),
        mf.predict(NEW, **new),
        mf.predict(**new, col_features=cols[20:]),
        mf.posterior_.feature_weights("cols")[0].mean,
    ]


def of_features() -> dict[str, Callable[[], Result]]:
    """The lines of rows and columns with features."""
    found: dict[str, Callable[[], Result]] = {}
    for where, (X, K) in DATA.items():
        for name in ("GGGW", "GGGA", "GGGU"):
            found[f"{name}, features, {where}"] = lambda X=X, K=K, name=name: run(
                informed(X), name, K, biases=name == "GGGA", noise="both"
            )
    found["GGGW, features, new rows and columns"] = of_new_sides
    return found


def runs() -> dict[str, Callable[[], Result]]:
    """Every line of the table: a name and what makes its arrays."""
    named = {name: preset(name) for name in PRESETS}
    named["GLLI rate"] = preset("GLLI", reading="rate")
    found: dict[str, Callable[[], Result]] = {}
    for where, (X, K) in DATA.items():
        for name, model in {**named, **CUSTOM}.items():
            found[f"{name}, {where}"] = lambda X=X, model=model, K=K: run(X, model, K)
        found[f"NMF, {where}"] = lambda X=X, K=K: nmf(X, K)
        for name in BASELINES[1:]:
            found[f"{name}, {where}"] = lambda X=X, name=name: [baseline(X, name).predict()]
    X, K = DATA["dense"]
    for name, model in named.items():
        found[f"{name}, from the prior"] = lambda model=model: run(X, model, 3, init="prior")
        gaussian = isinstance(model.likelihood, Gaussian)
        if gaussian:
            found[f"{name}, biases"] = lambda model=model: run(X, model, 3, biases=True)
        if name in PRESETS:
            for biases in (False, True)[: 1 + gaussian]:
                more = ", biases" * biases
                found[f"{name}{more}, new rows"] = lambda name=name, biases=biases: of_new_rows(
                    name, biases
                )
                found[f"{name}{more}, predictions"] = lambda name=name, biases=biases: predictions(
                    name, biases
                )
    for name in ("GGG", "GEE", "PGG"):
        found[f"{name}, imputations"] = lambda name=name: imputations(name)
        found[f"{name}, no scale move"] = lambda name=name: run(X, name, K, scale_move=False)
        found[f"{name}, rank by folds"] = lambda name=name: ranks(name, [1, 2])
        found[f"{name}, some cells"] = lambda name=name: run(
            X, name, K, cells=([0, 4], [3, 1]), thin=2
        )
    large, wide = counts((700, 60), 0.5, 6), counts((900, 400), 0.05, 7)
    for name in ("GGGA", "GEE", "GVG", "PGG", "GGGW"):  # several blocks of rows, on two threads
        found[f"{name}, blocks"] = lambda name=name: run(large, name, 9, n_jobs=2, keep=())
        found[f"{name}, sparse blocks"] = lambda name=name: run(wide, name, 17, n_jobs=2, keep=())
    found["GVG, few columns"] = lambda: run(FEW_COLUMNS, "GVG", 5)
    found["GVnG, few columns"] = lambda: run(FEW_COLUMNS, "GVnG", 5)
    found["GGGW, biases changed"] = lambda: run(X, "GGGW", K, biases=Biases(2.0, 0.3, 2.5, 0.7))
    found["GGG, centred imputations"] = lambda: imputations("GGG", center="both")
    found["GGGA, automatic rank"] = lambda: ranks("GGGA", "auto")
    found["GGGA, going on"] = on_and_on
    found |= of_likelihoods()
    found |= of_features()
    found["GGGW, triples"] = lambda: run(ObservedMatrix.of(X).triples(), "GGGW", 3)
    return found


RUNS = runs()


def made(name: str) -> tuple[str, float]:
    """Hash of a run, and a number made of the same draws."""
    digest, number, weights = hashlib.sha256(), 0.0, np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        arrays = [np.ascontiguousarray(array, dtype=np.float64) for array in RUNS[name]()]
    for array in arrays:
        digest.update(repr(array.shape).encode() + array.tobytes())
        bounded = np.arcsinh(array.ravel())  # no entry drowns the others
        number += float(bounded @ weights.uniform(0.5, 1.5, array.size))
    return digest.hexdigest()[:16], number


@cache
def table() -> dict[str, Any]:
    return json.loads(TABLE.read_text(encoding="utf-8"))


def test_the_table_has_a_line_for_every_run():
    assert set(table()["runs"]) == set(RUNS)


@pytest.mark.filterwarnings("ignore:Columns without an observed value:bayesmf.DataWarning")
@pytest.mark.parametrize("name", RUNS)
def test_draws_are_what_they_were(name):
    digest, number = table()["runs"][name]
    found = made(name)
    if table()["environment"] == environment():
        assert found[0] == digest, "the draws have changed, bit for bit"
    close = LOOSE if any(part in name for part in REFLECTED) else CLOSE
    assert found[1] == pytest.approx(number, rel=close)


def test_a_changed_last_bit_is_noticed(monkeypatch):
    name = "GGG, complete"
    before = made(name)
    arrays = list(RUNS[name]())
    arrays[0] = np.nextafter(arrays[0], np.inf)
    monkeypatch.setitem(RUNS, name, lambda: arrays)
    assert made(name)[0] != before[0]


if __name__ == "__main__":
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(made(name))}" for name in RUNS)
    about = json.dumps(environment())
    text = f'{{\n "environment": {about},\n "runs": {{\n{lines}\n }}\n}}\n'
    TABLE.write_text(text, encoding="utf-8")
    print(f"{len(RUNS)} runs", file=sys.stderr)
