"""What surrounds the compiled code: the line that says that it is being compiled, and sorting on all cores."""

import logging
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

import survscore as ss
from survscore._utils import kernels, parallel

MESSAGE = "compiling the code for large data, once; this takes about ten seconds"


class Clock:
    """A timer whose time comes when a test says so."""

    running: ClassVar[list] = []

    def __init__(self, seconds, work):
        assert seconds == kernels.PATIENCE
        self.work = work

    def start(self):
        self.running.append(self)

    def cancel(self):
        if self in self.running:
            self.running.remove(self)

    @classmethod
    def strike(cls):
        while cls.running:
            cls.running.pop().work()


@pytest.fixture
def notice(monkeypatch, caplog):
    monkeypatch.setattr(kernels, "Timer", Clock)
    caplog.set_level(logging.INFO, "survscore")
    return kernels.CompilingNotice()


def compiling(module):
    function = SimpleNamespace(__module__=module)
    return SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=function)})


def test_long_compiling_is_announced_once(notice, caplog):
    for _ in range(2):
        notice.on_start(compiling("survscore.engine.kernels"))
        notice.on_start(compiling("survscore._utils.kernels"))  # a function that the first one calls
        notice.on_end(compiling("survscore._utils.kernels"))
        Clock.strike()
        notice.on_end(compiling("survscore.engine.kernels"))
    assert [record.getMessage() for record in caplog.records] == [MESSAGE]


@pytest.mark.parametrize(
    ("what", "ended_first"),
    [
        (compiling("survscore.engine.kernels"), True),
        (compiling("somebody.elses"), False),
        (compiling(None), False),
        (SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=None)}), False),
    ],
    ids=["short", "another module", "no module", "a lifted loop"],
)
def test_what_is_short_and_what_others_compile_is_not_announced(notice, caplog, what, ended_first):
    notice.on_start(what)
    if ended_first:
        notice.on_end(what)
    Clock.strike()
    assert not caplog.records


def test_without_a_logger_a_terminal_gets_the_line(monkeypatch, capsys):
    monkeypatch.setattr(kernels, "Timer", Clock)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    kernels.CompilingNotice().on_start(compiling("survscore.engine.kernels"))
    Clock.strike()
    assert capsys.readouterr().err == f"survscore: {MESSAGE}\n"


def test_times_that_hardly_differ_are_sorted(monkeypatch):
    monkeypatch.setattr(parallel, "LONG_VECTOR", 100)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(4), raising=False)
    values = np.tile([5e-324, 0.0, 1e-323], 100)
    with ss.config.using(threads=4):
        assert np.array_equal(values[parallel.argsort(values)], np.sort(values))


def test_a_time_that_is_the_same_for_all_may_take_no_memory():
    """Some of such a vector are fewer than all of it."""
    event = np.array([True, False, True, False])
    curves = ss.SurvivalCurves([[0.9], [0.6], [0.4], [0.2]], times=[3])
    repeated, plain = (
        ss.brier_score(ss.Outcomes(time, event), curves, weighting=ss.IPCW(), times=[3])
        for time in (np.broadcast_to(4.0, 4), np.full(4, 4.0))
    )
    np.testing.assert_array_equal(repeated.scores, plain.scores)
    np.testing.assert_array_equal(repeated.se, plain.se)
