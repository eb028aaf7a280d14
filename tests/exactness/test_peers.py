"""The same posteriors by code that is not ours: NumPyro's NUTS, and SMURFF's Gibbs sampler.

Means and second moments of every cell of U V^T, observed or held out, and of the noise precision
must agree. NUTS sees each model as its priors are stated, without the mixing variances, split
counts and scale moves of our sampler. All limits follow from `FAMILY_ERROR`, shared out over the
cases and their comparisons. The same comparison rejects a chain of ours with one hyperparameter
changed.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import sparse

from bayesmf import (
    Censored,
    Features,
    Gaussian,
    NegativeBinomial,
    ObservedMatrix,
    Ordinal,
    StudentT,
    preset,
    sample,
)
from bayesmf.likelihoods import Likelihood
from tests.exactness.cells import compare, draws_of, with_noise
from tests.helpers.verdicts import seeded

pytestmark = pytest.mark.slow

FAMILY_ERROR = 1e-4
RANK = 2
OURS = {"chains": 8, "burn_in": 300, "length": 3000}
NUTS = {"num_chains": 16, "num_warmup": 600, "num_samples": 1500}
NOISE = {"alpha_tau": 4.0, "beta_tau": 4.0}
WEAK_DATA = {"alpha_tau": 40.0, "beta_tau": 160.0}


def counts():
    """Small random counts with five missing cells: data for every model."""
    X = np.random.default_rng(1).poisson(1.0, (7, 5)).astype(float)
    X[[0, 2, 3, 5, 6], [1, 4, 0, 2, 3]] = np.nan
    return X


# --- The models in NumPyro: a prior takes the module, hyperparameters, a side's name and length ---


def independent(law):
    """Entries from a law, a function of numpyro's distributions and the hyperparameters."""

    def prior(npr, h, name, n):
        return npr.sample(name, law(npr.distributions, h).expand([n, RANK]))

    return prior


def flat(npr, name, n, support):
    constraint = getattr(npr.distributions.constraints, support)
    return npr.sample(name, npr.distributions.ImproperUniform(constraint, (), (n, RANK)))


def l21(npr, h, name, n):
    X = flat(npr, name, n, "positive")
    npr.factor(f"{name} norm", -0.5 * h["lambda"] * (X.sum(axis=1) ** 2).sum())
    return X


def volume(support):
    def prior(npr, h, name, n):
        X = flat(npr, name, n, support)
        S = X.T @ X
        npr.factor(f"{name} volume", -h["gamma"] * (S[0, 0] * S[1, 1] - S[0, 1] ** 2))
        return X

    return prior


def normal_wishart(npr, h, name, n):
    d = npr.distributions
    S = npr.sample(f"{name} covariance", d.InverseWishart(h["nu0"], h["W0"] * np.eye(RANK)))
    mean = npr.sample(f"{name} mean", d.MultivariateNormal(np.zeros(RANK), S / h["beta0"]))
    return npr.sample(name, d.MultivariateNormal(mean, S).expand([n]))


def laplace_inverse_gaussian(npr, h, name, n):
    from jax.numpy import log

    eta = flat(npr, f"{name} eta", n, "positive")
    exponent = -h["lambda"] * (eta - h["mu"]) ** 2 / (2 * h["mu"] ** 2 * eta)
    npr.factor(f"{name} inverse Gaussian", (exponent - 1.5 * log(eta)).sum())
    scale = eta**-0.5 if h["reading"] == "rate" else eta
    return npr.sample(name, npr.distributions.Laplace(0.0, scale))


def truncated_hyper(npr, h, name, n):
    from jax.numpy import log, sqrt

    d = npr.distributions
    mu = npr.sample(f"{name} mu", d.Normal(0.0, h["tau_mu"] ** -0.5).expand([n, RANK]))
    tau = npr.sample(f"{name} tau", d.Gamma(h["a"], h["b"]).expand([n, RANK]))
    odd = d.Normal(0.0, 1.0).log_cdf(mu * sqrt(tau)) - 0.5 * log(tau)
    npr.factor(f"{name} odd factors", odd.sum())
    return npr.sample(name, d.TruncatedNormal(mu, tau**-0.5, low=0.0))


def gamma_hyper(npr, h, name, n):
    d = npr.distributions
    rate = d.Gamma(h["a_prime"], h["a_prime"] / h["b_prime"]).expand([n, 1])
    rate = npr.sample(f"{name} rate", rate)
    return npr.sample(name, d.Gamma(h["a"], rate).expand([n, RANK]))


normal = independent(lambda d, h: d.Normal(0.0, h["lambda"] ** -0.5))
exponential = independent(lambda d, h: d.Exponential(h["lambda"]))


class Case(NamedTuple):
    """Hyperparameters of a preset, its priors in NumPyro, and changes that must be noticed."""

    h: dict[str, Any]
    rows: Any
    cols: Any
    wrong: dict[str, Any]
    noise: dict[str, float] = NOISE
    accept: float = 0.9  # what NUTS aims at


def same(h, prior, wrong):
    return Case(h, prior, prior, wrong)


# fmt: off
CASES = {
    "GGG": same({"lambda": 1.0}, normal, {"lambda": 1.5}),
    "GGGU": same({"lambda": 1.0}, normal, {"lambda": 1.5}),
    "GGGA": same({"alpha0": 3.0, "beta0": 3.0}, normal, {"beta0": 1.5}),
    "GGGW": same({"nu0": 5.0, "W0": 2.0, "beta0": 2.0}, normal_wishart, {"W0": 1.0}),
    "GLL": same({"eta": 0.6}, independent(lambda d, h: d.Laplace(0.0, h["eta"])), {"eta": 0.8}),
    "GLLI": same({"mu": 1.0, "lambda": 3.0, "reading": "scale"}, laplace_inverse_gaussian,
                 {"reading": "rate"}),
    "GLLI-rate": same({"mu": 1.0, "lambda": 3.0, "reading": "rate"}, laplace_inverse_gaussian,
                      {"reading": "scale"}),
    "GVG": Case({"gamma": 0.1, "lambda": 1.0, "ridge": 0.0}, volume("real"), normal,
                {"gamma": 0.02}, WEAK_DATA, 0.99),
    "GEE": same({"lambda": 1.0}, exponential, {"lambda": 1.5}),
    "GEEA": same({"alpha0": 4.0, "beta0": 4.0}, exponential, {"beta0": 2.0}),
    "GTT": Case({"mu_U": 0.5, "tau_U": 1.0, "mu_V": -0.5, "tau_V": 0.7},
                independent(lambda d, h: d.TruncatedNormal(h["mu_U"], h["tau_U"] ** -0.5, low=0.0)),
                independent(lambda d, h: d.TruncatedNormal(h["mu_V"], h["tau_V"] ** -0.5, low=0.0)),
                {"mu_V": 0.5}),
    "GTTN": same({"tau_mu": 1.0, "a": 2.0, "b": 1.0}, truncated_hyper, {"b": 2.0}),
    "GL21": same({"lambda": 1.0}, l21, {"lambda": 1.5}),
    "GEG": Case({"lambda": 1.0}, exponential, normal, {"lambda": 1.5}),
    "GVnG": Case({"gamma": 0.1, "lambda": 1.0, "ridge": 0.0}, volume("positive"), normal,
                 {"gamma": 0.01}, WEAK_DATA, 0.99),
    "PGG": same({"a": 1.5, "b": 1.0}, independent(lambda d, h: d.Gamma(h["a"], h["b"])),
                {"b": 1.5}),
    "PGGG": same({"a": 1.5, "a_prime": 3.0, "b_prime": 1.0}, gamma_hyper, {"b_prime": 1.5}),
}
# fmt: on
LIKELIHOODS = 6  # cases of other likelihoods, further below
ERROR = FAMILY_ERROR / (len(CASES) + LIKELIHOODS + 2)  # two shares are those of SMURFF


def ours(name, seed, **changes):
    """Draws of our sampler."""
    case, base = CASES[name], name.removesuffix("-rate")
    noise = {} if base.startswith("P") else case.noise
    model = preset(base, **(noise | case.h | changes))
    return draws_of(counts(), model, RANK, seeded(seed), **OURS)


def in_numpyro(npr, name):
    """The model as a function for NumPyro, which is told of the observed cells only."""
    d, case, X = npr.distributions, CASES[name], counts()
    cells = np.nonzero(~np.isnan(X))

    def model():
        h = case.h
        if "alpha0" in h:
            relevance = d.Gamma(h["alpha0"], h["beta0"]).expand([RANK])
            h = {"lambda": npr.sample("relevance", relevance)}
        U, V = case.rows(npr, h, "U", X.shape[0]), case.cols(npr, h, "V", X.shape[1])
        product = npr.deterministic("product", U @ V.T)
        if name.startswith("P"):
            law = d.Poisson(product[cells])
        else:
            tau = npr.sample("tau", d.Gamma(*case.noise.values()))
            law = d.Normal(product[cells], tau**-0.5)
        npr.sample("data", law, obs=X[cells])

    return model


def numpyro():
    """The module, in double precision."""
    npr = pytest.importorskip("numpyro", reason="NumPyro is not installed (extra: exactness)")
    npr.enable_x64()
    return npr


def run_nuts(model, accept, seed):
    """Draws of all variables by name."""
    import jax
    from numpyro.infer import MCMC
    from numpyro.infer import NUTS as Kernel

    kernel = Kernel(model, target_accept_prob=accept)
    run = MCMC(kernel, **NUTS, chain_method="vectorized", progress_bar=False)
    run.run(jax.random.PRNGKey(seeded(seed)))
    return {k: np.asarray(v) for k, v in run.get_samples(group_by_chain=True).items()}


def nuts(name, seed):
    """Draws of NumPyro's sampler."""
    npr = numpyro()
    draws = run_nuts(in_numpyro(npr, name), CASES[name].accept, seed)
    return with_noise(draws["product"], draws.get("tau"))


@pytest.mark.parametrize("name", CASES)
def test_nuts_finds_the_same_posterior(name, verdict):
    theirs = nuts(name, 0)
    result = compare(ours(name, 1), theirs, ERROR)
    verdict("peers: NumPyro", name, np.abs(result.scores).max(), result.limit)
    wrong = CASES[name].wrong
    result = compare(ours(name, 2, **wrong), theirs, ERROR)
    verdict.rejects("peers: NumPyro", f"{name} with {wrong}", result.rejected, str(result))


# --- Other likelihoods ----------------------------------------------------------------------------


def above(npr, name, least, shape, rate):
    """A gamma variable restricted to numbers above the least."""
    d = npr.distributions
    excess = npr.sample(f"{name} excess", d.ImproperUniform(d.constraints.positive, (), ()))
    value = npr.deterministic(name, least + excess)
    npr.factor(f"{name} prior", d.Gamma(shape, rate).log_prob(value))
    return value


def precision(npr, shape, sides):
    """Precisions of all cells: tau, and levels of the rows or columns."""
    d = npr.distributions
    found = npr.sample("noise_precision", d.Gamma(4.0, 4.0)) * np.ones(shape)
    for side, n, place in zip(("rows", "cols"), shape, ((-1, 1), (1, -1)), strict=True):
        if side in sides:
            s = above(npr, f"noise_{side}_shape", 2.0, 6.0, 1.0)
            levels = npr.sample(f"noise_{side}", d.Gamma(s, s).expand([n]))
            found = found * levels.reshape(place)
    return found


def unequal(npr, product, X, cells):
    tau = precision(npr, X.shape, ("rows", "cols"))
    npr.sample("data", npr.distributions.Normal(product[cells], tau[cells] ** -0.5), obs=X[cells])


def one_side(npr, product, X, cells):
    tau = precision(npr, X.shape, ("rows",))
    npr.sample("data", npr.distributions.Normal(product[cells], tau[cells] ** -0.5), obs=X[cells])


def student(npr, product, X, cells):
    tau, nu = precision(npr, X.shape, ())[cells], above(npr, "dof", 2.0, 6.0, 0.6)
    law = npr.distributions.StudentT(nu, product[cells], tau**-0.5)
    npr.sample("data", law, obs=X[cells])


UPPER = 2.0


def censored(npr, product, X, cells):
    """Counts of two or more are known to be at least two."""
    from jax.scipy.special import log_ndtr

    tau, values = precision(npr, X.shape, ())[cells], X[cells]
    means, beyond = product[cells], values >= UPPER
    law = npr.distributions.Normal(means, tau**-0.5)
    inside = np.where(beyond, 0.0, 1.0) * law.log_prob(np.where(beyond, 0.0, values))
    outside = np.where(beyond, 1.0, 0.0) * log_ndtr((means - UPPER) * tau**0.5)
    npr.factor("data", inside.sum() + outside.sum())


def categories(npr, product, X, cells):
    import jax.numpy as jnp
    from jax.scipy.special import ndtr

    d = npr.distributions
    cuts = npr.sample("cuts", d.ImproperUniform(d.constraints.ordered_vector, (), (2,)))
    npr.factor("cuts prior", d.Normal(0.0, 1.0).log_prob(cuts).sum())
    below = jnp.stack([ndtr(cut - product[cells]) for cut in cuts])
    p = jnp.stack([below[0], below[1] - below[0], 1 - below[1]])
    codes = np.minimum(X[cells], 2).astype(int)
    npr.factor("data", jnp.log(p[codes, np.arange(codes.size)]).sum())


def overdispersed(npr, product, X, cells):
    size = npr.sample("size", npr.distributions.Gamma(4.0, 1.0))
    law = npr.distributions.NegativeBinomial2(product[cells], size)
    npr.sample("data", law, obs=X[cells])


class Other(NamedTuple):
    """A likelihood, its model in NumPyro, its variables, and a change that must be noticed."""

    base: str
    h: dict[str, float]
    likelihood: Likelihood
    prior: Callable
    data: Callable
    names: tuple[str, ...]
    wrong: Likelihood


_NOISE = {"alpha": 4.0, "beta": 4.0, "shape_alpha": 6.0, "shape_beta": 1.0}
_DOF = {"dof_alpha": 6.0, "dof_beta": 0.6}
_LEVELS = ("noise_precision", "noise_rows", "noise_cols", "noise_rows_shape", "noise_cols_shape")
_BOTH = Gaussian(**_NOISE, rows=True, cols=True)
OTHERS = {
    "GGG-rows": Other(
        "GGG", {"lambda": 1.0}, Gaussian(**_NOISE, rows=True), normal, one_side,
        ("noise_precision", "noise_rows", "noise_rows_shape"),
        Gaussian(**{**_NOISE, "shape_beta": 0.4}, rows=True),
    ),
    "GGG-both": Other(
        "GGG", {"lambda": 1.0}, _BOTH, normal, unequal, _LEVELS, replace(_BOTH, beta=6.0)
    ),
    "GGG-student": Other(
        "GGG", {"lambda": 1.0}, StudentT(**_NOISE, **_DOF), normal, student,
        ("noise_precision", "dof"), StudentT(**_NOISE, dof_alpha=6.0, dof_beta=0.8),
    ),
    "GEE-censored": Other(
        "GEE", {"lambda": 1.0}, Censored(upper=UPPER, noise=Gaussian(4.0, 4.0)), exponential,
        censored, ("noise_precision",), Gaussian(4.0, 4.0),
    ),
    "GGG-ordinal": Other(
        "GGG", {"lambda": 1.0}, Ordinal((0, 1, 2), spread=1.0), normal, categories, ("cuts",),
        Ordinal((0, 1, 2), spread=2.0),
    ),
    "PGG-negbin": Other(
        "PGG", {"a": 1.5, "b": 1.0}, NegativeBinomial(4.0, 1.0),
        independent(lambda d, h: d.Gamma(h["a"], h["b"])), overdispersed, ("size",),
        NegativeBinomial(4.0, 0.5),
    ),
}  # fmt: skip


def of_names(draws, cells, names):
    """Cells, then the named variables, of draws (chains, draws, ...)."""
    chains, length = cells.shape[:2]
    own = [draws[name].reshape(chains, length, -1) for name in names]
    return with_noise(cells, np.concatenate(own, axis=2))


def other_draws(name, seed, likelihood):
    """Draws of our sampler under a likelihood."""
    case, X = OTHERS[name], counts()
    if isinstance(likelihood, Ordinal):
        X = np.minimum(X, 2.0)
    model = replace(preset(case.base, **case.h), likelihood=likelihood)
    found = sample(
        X, model, RANK, draws=OURS["length"], burn_in=OURS["burn_in"], chains=OURS["chains"],
        keep=("U", "V", *case.names), random_state=seeded(seed),
    ).draws  # fmt: skip
    cells = np.einsum("...ik,...jk->...ij", found["U"], found["V"])
    return of_names(found, cells, case.names)


@pytest.mark.parametrize("name", OTHERS)
def test_nuts_finds_the_same_posterior_under_other_likelihoods(name, verdict):
    npr, case, X = numpyro(), OTHERS[name], counts()
    observed = np.nonzero(~np.isnan(X))

    def model():
        U, V = case.prior(npr, case.h, "U", X.shape[0]), case.prior(npr, case.h, "V", X.shape[1])
        case.data(npr, npr.deterministic("product", U @ V.T), X, observed)

    found = run_nuts(model, 0.9, 0)
    theirs = of_names(found, found["product"], case.names)
    result = compare(other_draws(name, 1, case.likelihood), theirs, ERROR)
    verdict("peers: NumPyro", name, np.abs(result.scores).max(), result.limit)
    result = compare(other_draws(name, 2, case.wrong), theirs, ERROR)
    verdict.rejects("peers: NumPyro", f"{name} with {case.wrong}", result.rejected, str(result))


# --- SMURFF ---------------------------------------------------------------------------------------

PRECISION = 2.0
SHARP = 1e8  # shape of a noise prior that fixes the noise, as SMURFF does
SMURFF = {"burnin": 2000, "nsamples": 20_000}
# What SMURFF's normal prior has built in.
BUILT_IN = {"mu0": 0.0, "beta0": 2.0, "nu0": float(RANK), "W0": 1.0}


def shifted():
    """The counts without zeros, which a sparse format may drop."""
    return counts() - 0.5


def smurff_draws(seeds, features=None):
    """Draws of all cells by SMURFF, one chain for each seed; by Macau, if rows have features."""
    smurff = pytest.importorskip("smurff", reason="SMURFF is not installed (extra: exactness)")
    X = shifted()
    observed = np.nonzero(~np.isnan(X))
    train = sparse.coo_matrix((X[observed], observed), shape=X.shape)
    runs = []
    for seed in seeds:
        priors = ["normal" if features is None else "macau", "normal"]
        session = smurff.TrainSession(
            num_latent=RANK, num_threads=1, verbose=0, seed=seed, priors=priors, **SMURFF
        )
        noise = smurff.FixedNoise(PRECISION)
        session.addTrainAndTest(train, sparse.coo_matrix(np.ones(X.shape)), noise)
        if features is not None:
            session.addSideInfo(0, features, smurff.FixedNoise(RIDGE), direct=True)
        session.init()
        while session.step():
            pass
        cells = sorted(session.getTestPredictions(), key=lambda cell: tuple(cell.coords))
        runs.append(np.transpose([cell.pred_all for cell in cells]))
    return np.array(runs)


def wishart_draws(seed, features=None, **changes):
    """Draws of all cells by our GGGW with SMURFF's hyperprior and a fixed noise."""
    fixed = {"alpha_tau": SHARP, "beta_tau": SHARP / PRECISION}
    model = preset("GGGW", **(BUILT_IN | fixed | changes))
    X = shifted() if features is None else ObservedMatrix.of(shifted(), row_features=features)
    return draws_of(X, model, RANK, seeded(seed), **OURS)[:, :, :-1]


def test_smurff_finds_the_same_posterior(verdict):
    """SMURFF's normal prior is the Wishart model with beta0 = 2, nu0 = K and W0 = I."""
    theirs = smurff_draws(seeded(10) + np.arange(8))
    result = compare(wishart_draws(11), theirs, ERROR)
    verdict("peers: SMURFF", "GGGW", np.abs(result.scores).max(), result.limit)
    for wrong in ({"W0": 1.5}, {"beta0": 1.0}):
        result = compare(wishart_draws(12, **wrong), theirs, ERROR)
        verdict.rejects("peers: SMURFF", f"GGGW with {wrong}", result.rejected, str(result))


RIDGE = 0.5  # precision of the weights of features


def known_rows():
    """Three features of the rows, of root mean square length one, so that they stay as they are."""
    x = np.random.default_rng(3).normal(size=(7, 3))
    return x / np.sqrt((x**2).sum(axis=1).mean())


def of_precision(x, ridge):
    """Features whose weights have this precision, as good as fixed."""
    return Features.of(x, standardize=False, alpha=SHARP, beta=SHARP / ridge)


def test_macau_finds_the_same_posterior(verdict):
    """SMURFF's Macau with a fixed precision of the weights: the same model, other arithmetic."""
    x = known_rows()
    theirs = smurff_draws(seeded(20) + np.arange(8), x)
    result = compare(wishart_draws(21, of_precision(x, RIDGE)), theirs, ERROR)
    verdict("peers: SMURFF", "GGGW features", np.abs(result.scores).max(), result.limit)
    for said, wrong in {
        "a smaller precision": of_precision(x, 0.1 * RIDGE),
        "other rows": of_precision(x[::-1].copy(), RIDGE),
    }.items():
        result = compare(wishart_draws(22, wrong), theirs, ERROR)
        verdict.rejects("peers: SMURFF", f"features of {said}", result.rejected, str(result))
