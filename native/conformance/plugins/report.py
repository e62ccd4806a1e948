"""pytest plugin: writes every test's outcome as JSON, `[{"test", "outcome", "reason"}]`, for `npm run conformance`."""

import json

import pytest


def pytest_addoption(parser):
    """`--sluice-report FILE`, `--sluice-only FILE`."""
    parser.addoption("--sluice-report", required=True, help="file that receives the outcomes")
    parser.addoption("--sluice-only", help="JSON list of the tests to run, as an earlier report names them")


def pytest_collection_modifyitems(config, items):
    """Leaves out what `--sluice-only` does not name."""
    only = config.getoption("--sluice-only")
    if only is None:
        return
    with open(only, encoding="utf-8") as file:
        wanted = set(json.load(file))
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in wanted])
    items[:] = [item for item in items if item.nodeid in wanted]


def pytest_configure(config):
    """Workers of pytest-xdist report to the one that started them."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Report(config.getoption("--sluice-report")))


class Report:
    """The worst phase of a test is its outcome."""

    def __init__(self, path):
        self._path = path
        self._outcomes = {}
        self._collected = ()

    def pytest_collection_finish(self, session):
        """Every collected test is to be told of."""
        self._collected = [item.nodeid for item in session.items]

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node, ids):
        """With workers they collect, not this process."""
        self._collected = ids

    def pytest_runtest_logreport(self, report):
        """Each test reports its set-up, its call and its tear-down."""
        outcome, reason = report.outcome, ""
        if outcome == "skipped":
            outcome = "xfailed" if hasattr(report, "wasxfail") else "skipped"
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        elif outcome == "failed":
            reason = str(report.longrepr)[-600:]
        if outcome != "passed" or report.when == "call":
            if self._outcomes.get(report.nodeid, ("",))[0] != "failed":
                self._outcomes[report.nodeid] = (outcome, reason)

    def pytest_collectreport(self, report):
        """A file that cannot be imported is a failure of its own."""
        if report.failed:
            self._outcomes[report.nodeid] = ("failed", str(report.longrepr)[-600:])

    def pytest_sessionfinish(self):
        """Written at the end, also after an interruption; a test that told nothing has failed."""
        for test in self._collected:
            self._outcomes.setdefault(test, ("failed", "nothing was told of it: the suite ended before"))
        rows = [
            {"test": test, "outcome": outcome, "reason": reason}
            for test, (outcome, reason) in sorted(self._outcomes.items())
        ]
        with open(self._path, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
