"""Priors and likelihoods that users write: everywhere the others go, and told what is wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import special, stats

from bayesmf import BayesianMF, Model, ModelError, Normal, Posterior, chain, compare, sample
from bayesmf.priors import Prior
from bayesmf.priors import distributions as dist
from bayesmf.sampler.state import Problem
from bayesmf.streams import Stream
from tests.priors.own import Careless, SpikeAndSlab, Steady, Wrong

MINE = Model(Steady(), SpikeAndSlab(), Normal(1.0), "mine")


def matrix(shape=(30, 12)):
    rng = np.random.default_rng(0)
    U = rng.normal(size=(shape[0], 2)) * (rng.random((shape[0], 2)) < 0.5)
    X = U @ rng.normal(size=(2, shape[1])) + 0.1 * rng.normal(size=shape)
    X[rng.random(shape) < 0.2] = np.nan
    return X


def stream(sweep=1):
    return Stream(np.array([1, 2], dtype=np.uint64), 0, sweep)


@pytest.mark.parametrize(
    ("slip", "said"),
    [
        ("short", r"Wrong.terms: diagonal .* shape \(1, 2\) or \(30, 2\).* got \(29, 2\)"),
        ("flat", r"Wrong.terms: linear .* for 30 rows and 2 factors, got \(2,\)"),
        ("whole", "Wrong.terms: precision must be an array of float64, got int64"),
        ("scalar", "Wrong.terms: linear must be an array of float64, got float"),
        ("tuple", "Wrong.terms must return one of RowTerms, .* got tuple"),
        ("few odds", r"Wrong.updates: 'included': a parameter of shape \(3, 1\) does not"),
        ("unknown", "Wrong.updates: 'excluded' is none of its variables, included"),
        ("turned", r"Wrong.draw must return U \(30, 2\), .* it returns U \(2, 30\)"),
    ],
)
def test_a_slip_of_a_prior_is_told_in_one_sentence(slip, said):
    model = Model(Steady(), Wrong(slip=slip), Normal(1.0))
    with pytest.raises(ModelError, match=said):
        sample(matrix(), model, 2, draws=2, burn_in=0, random_state=0)


@pytest.mark.parametrize(
    ("slip", "said"),
    [
        ("short", r"entries, in the order of the columns, .* shape \(\d+,\), got float64 of shape"),
        ("whole", "entries, in the order of the rows, must be an array of float64 .* got int64"),
        ("list", r"weights of columns must be an array .* of shape \(12,\), got list"),
        ("turned", r"weights of rows .* shape \(30,\), got float64 of shape \(12,\)"),
        ("many", r"precision must be one number, got an array of shape \(3,\)"),
    ],
)
def test_a_slip_of_a_likelihood_is_told_before_a_kernel_reads_beyond_an_array(slip, said):
    model = Model(Careless(slip=slip), Normal(1.0), Normal(1.0))
    with pytest.raises(ModelError, match=f"NormalData: .*{said}"):
        sample(matrix(), model, 2, draws=2, burn_in=0, random_state=0)


def test_discrete_hyper_variables_are_found_and_kept():
    posterior = sample(matrix(), MINE, 2, draws=200, keep="all", random_state=0)
    included = posterior.draws["rows.included"]
    assert set(np.unique(included)) == {0.0, 1.0}
    prior, rng = SpikeAndSlab(0.3), np.random.default_rng(0)
    U, old = rng.normal(size=(6, 2)), {"included": (rng.random((6, 2)) < 0.5).astype(float)}
    for name, step in prior.updates(U, prior.all_values(old, {})):
        new = {name: 1 - old[name]}
        by_step = np.sum(step.log_density(new[name]) - step.log_density(old[name]))
        by_joint = prior.log_density(U, new) - prior.log_density(U, old)
        assert by_step == pytest.approx(by_joint, abs=1e-9)


def test_discrete_distributions_are_drawn_as_they_are_dense():
    n = 4000
    odds = np.array([[-2.0, 0.0, 3.0]])
    drawn = dist.Bernoulli(log_odds=odds).draw(stream(), (n, 3)).sum(axis=0)
    for k, count in enumerate(drawn):
        p = special.expit(odds[0, k])
        assert stats.binomtest(int(count), n, p).pvalue > 1e-4
        both = dist.Bernoulli(log_odds=odds[0, k]).log_density(np.array([0.0, 1.0]))
        np.testing.assert_allclose(np.exp(both), [1 - p, p])
    weights = np.log([[0.5, 3.0, 1.5, 0.0001]])
    kind = dist.Categorical(log_weights=weights)
    counts = np.bincount(kind.draw(stream(2), (n,)).astype(int), minlength=4)
    shares = np.exp(kind.log_density(np.arange(4)))
    np.testing.assert_allclose(shares, np.exp(weights[0]) / np.exp(weights).sum())
    assert stats.chisquare(counts[:3], n * shares[:3] / shares[:3].sum() * counts[:3].sum() / n
                           ).pvalue > 1e-4  # fmt: skip


def test_own_parts_come_back_from_a_file_and_go_on(tmp_path):
    pytest.importorskip("h5netcdf")
    X = matrix()
    posterior = sample(X, MINE, 2, draws=5, keep="all", random_state=0)
    posterior.save(tmp_path / "run.nc")
    again = Posterior.load(tmp_path / "run.nc")
    assert again.model.rows == SpikeAndSlab() and isinstance(again.model.likelihood, Steady)
    problem = Problem.of(X, MINE, 2)
    ahead = [next(chain(problem, state=p.states[0])) for p in (posterior, again)]
    np.testing.assert_array_equal(ahead[0].U, ahead[1].U)
    np.testing.assert_array_equal(ahead[0].rows["included"], ahead[1].rows["included"])
    script = f"from bayesmf import Posterior; Posterior.load({str(tmp_path / 'run.nc')!r})"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True
    )
    assert "tests.priors.own:Steady" in done.stderr and "parts=[Steady]" in done.stderr


def test_estimators_of_own_parts_come_back_from_a_file(tmp_path):
    X = matrix()
    mf = BayesianMF(MINE, 2, draws=5, burn_in=5, random_state=0).fit(X)
    mf.save(tmp_path / "mine.npz")
    again = BayesianMF.load(tmp_path / "mine.npz", parts=[SpikeAndSlab, Steady])
    assert again.posterior_.model.rows == SpikeAndSlab() and again.model.likelihood == Steady()
    np.testing.assert_array_equal(again.predict(), mf.predict())
    np.testing.assert_array_equal(again.predict(X[:3]), mf.predict(X[:3]))
    np.testing.assert_array_equal(again.more_draws(3).predict(), mf.more_draws(3).predict())


def test_a_part_that_is_no_dataclass_is_not_saved(tmp_path):
    pytest.importorskip("h5netcdf")

    class Plain(Normal):
        """Looks like a dataclass, because its parent is one."""

    class Bare(Prior):
        def terms(self, values, K):
            return Normal(1.0).terms({"precision": 1.0}, K)

        def entries(self, values, K):
            return dist.Normal(precision=np.ones((1, K)))

    posterior = sample(matrix(), Model(Steady(), Plain(1.0), Normal(1.0)), 2, draws=2)
    posterior.save(tmp_path / "run.nc")
    assert isinstance(Posterior.load(tmp_path / "run.nc", parts=[Plain]).model.rows, Plain)
    posterior = sample(matrix(), Model(Steady(), Bare(), Normal(1.0)), 2, draws=2)
    with pytest.raises(ModelError, match="Bare cannot be saved; make it a dataclass"):
        posterior.save(tmp_path / "other.nc")
    assert not (tmp_path / "other.nc").exists()
    del Plain, Bare


def test_own_parts_are_compared():
    found = compare(matrix(), [MINE, "GGG"], ranks=[2], folds=2, budget="quick")
    assert {s.model for s in found.standings} == {"mine", "GGG"}
    assert found.fit("mine").posterior_.model.rows == SpikeAndSlab()


@pytest.mark.slow
def test_own_parts_are_compared_in_processes_and_on_dask_alike(monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    options = {"ranks": [2], "folds": 2, "budget": "quick"}
    here = compare(matrix(), [MINE, "GGG"], **options)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as cluster:
        there = compare(matrix(), [MINE, "GGG"], dask=cluster.scheduler_address, **options)
    beside = compare(matrix(), [MINE, "GGG"], n_jobs=2, **options)
    for other in (there, beside):
        assert [s.mse for s in other.standings] == [s.mse for s in here.standings]
