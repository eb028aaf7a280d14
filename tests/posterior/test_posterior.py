"""What `sample` returns: moments, kept draws, options."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest

from bayesmf import BayesianMF, DataError, ModelError, sample
from bayesmf.posterior.sample import sample_whole
from tests.helpers.matrices import models, small_matrix

X = small_matrix()


def run(model="GGGA", **options):
    options = {"draws": 12, "burn_in": 5, "random_state": 0, **options}
    return sample(X, model, 3, **options)


@pytest.mark.parametrize("model", models())
def test_moments_are_those_of_the_kept_draws(model):
    posterior = run(model, chains=2, keep="all")
    U, V = posterior.predictors()
    fits = U @ V.transpose(0, 2, 1)
    np.testing.assert_allclose(posterior.mean, fits.mean(axis=0), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(posterior.variance, fits.var(axis=0, ddof=1), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(posterior.U_mean, posterior.draws["U"].mean(axis=1), rtol=1e-10)
    if posterior.model.biases:
        return
    product = [
        u.mean(axis=0) @ v.mean(axis=0).T
        for u, v in zip(posterior.draws["U"], posterior.draws["V"], strict=True)
    ]
    np.testing.assert_allclose(
        posterior.predict(method="product_of_means"), np.mean(product, axis=0), rtol=1e-10
    )


def test_requested_cells_have_the_same_moments():
    rows, cols = np.array([0, 3, 16, 3]), np.array([0, 11, 2, 4])
    whole, part = run(), run(cells=(rows, cols))
    assert part.mean.shape == (4,)
    np.testing.assert_allclose(part.mean, whole.mean[rows, cols], rtol=1e-12)
    np.testing.assert_allclose(part.variance, whole.variance[rows, cols], rtol=1e-9)
    np.testing.assert_array_equal(part.predict([16], [2]), part.mean[[2]])
    mean, std = whole.predict([16], [2], return_std=True)
    np.testing.assert_allclose([mean[0], std[0] ** 2], [part.mean[2], part.variance[2]], rtol=1e-9)
    with pytest.raises(DataError, match=r"\(5, 5\) was not among the cells"):
        part.predict([5], [5])
    np.testing.assert_allclose(
        part.predict(method="product_of_means"),
        whole.predict(rows, cols, method="product_of_means"),
        rtol=1e-12,
    )


def test_shapes_of_what_is_kept():
    posterior = run("GLLI", chains=2, thin=3, keep="all")
    assert posterior.noise_precision.shape == (2, 12)
    assert posterior.draws["rows.eta"].shape == (2, 12, 17, 3)
    assert posterior.draws["cols.variance"].shape == (2, 12, 12, 3)
    assert posterior.train_mse.shape == posterior.seconds.shape == (2, 5 + 12 * 3)
    assert (posterior.seconds > 0).all()
    assert set(run(keep=()).draws) == {"noise_precision"}
    assert set(run(keep="relevance").draws) == {"noise_precision", "relevance"}


def test_training_error_is_that_of_the_state():
    posterior = run()
    state = posterior.states[0]
    residual = (X - state.U @ state.V.T)[~np.isnan(X)]
    np.testing.assert_allclose(posterior.train_mse[0, -1], np.mean(residual**2), rtol=1e-12)


def test_poisson_has_no_noise_precision():
    with pytest.raises(ModelError, match="PGG has no noise precision"):
        _ = run("PGG").noise_precision


def test_threads_and_chains_give_the_same_posterior():
    reference = run(chains=3, n_jobs=1)
    for n_jobs in (2, 4, -1):
        other = run(chains=3, n_jobs=n_jobs)
        np.testing.assert_array_equal(reference.mean, other.mean)
        np.testing.assert_array_equal(reference.variance, other.variance)
        np.testing.assert_array_equal(reference.noise_precision, other.noise_precision)


@pytest.mark.parametrize(
    "seed",
    [3, np.random.SeedSequence(3), lambda: np.random.default_rng(3)],
    ids=["int", "SeedSequence", "Generator"],
)
def test_seeds_of_every_kind_repeat(seed):
    seeds = (seed(), seed()) if callable(seed) else (seed, seed)
    a, b = (run(random_state=s) for s in seeds)
    np.testing.assert_array_equal(a.mean, b.mean)


def test_no_seed_differs():
    assert not np.array_equal(run(random_state=None).mean, run(random_state=None).mean)


def test_labels_are_kept():
    import pandas as pd

    frame = pd.DataFrame(X, index=[f"r{i}" for i in range(17)], columns=list("abcdefghijkl"))
    posterior = sample(frame, "GGG", 2, draws=2, burn_in=0, random_state=0)
    assert posterior.row_labels.tolist() == list(frame.index)
    assert posterior.col_labels.tolist() == list(frame.columns)


def test_progress_is_silent_visible_or_called(capfd):
    run(progress=False)
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")
    run(progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "GGGA" in err and "17/17" in err
    events = []
    run(progress=events.append)
    assert [e.sweep for e in events] == list(range(1, 18))
    assert events[-1].total == 17


@pytest.fixture
def interruptible():
    """A process that was started in the background may ignore interrupts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("thread", [threading.main_thread, threading.current_thread])
def test_interrupt_keeps_what_was_drawn(thread):
    def interrupt(event):  # the system may give it to the main thread or to that of the chain
        if event.sweep == 9:
            signal.pthread_kill(thread().ident, signal.SIGINT)
            time.sleep(0.2)

    posterior = run(draws=100_000, progress=interrupt)
    done = posterior.noise_precision.shape[1]
    assert 1 <= done < 100_000
    assert any(f"Interrupted: {done} of 100000" in note for note in posterior.notes)


@pytest.mark.usefixtures("interruptible")
def test_interrupt_in_burn_in_is_not_swallowed():
    def interrupt(event):
        if event.sweep == 2:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)

    with pytest.raises(KeyboardInterrupt):
        run(burn_in=100_000, progress=interrupt)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_while_chains_start_loses_nothing():
    def interrupt(event):
        if event.chain == 0 and event.sweep == 6:
            os.kill(os.getpid(), signal.SIGINT)

    for seed in range(40):  # of a tiny matrix: the first chain is drawing when the second starts
        posterior = run(draws=3_000, chains=4, n_jobs=4, progress=interrupt, random_state=seed)
        assert any("Interrupted" in note for note in posterior.notes)


@pytest.mark.usefixtures("interruptible")
def test_a_chain_that_has_hardly_begun_does_not_cut_the_others():
    def interrupt(event):
        if event.chain == 1 and event.sweep == 8:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.1)

    posterior = run(draws=500, burn_in=5, chains=2, n_jobs=1, progress=interrupt)
    assert posterior.noise_precision.shape == (1, 500)
    assert posterior.settings["chains"] == 1
    assert any("1 of 2 chains" in note for note in posterior.notes)


def test_half_given_cells_are_refused():
    with pytest.raises(ModelError, match="both rows and cols"):
        run().predict([1])
    with pytest.raises(ModelError, match="method must be"):
        run().predict(method="median")


def test_the_seed_of_a_run_repeats_it():
    first = run(random_state=None)
    again = run(random_state=first.settings["seed"])
    np.testing.assert_array_equal(first.mean, again.mean)
    assert not first.interrupted


@pytest.mark.usefixtures("interruptible")
def test_a_result_that_must_be_whole_is_not_cut_short():
    def interrupt(event):
        if event.sweep == 9:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)

    with pytest.raises(KeyboardInterrupt):
        sample_whole(small_matrix(), "GGG", 2, draws=100_000, burn_in=2, progress=interrupt)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_run_that_goes_on_is_the_longer_run(n_jobs):
    options = {"chains": 2, "keep": ("U",), "random_state": 5, "n_jobs": n_jobs}
    first = sample(X, "GGGW", 2, burn_in=3, draws=4, **options)
    whole = sample(X, "GGGW", 2, burn_in=7, draws=5, **options)
    rest = sample(X, "GGGW", 2, burn_in=0, draws=5, **options | {"random_state": 6}, init=first)
    np.testing.assert_array_equal(rest.draws["U"], whole.draws["U"])
    np.testing.assert_array_equal(rest.mean, whole.mean)
    assert rest.settings["init"] == "after sweep 7"
    again = sample(X, "GGGW", 2, burn_in=0, draws=5, **options, init=first)
    np.testing.assert_array_equal(again.mean, whole.mean)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"model": "GGG"}, "model of the run is GGG, but that of the posterior is GGGW"),
        ({"n_components": 3}, "n_components of the run is 3"),
        ({"chains": 1}, "chains of the run is 1, but that of the posterior is 2"),
        ({"X": np.ones((2, 2))}, "shape of the run"),
        ({"biases": True}, "list of variables of the run is .*bias.mean"),
    ],
)
def test_what_cannot_go_on(changed, message):
    options = {"X": X, "model": "GGGW", "n_components": 2, "chains": 2, "draws": 2}
    first = sample(**options, burn_in=0)
    with pytest.raises(ModelError, match=message):
        sample(**options | changed, burn_in=0, init=first)


# --- Longer runs, quantiles and predictive draws ------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("GGGA", {"chains": 2, "thin": 2}),
        ("GGGW", {"biases": True, "noise": "cols"}),
        ("TGGW", {"chains": 2}),
        ("GTTN", {"cells": ([0, 3, 3], [1, 0, 5])}),
        ("PGG", {}),
    ],
)
def test_a_run_that_is_made_longer_is_the_longer_run(name, options):
    X = np.abs(small_matrix()).round()
    options = {"burn_in": 7, "keep": "all", "random_state": 4, **options}
    long = sample(X, name, 2, draws=19, **options)
    short = sample(X, name, 2, draws=6, **options)
    for longer in (short.more_draws(X, 13, n_jobs=2), short.more_draws(X, 5).more_draws(X, 8)):
        for what in ("mean", "variance", "train_mse", "U_mean", "V_mean"):
            np.testing.assert_array_equal(getattr(longer, what), getattr(long, what), what)
        assert longer.settings == long.settings and set(longer.draws) == set(long.draws)
        for variable, draws in long.draws.items():
            np.testing.assert_array_equal(longer.draws[variable], draws, variable)
        for one, other in zip(longer.states, long.states, strict=True):
            for variable, value in other.variables().items():
                np.testing.assert_array_equal(one.variables()[variable], value)
    assert short.settings["draws"] == 6


def test_longer_runs_that_cannot_be():
    X = small_matrix()
    bare = sample(X, "GGG", 2, draws=3, burn_in=2, random_state=0)
    with pytest.raises(ModelError, match="sample with keep"):
        bare.more_draws(X, 3)
    kept = sample(X, "GGG", 2, draws=3, burn_in=2, keep="all", random_state=0)
    with pytest.raises(ModelError, match="draws must be a whole number"):
        kept.more_draws(X, 0)
    with pytest.raises(ModelError, match="shape of the run is"):
        kept.more_draws(X[:5], 3)


def test_quantiles_and_predictive_draws_are_those_of_the_estimator():
    X = small_matrix()
    plain = {"center": "none", "scale": "none", "random_state": 1}
    mf = BayesianMF("GGGA", 2, draws=30, burn_in=10, **plain).fit(X)
    posterior = mf.posterior_
    _, expected = mf.predict(quantiles=[0.1, 0.9])
    np.testing.assert_array_equal(posterior.quantiles([0.1, 0.9]), expected)
    np.testing.assert_array_equal(posterior.sample_predictive(4), mf.sample_predictive(4))
    cells = [0, 2], [1, 1]
    tight = posterior.quantiles([0.1, 0.9], *cells, include_noise=False)
    assert tight.shape == (2, 2) and (np.ptp(tight, axis=0) < np.ptp(expected, axis=0)[cells]).all()
    with pytest.raises(ModelError, match="Give both rows and cols"):
        posterior.quantiles([0.5], [0])
