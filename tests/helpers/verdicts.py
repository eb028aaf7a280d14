"""What the exactness tests find: judged at once, and noted for the table of `make exactness`.

With ``--verdicts FILE`` the notes of every test are added to FILE as it ends, tests that FILE has
already passed are left out, and tests marked ``seeds`` are repeated with ten other seeds. A file
made by other code is started anew.
"""

import ast
import functools
import hashlib
import json
from pathlib import Path

import pytest
from tqdm import tqdm

ROOT = Path(__file__).parents[2]
OTHER_SEEDS = 10
_offset = 0


def seeded(seed=0):
    """The seed to use in place of `seed`: another one in each repetition."""
    return seed + 1000 * _offset


def _imported(source):
    """Files of the library that a file of it imports."""
    for node in ast.walk(ast.parse(source.read_bytes())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bayesmf"):
            for name in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names)):
                path = ROOT / "src" / name.replace(".", "/")
                files = path.with_suffix(".py"), path / "__init__.py"
                yield from (file for file in files if file.exists())


@functools.cache
def code_version():
    """Hash of all that decides what the tests find: what sampling needs, and the tests."""
    package = ROOT / "src/bayesmf"
    found, new = set(), {package / "posterior/sample.py", package / "model/presets.py"}
    while new:
        found |= new
        new = {path for source in new for path in _imported(source)} - found
    found -= {package / "__init__.py"}  # names what users see, and decides nothing
    tests = {path for path in (ROOT / "tests/exactness").glob("*.py") if path.name != "table.py"}
    digest = hashlib.sha256()
    for source in sorted(found | tests):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def read(path):
    """Notes by test, the last ones where a test has run twice; nothing if the code has changed."""
    path = Path(path)
    lines = path.read_text().splitlines() if path.exists() else []
    records = [json.loads(line) for line in lines if line.endswith("}")]  # a killed run cuts lines
    if not records or records[0].get("code") != code_version():
        return {}
    return {record["test"]: record for record in records[1:] if "test" in record}


def planned(path):
    """Number of tests that the last run of the file was to have."""
    records = map(json.loads, Path(path).read_text().splitlines())
    return [record["planned"] for record in records if "planned" in record][-1]


class Verdict:
    """Notes of one test."""

    def __init__(self, notes):
        self._notes = notes

    def __call__(self, test, subject, statistic, limit, at_least=False, **more):
        """Note a statistic of a subject, and fail if it is beyond its limit."""
        statistic, limit = float(statistic), float(limit)
        passed = statistic >= limit if at_least else statistic <= limit
        found = {"statistic": statistic, "limit": limit, "at_least": at_least}
        self._notes.append({"test": test, "subject": subject, **found, **more, "passed": passed})
        assert passed, f"{test}, {subject}: {statistic:.4g}, limit {limit:.4g}"

    def rejects(self, test, name, rejected, why=""):
        """Note whether a broken sampler was noticed, and fail if it was not."""
        self._notes.append({"test": test, "broken": name, "passed": bool(rejected)})
        assert rejected, f"{test} accepts a broken sampler ({name}) {why}"


@pytest.fixture
def verdict(request):
    notes = []
    request.node.user_properties.append(("verdicts", notes))
    return Verdict(notes)


@pytest.fixture(autouse=True)
def repetition(request):
    """Shift all seeds in a repetition of a test."""
    global _offset
    _offset = getattr(request, "param", 0)
    yield
    _offset = 0


def pytest_addoption(parser):
    parser.addoption("--verdicts", metavar="FILE", help="note what exactness tests find in FILE")


def pytest_generate_tests(metafunc):
    marked = metafunc.definition.get_closest_marker("seeds")
    if marked and metafunc.config.getoption("--verdicts"):
        names = [f"seed{n}" for n in range(OTHER_SEEDS + 1)]
        metafunc.parametrize("repetition", range(OTHER_SEEDS + 1), indirect=True, ids=names)


def pytest_collection_modifyitems(config, items):
    path = config.getoption("--verdicts")
    if not path:
        return
    done = {name for name, record in read(path).items() if record["passed"]}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in done])
    items[:] = [item for item in items if item.nodeid not in done]


def pytest_configure(config):
    path = config.getoption("--verdicts")
    if path and not hasattr(config, "workerinput"):  # one process writes
        config.pluginmanager.register(_Recorder(Path(path)), "verdicts-recorder")


class _Recorder:
    """Adds the notes of every test to the file, and draws the progress bar."""

    def __init__(self, path):
        self._path, self._bar = path, None
        known = read(path)
        self._passed = sum(record["passed"] for record in known.values())
        if not known:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"code": code_version()}) + "\n")

    def _append(self, record):
        with self._path.open("a") as file:
            file.write(json.dumps(record) + "\n")

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node, ids):
        if self._bar is None:
            total = self._passed + len(ids)
            self._append({"planned": total})
            self._bar = tqdm(total=total, initial=self._passed, smoothing=0.0)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report):
        if not report.passed:
            return None
        return ("passed" if report.when == "call" else "", "", "")

    def pytest_runtest_logreport(self, report):
        if report.when != "call":
            return
        notes = dict(report.user_properties).get("verdicts", [])
        record = {"test": report.nodeid, "passed": report.passed, "skipped": report.skipped}
        self._append(record | {"seconds": report.duration, "notes": notes})
        if self._bar is not None:
            self._bar.update()

    def pytest_sessionfinish(self):
        if self._bar is not None:
            self._bar.close()
