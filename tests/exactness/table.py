"""Write docs/exactness.md and its figure from what `make exactness` has noted.

    python -m tests.exactness.table FILE

A page is written only when all tests have run; the tests themselves say whether they passed.
"""

import platform
import sys
from collections import defaultdict
from importlib import metadata
from pathlib import Path

import numpy as np

from bayesmf import PRESETS
from tests.exactness.calibration import band
from tests.exactness.variations import KINDS, kind_of
from tests.helpers import verdicts

ROOT = Path(__file__).parents[2]

# Test: what is compared, and the statistic.
TESTS = {
    "conditional ratios": (
        "For random states, the change of the log joint equals the change of the log conditional "
        "that the kernel draws from, for every variable and every scale move.",
        "largest gap relative to the size of the terms",
    ),
    "joint distribution": (
        "Chains that alternate sweeps and new data keep the joint law of all variables "
        "(Geweke, 2004): quantiles and rank products, errors from independent chains.",
        "largest t-score",
    ),
    "joint distribution of scale moves": (
        "The same for the scale move alone, on draws from the prior.",
        "largest t-score",
    ),
    "scale identities": (
        "In any posterior both sides' priors pull equally along U_k c, V_k / c; chains run "
        "without the scale move, errors from measured autocorrelation.",
        "largest z-score",
    ),
    "calibration": (
        "Simulation-based calibration: ranks of the true variables of the noise (Poisson: mean "
        "rate), of a held-out cell and of the log density among posterior draws.",
        "smallest p-value of a simultaneous band",
    ),
    "independent rows": (
        "Rows with equal data and factors are drawn independently.",
        "largest correlation in standard errors",
    ),
    "limits": (
        "Models that become equal in a limit have the same posterior: means and second moments "
        "of cells and of the noise.",
        "largest z-score",
    ),
    "peers: NumPyro": (
        "Posterior means and second moments of cells and noise against NUTS.",
        "largest z-score",
    ),
    "peers: SMURFF": (
        "Predictive means against SMURFF's normal priors at fixed noise.",
        "largest t-score",
    ),
    "distributions": (
        "Goodness of fit of every sampler of a distribution over the range that chains meet.",
        "smallest p-value",
    ),
    "streams": (
        "A battery of randomness tests on the generator, on first draws across rows, sweeps, "
        "sites and chains; 10^7 keys without a shared state.",
        "smallest p-value",
    ),
}
HEAD = """# Exactness

Every sampler of this library is held against its joint density. This page is written by
`make exactness`, which runs all of it ({minutes:.0f} minutes of one core); `make test` runs the
quick subset with fixed seeds.

{verdict} {passed} of {total} tests passed, with {statistics:,} statistics judged and {broken}
broken samplers to be noticed (bayesmf {version}, code {code}, Python {python}, NumPy {numpy},
Numba {numba}).

Limits follow from Monte Carlo error and from the number of comparisons: each of the tests below may
raise a false alarm in an exact library with probability 1e-4 at most per seed (Bonferroni over its
cases and comparisons), so all of them together with probability 1e-3; ratios are exact, up to
rounding. Tests that use random numbers and are short were repeated with ten other seeds:
{repeated:,} runs, {alarms} false alarms.

"""


def cells(notes):
    """Statistic and limit nearest to each other, written out, with the number of statistics."""
    if not notes:
        return ""
    if notes[0]["at_least"]:
        worst = min(notes, key=lambda n: n["statistic"] / max(n["limit"], 1e-300))
    else:
        worst = max(notes, key=lambda n: n["statistic"] / (n["limit"] or 1.0))
    mark = "" if all(n["passed"] for n in notes) else " **failed**"
    return f"{worst['statistic']:.2g} / {worst['limit']:.2g}{mark}"


def preset_of(subject):
    """The preset of a subject that has the likelihood of the preset."""
    name = subject.replace("-", " ").split(" ")[0]
    return name if name in PRESETS and kind_of(subject) is None else None


def likelihood_of(subject):
    """What the likelihood of a subject is called, where a preset has another than its own."""
    name = subject.replace("-", " ").split(" ")[0]
    return kind_of(subject) if name in PRESETS else None


def grid(notes, of, names, head):
    """The table of presets, or of likelihoods, by tests."""
    by = defaultdict(list)
    for note in notes:
        by[of(note["subject"]), note["test"]].append(note)
    tests = [t for t in TESTS if any((name, t) in by for name in names)]
    lines = [f"| {head} | " + " | ".join(tests) + " |", "|---" * (len(tests) + 1) + "|"]
    for name in names:
        lines.append(f"| {name} | " + " | ".join(cells(by[name, t]) for t in tests) + " |")
    return lines


def others(notes):
    """The table of what is not about a preset."""
    by = defaultdict(list)
    for note in notes:
        if preset_of(note["subject"]) is None and likelihood_of(note["subject"]) is None:
            by[note["test"], note["subject"]].append(note)
    lines = ["| test | subject | statistics | nearest to its limit |", "|---|---|---|---|"]
    for test, subject in sorted(by, key=lambda key: (list(TESTS).index(key[0]), key[1])):
        found = by[test, subject]
        lines.append(f"| {test} | {subject} | {len(found)} | {cells(found)} |")
    return lines


def broken(notes):
    """The table of broken samplers."""
    by = defaultdict(dict)
    for note in notes:
        by[note["test"]][note["broken"]] = note["passed"] and by[note["test"]].get(
            note["broken"], True
        )
    lines = ["| test | rejected | broken samplers |", "|---|---|---|"]
    for test in TESTS:
        if test in by:
            found = by[test]
            names = "; ".join(n if ok else f"**{n} (accepted)**" for n, ok in found.items())
            lines.append(f"| {test} | {sum(found.values())} of {len(found)} | {names} |")
    return lines


def figure(notes, path):
    """Cumulated ranks less their expectation, with the bands."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "bayesmf"
    from matplotlib import pyplot as plt

    shown = {(n["subject"], n["quantity"]): n for n in notes if "ranks" in n}
    names = list(dict.fromkeys(name for name, _ in shown))
    titles = ["noise, cut, size or mean rate", "held-out cell", "log density"]
    figure, axes = plt.subplots(len(names), 3, figsize=(9, 1.25 * len(names)), sharex=True)
    for row, name in zip(axes, names, strict=True):
        mine = [note for (subject, _), note in shown.items() if subject == name]
        for axis, note in zip(row, [mine[0], *mine[-2:]], strict=True):
            _panel(axis, note)
        row[0].set_ylabel(name, rotation=0, ha="right", va="center")
    for axis, title in zip(axes[0], titles, strict=True):
        axis.set_title(title, fontsize=10)
    figure.suptitle("Ranks of the truth: cumulated share less its expectation", fontsize=11)
    figure.tight_layout(rect=(0, 0, 1, 0.99))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})


_bands = {}


def _panel(axis, note):
    counts = np.array(note["ranks"])
    n, bins = int(counts.sum()), len(counts)
    x = np.arange(1, bins) / bins
    for error, shade in ((note["limit"], "0.93"), (0.05, "0.82")):
        if (n, bins, error) not in _bands:
            _bands[n, bins, error] = band(n, bins, error)
        low, high = _bands[n, bins, error]
        axis.fill_between(x, low / n - x, high / n - x, color=shade, lw=0)
    axis.plot(x, np.cumsum(counts)[:-1] / n - x, color="C0", lw=1.2)
    axis.tick_params(labelsize=7)


def page(records):
    """The whole page as text, whether all is well, and what was judged."""
    notes = [note for record in records.values() for note in record["notes"]]
    judged = [n for n in notes if "statistic" in n]
    wrong = [n for n in notes if "broken" in n]
    repeats = {t: r for t, r in records.items() if "seed" in t and "seed0" not in t}
    passed = sum(record["passed"] for record in records.values())
    well = passed == len(records)
    head = HEAD.format(
        minutes=sum(r["seconds"] for r in records.values()) / 60,
        verdict="**All green.**" if well else "**Not all is well.**",
        passed=passed, total=len(records), version=metadata.version("bayesmf"),
        statistics=sum(n.get("comparisons", 1) for n in judged),
        broken=len({(n["test"], n["broken"]) for n in wrong}), code=verdicts.code_version(),
        python=platform.python_version(), numpy=metadata.version("numpy"),
        numba=metadata.version("numba"), repeated=len(repeats),
        alarms=sum(not r["passed"] for r in repeats.values()),
    )  # fmt: skip
    lines = [head + "## What is tested", ""]
    lines += [f"- **{t}**: {what} Statistic: {how}." for t, (what, how) in TESTS.items()]
    lines += ["", "## Preset by test", ""]
    lines += ["Of each, the statistic nearest to its limit, and the limit.", ""]
    lines += grid(judged, preset_of, PRESETS, "preset")
    lines += ["", "## Likelihood by test", ""]
    lines += [
        "Presets with another likelihood than their own, over all priors that were tried.",
        "",
    ]
    lines += grid(judged, likelihood_of, list(KINDS.values())[::-1], "likelihood")
    lines += ["", "## What is not about one preset or likelihood", "", *others(judged)]
    lines += ["", "## Broken samplers", ""]
    lines += ["Deliberate errors, the paper's own among them; every one must be rejected.", ""]
    lines += [*broken(wrong), "", "## Calibration", ""]
    lines += ["Dark: where 95 % of uniform rank samples stay throughout; light: the limit of the"]
    lines += ["test.", "", "![Ranks of the truth](images/calibration.svg)"]
    return "\n".join(lines) + "\n", well, judged


def main(path):
    records = verdicts.read(path)
    noted = {note["test"] for record in records.values() for note in record["notes"]}
    missing = [test for test in TESTS if test not in noted]
    if missing or len(records) < verdicts.planned(path):
        sys.exit(f"{path} is not complete ({', '.join(missing) or 'interrupted'}); run it again.")
    run = {test: record for test, record in records.items() if not record.get("skipped")}
    text, well, judged = page(run)
    (ROOT / "docs" / "exactness.md").write_text(text)
    figure(judged, ROOT / "docs" / "images" / "calibration.svg")
    print("docs/exactness.md:", "all green" if well else "NOT all green")


if __name__ == "__main__":
    main(sys.argv[1])
