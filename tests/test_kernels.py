"""What surrounds the compiled code: the line that says that it is being compiled, and sorting on all cores."""

import logging
import time
from types import SimpleNamespace

import numpy as np
import pytest

import survscore as ss
from survscore._utils import kernels, parallel


def compiling(module):
    function = SimpleNamespace(__module__=module)
    return SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=function)})


@pytest.fixture
def notice(monkeypatch, caplog):
    monkeypatch.setattr(kernels, "PATIENCE", 0.05)
    caplog.set_level(logging.INFO, "survscore")
    return kernels.CompilingNotice()


def test_long_compiling_is_announced_once(notice, caplog):
    for _ in range(2):
        notice.on_start(compiling("survscore.engine.kernels"))
        notice.on_start(compiling("survscore._utils.kernels"))  # a function that the first one calls
        notice.on_end(compiling("survscore._utils.kernels"))
        time.sleep(0.3)
        notice.on_end(compiling("survscore.engine.kernels"))
    assert [record.getMessage() for record in caplog.records] == [
        "compiling the code for large data, once; this takes about ten seconds"
    ]


@pytest.mark.parametrize("module", ["survscore.engine.kernels", "somebody.elses"])
def test_short_compiling_and_that_of_others_is_not(notice, caplog, module):
    notice.on_start(compiling(module))
    if module.startswith("survscore"):
        notice.on_end(compiling(module))
    time.sleep(0.3)
    assert not caplog.records


def test_without_a_logger_a_terminal_gets_the_line(monkeypatch, capsys):
    monkeypatch.setattr(kernels, "PATIENCE", 0.05)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    notice = kernels.CompilingNotice()
    notice.on_start(compiling("survscore.engine.kernels"))
    time.sleep(0.3)
    assert capsys.readouterr().err.startswith("survscore: compiling")


@pytest.mark.parametrize("decimals", [None, 1, -3])
def test_values_are_sorted_on_all_cores(monkeypatch, decimals):
    monkeypatch.setattr(parallel, "LONG_VECTOR", 100)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(4), raising=False)
    values = np.random.default_rng(1).exponential(10.0, 10_000)
    values = values if decimals is None else values.round(decimals)
    with ss.config.using(threads=4):
        order = parallel.argsort(values)
    assert np.array_equal(np.sort(order), np.arange(values.size))
    assert np.array_equal(values[order], np.sort(values))
