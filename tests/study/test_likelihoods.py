"""Priors by likelihoods: who goes with whom, results of small chains, components and choices."""

import csv

import numpy as np
import pytest

from bayesmf.cli import main
from bayesmf.model.presets import PRESETS
from bayesmf.study import crossing, fitting
from bayesmf.study.estimate import guess, study_seconds
from bayesmf.study.experiments import likelihoods
from bayesmf.study.figures import heat, style
from bayesmf.study.reproduce import expand, reproduce, run
from bayesmf.study.tasks import Task
from tests.study.small import SMALL


def task(model, likelihood, setting=None, fold=0):
    rank = likelihoods.SETTINGS[setting]
    return Task("likelihoods", "sound", SMALL, model, fold, setting, rank, likelihood)


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(likelihoods, "BURN_IN", 20)
    monkeypatch.setattr(likelihoods, "DRAWS", 20)
    monkeypatch.setattr(likelihoods, "RANKS", (1, 2, 3, 4))


def test_every_pair_is_asked_for_once():
    tasks = expand("likelihoods", "sound", "full", SMALL)
    nested = [t for t in tasks if t.setting is None]
    assert len(nested) == len(PRESETS) * len(likelihoods.LIKELIHOODS) * 5
    assert len({t.key for t in tasks}) == len(tasks)
    assert {t.key for t in expand("likelihoods", "sound", "quick", SMALL)} < {t.key for t in tasks}
    assert expand("likelihoods", "paper", "full", SMALL) == []


def test_pairs_that_do_not_exist_say_why():
    X = fitting.data(SMALL)
    words = {
        ("PGG", "equal"): "does not fit the priors of PGG",
        ("GGG", "negative binomial"): "does not fit the priors of GGG",
        ("GGG", "censored"): "no values heap",
        ("GGG", "ordinal"): "no categories",
        ("GEE", "Poisson"): "needs counts",
    }
    for pair, why in words.items():
        assert why in likelihoods.why_not(task(*pair), X, (None, None))
        assert run(task(*pair))["absent"]
    assert likelihoods.why_not(task("GHH", "both"), X, (None, None)) == ""
    assert likelihoods.why_not(task("GGG", "censored"), X, (None, 9.0)) == ""


def test_a_pair_is_judged_by_error_density_and_coverage(short):
    found = [run(task("GGG", "equal", s)) for s in likelihoods.SETTINGS]
    for result in found:
        assert result["mse"] > 0 and np.isfinite(result["log_density"])
        assert 0.5 < result["coverage"] <= 1
    assert found[0]["rank"] in (1, 2, 3, 4) and found[1]["rank"] == 20
    assert found[2]["mse"] > found[0]["mse"]  # with a tenth of the entries
    assert run(task("GGG", "equal")) == found[0]
    trial = likelihoods.CrossedTrial("x", None, 0, 5, (1,), 1, 1, hidden=0.9)
    train, test = trial.split(fitting.data(SMALL))
    assert train.n_observed < 0.2 * fitting.data(SMALL).n_observed < test[2].size


def simulated(effects, folds=5, noise=0.01, seed=0):
    """Numbers (P, L, F) with effects of priors, likelihoods, pairs and folds."""
    rng = np.random.default_rng(seed)
    P, L, both = (np.asarray(e, dtype=float) for e in effects)
    fold = rng.normal(0, 1, folds)
    y = P[:, None, None] + L[:, None] + both[..., None] + fold
    return y + rng.normal(0, noise, y.shape)


def test_components_are_found_and_are_zero_where_there_is_nothing():
    rng = np.random.default_rng(1)
    P, L, both = rng.normal(0, 0.1, 60), rng.normal(0, 0.5, 50), rng.normal(0, 0.05, (60, 50))
    found = np.sqrt(crossing.components(simulated((P, L, both))))
    assert found == pytest.approx([P.std(), L.std(), 0.05, 0.01], rel=0.05)
    alone = simulated((P, np.zeros(50), np.zeros((60, 50))))
    assert crossing.components(alone)[1:3] == pytest.approx([0, 0], abs=1e-5)
    low, high = np.percentile(crossing.resampled(alone, 50), (5, 95), axis=0)
    assert low[0] > 0 and (low <= high).all()


def made(values, priors=("GGG", "GEE", "GGGA"), likelihood=("equal", "cols"), setting=None):
    """Cells of one dataset with these errors (P, L, F) and densities that are minus their logs."""
    return [
        crossing.Cell(
            "sound", "likelihoods", "GDSC", one, prior, setting, tuple(e), tuple(range(len(e))),
            0, None, (2,) * len(e), 0, 1.0, None,
            tuple({"mse": x, "log_density": -np.log(x), "coverage": 0.9, "rank": 2} for x in e),
        )
        for p, prior in enumerate(priors)
        for k, one in enumerate(likelihood)
        for e in [np.exp(values[p, k])]
    ]  # fmt: skip


def test_choices_are_judged_where_they_were_not_made():
    values = simulated(([0.0, 0.1, -0.05], [0.0, -0.3], np.zeros((3, 2))), noise=1e-6)
    found = crossing.block(made(values), "log error")
    gains = crossing.choices(found, -1)
    assert gains["prior"][0] == ["GGGA, equal"] * 5
    assert gains["prior"][1] == pytest.approx(np.full(5, 0.05), abs=1e-4)
    assert gains["likelihood"][1] == pytest.approx(np.full(5, 0.3), abs=1e-4)
    assert gains["both"][1] == pytest.approx(np.full(5, 0.35), abs=1e-4)
    lucky = values.copy()
    lucky[1, 0, 2] -= 5  # very good on one fold, and so not chosen there
    chosen, gain = crossing.choices(found._replace(values=lucky), -1)["prior"]
    assert chosen[2] == "GGGA, equal" and gain[2] == pytest.approx(0.05, abs=1e-4)


def test_chains_that_went_astray_count_as_much_worse_and_no_more():
    values = simulated((np.zeros(3), np.zeros(2), np.zeros((3, 2))))
    values[1, 1, 0] += 9
    for measure, sign in (("log error", 1), ("log density", -1)):
        found = crossing.block(made(values), measure)
        worse = sign * (found.values[1, 1, 0] - found.values[0, 0, 0])
        assert found.bounded == 1 and worse == pytest.approx(crossing.MEASURES[measure].most)


def test_holes_leave_a_block_whole():
    values = simulated((np.zeros(3), np.zeros(2), np.zeros((3, 2))))
    cells = made(values)
    hole = [c._replace(values=(), repeats=(), results=({"mse": None, "failed": "no"},))
            if (c.model, c.variant) == ("GEE", "cols") else c for c in cells]  # fmt: skip
    assert crossing.block(hole, "log error").priors == ["GGG", "GGGA"]
    odd = [*cells, *made(values, ("GEE", "GEEA"), ("Poisson", "negative binomial"))]
    assert crossing.block(odd, "log error").likelihoods == ["equal", "cols"]
    assert crossing.right(odd, counts=True) in crossing.COUNTS


def test_observations_are_judged_with_the_right_likelihood():
    values = simulated(([0.0, 0.1, -0.05], [0.0, -0.3], np.zeros((3, 2))))
    rise = simulated(([0.4, 0.1, -0.05], [0.0, -0.3], [[0, -0.4], [0, 0], [0, 0]]))
    found = crossing.verdicts([*made(values), *made(rise, setting=20.0)])
    words = {(v.variant, v.claim): v.verdict for v in found}
    assert words["equal, Poisson", "GGG rises more than GGGA"] == "holds"
    assert words["cols", "GGG rises more than GGGA"] == "undecided"
    alone = crossing.verdicts(made(values))  # without a second rank nothing rises
    assert not [v for v in alone if "rises" in v.claim]


def test_tables_are_made_again_from_the_folds(short, tmp_path, monkeypatch):
    monkeypatch.setattr(likelihoods, "SETTINGS", {None: None})
    models = ["GGG", "GGGA", "PGG"]
    options = {"protocol": "sound", "names": [SMALL], "models": models, "progress": False}
    monkeypatch.setattr(
        likelihoods,
        "LIKELIHOODS",
        {one: likelihoods.LIKELIHOODS[one] for one in ("equal", "cols", "ordinal", "Poisson")},
    )
    reproduce(["likelihoods"], folder=tmp_path, **options)
    folder = tmp_path / "tables/sound"
    with (folder / "likelihood_folds.csv").open(newline="") as file:
        cells = crossing.cells_of(csv.DictReader(file))
    for name, table in likelihoods.EXPERIMENT.more_tables.items():
        head, rows = table(cells)
        with (folder / f"{name}.csv").open(newline="") as file:
            known = list(csv.reader(file))
        assert known[0] == list(head) and len(known) == len(rows) + 1
        for line, row in zip(known[1:], rows, strict=True):
            for text, value in zip(line, row, strict=True):
                if isinstance(value, float) and value == value:
                    assert float(text) == pytest.approx(value, rel=1e-3, abs=1e-5)
    text = (folder / "likelihoods.md").read_text()
    assert "does not fit the priors of PGG" in text and "no categories" in text
    svg = (tmp_path / f"figures/sound/likelihoods_{SMALL}.svg").read_text()
    assert "GGGA" in svg and "ordinal" in svg


def test_maps_show_every_number_once():
    values = simulated(([0.0, 0.1, -0.05], [0.0, -0.3], np.zeros((3, 2))))
    with style.drawing():
        names = [name for name, figure in heat.draw("priors", made(values))]
    assert names == ["likelihoods_GDSC", "likelihood_components"]


def test_the_study_itself_has_no_other_likelihoods(tmp_path, capsys):
    assert study_seconds(task("GGG", "equal")) == 0 < guess(task("GGG", "equal"))
    assert main(["reproduce", "likelihoods", "--output", str(tmp_path / "new")]) == 2
    assert "--protocol sound" in capsys.readouterr().err
