"""Running studies: the same numbers in parallel, in sequence and after an interruption; nothing lost."""

import json
import os
import signal
import warnings
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import survscore as ss
from survscore.paper import reproduce as r
from survscore.paper import studies as s

mpl.use("agg")
TINY = s.Size("tiny", 300, 100, 300, n_times=10, epochs=2)


def quiet(done, total, what):
    pass


def run_in(folder, **changes):
    return replace(r.Run(TINY, seed=1, n_replicates=2, folder=folder), **changes)


@pytest.fixture(scope="module")
def computed(tmp_path_factory):
    """Two replicates of one study, computed one after the other."""
    run = run_in(tmp_path_factory.mktemp("sequence"))
    r.compute(["constant-hazard"], run, quiet)
    return run


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning")
def test_parallel_replicates_are_the_same(computed, tmp_path):
    run = run_in(tmp_path, n_jobs=2)
    told = []
    r.compute(["constant-hazard"], run, lambda *state: told.append(state))
    for k in range(2):
        pd.testing.assert_frame_equal(
            r.load("constant-hazard", k, run), r.load("constant-hazard", k, computed), check_exact=True
        )
    assert [state[:2] for state in told] == [(0, 2), (1, 2), (2, 2)]


def killed(path):
    path.touch()
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no process can be killed so")
def test_a_killed_process_is_told_of_in_a_line(tmp_path):
    jobs = {name: (tmp_path / name,) for name in "ab"}
    with pytest.raises(ChildProcessError, match="a process was killed, perhaps for its memory"):
        r.runner.run(killed, jobs, kept=lambda path: False, n_jobs=2, progress=quiet)
    assert list(tmp_path.iterdir())


def test_replicates_differ_and_seeds_decide(computed):
    one, other = (r.load("constant-hazard", k, computed) for k in range(2))
    assert not np.allclose(one.value, other.value)
    with r.runner.one_thread():
        again = s.constant_hazard(TINY, s.Seeds.of(1, 1), lambda what: None)
    pd.testing.assert_frame_equal(again, other, check_exact=True)
    assert s.Seeds.of(1, 1) != s.Seeds.of(2, 1) != s.Seeds.of(2, 0)


def counting(monkeypatch, stop_at=None):
    """Replace a study by a quick one that counts its runs, and may be interrupted."""
    calls = []

    def study(size, seeds, report):
        if len(calls) == stop_at:
            raise KeyboardInterrupt
        calls.append(seeds)
        report("working")
        frame = pd.DataFrame({"kind": [s.SCORE], "value": [float(seeds.nets)]})
        return frame.reindex(columns=s.COLUMNS)

    monkeypatch.setitem(r.STUDIES, "simple", study)
    return calls


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path, monkeypatch):
    calls = counting(monkeypatch, stop_at=2)
    run = run_in(tmp_path, n_replicates=4)
    with pytest.raises(KeyboardInterrupt):
        r.compute(["simple"], run, quiet)
    kept = [r.load("simple", k, run) for k in range(2)]
    calls = counting(monkeypatch)
    r.compute(["simple"], run, quiet)
    assert calls == [s.Seeds.of(1, 2), s.Seeds.of(1, 3)]
    for k, frame in enumerate(kept):
        pd.testing.assert_frame_equal(r.load("simple", k, run), frame)


@pytest.mark.parametrize("contents", [b"not parquet", None])
def test_a_leftover_that_cannot_be_used_is_named_and_kept(tmp_path, monkeypatch, contents):
    calls = counting(monkeypatch)
    run = run_in(tmp_path)
    path = run.path("simple", 1)
    path.parent.mkdir()
    if contents is None:
        pd.DataFrame({"a": [1]}).to_parquet(path)
        contents = path.read_bytes()
    path.write_bytes(contents)
    with pytest.raises(ss.InputError, match=r"simple-tiny-seed-1-1\.parquet can't be read .*remove it"):
        r.reproduce(["figure-5"], run, quiet)
    assert path.read_bytes() == contents
    assert calls == []  # found out before anything was computed


def test_a_replicate_made_otherwise_is_refused(tmp_path, monkeypatch):
    counting(monkeypatch)
    run, other = run_in(tmp_path, n_replicates=1), run_in(tmp_path, n_replicates=1, seed=2)
    r.compute(["simple"], run, quiet)
    run.path("simple", 0).rename(other.path("simple", 0))
    with pytest.raises(ss.InputError, match="made with other settings or another version: remove it"):
        r.reproduce(["figure-5"], other, quiet)


def test_a_failed_replicate_leaves_no_file(tmp_path, monkeypatch):
    counting(monkeypatch)

    def full(*_, **__):
        raise OSError("no space left on device")

    monkeypatch.setattr("pyarrow.parquet.write_table", full)
    with pytest.raises(OSError, match="no space"):
        r.compute(["simple"], run_in(tmp_path), quiet)
    assert list((tmp_path / "replicates").iterdir()) == []


def test_figures_of_several_replicates(computed):
    results = r.reproduce(["figure-2", "figure-3"], computed, quiet)
    folder = results["figure-3"].folder
    assert sorted(path.name for path in folder.iterdir()) == [
        "claims.csv", "figure-3-log.png", "figure-3-log.svg", "figure-3.png", "figure-3.svg",
        "integrated.csv", "numbers.csv", "numbers.parquet", "settings.json",
    ]  # fmt: skip
    numbers = pd.read_parquet(folder / "numbers.parquet")
    pd.testing.assert_frame_equal(numbers, pd.read_csv(folder / "numbers.csv"))
    assert len(numbers) == 2 * 2 * 5 * 3 * s.TIMES.size  # replicates, losses, scores, models, times
    own = r.load("constant-hazard", 1, computed)
    chosen = own[(own.kind == s.SCORE) & (own.loss == "log")]
    np.testing.assert_array_equal(numbers[(numbers.replicate == 1) & (numbers.loss == "log")].value, chosen.value)
    integrated = pd.read_csv(folder / "integrated.csv").query("replicate == 1")
    np.testing.assert_allclose(integrated.value, own[own.kind == s.INTEGRATED].value, rtol=1e-14)
    settings = json.loads((folder / "settings.json").read_text())
    assert (settings["seed"], settings["replicates"], settings["size"]["name"]) == (1, 2, "tiny")
    written = pd.read_csv(folder / "claims.csv", keep_default_na=False, na_values={"lower": "", "upper": ""})
    pd.testing.assert_frame_equal(written, results["figure-3"].claims, check_dtype=False)


def test_scores_in_a_replicate_are_the_librarys(computed):
    """One of the plotted curves, computed again from the data of the replicate."""
    seeds = s.Seeds.of(1, 0)
    test = ss.simulate.ConstantHazardStudy().sample(TINY.test, seed=seeds.test)
    frame = r.load("constant-hazard", 0, computed)
    rows = frame[(frame.kind == s.SCORE) & (frame.loss == "brier") & (frame.model == s.TRUTH)]
    for label, y, weighting in (
        (s.UNCENSORED, test.uncensored, "uncensored"),
        (s.ADMINISTRATIVE, test.outcomes, "administrative"),
        (s.IPCW_TRUE, test.outcomes, ss.IPCW("known")),
        (s.PROJECTED, test.outcomes, "projected"),
    ):
        with warnings.catch_warnings():
            for category in (ss.UndefinedScoreWarning, ss.FewFollowedWarning):  # few reach the last times
                warnings.simplefilter("ignore", category=category)
            score = ss.brier_score(y, test.survival(s.TIMES), weighting=weighting, times=s.TIMES)
        shown = rows[rows.weighting == label]
        np.testing.assert_allclose(shown.value, score.scores, rtol=1e-12)
        np.testing.assert_allclose(shown.se, score.se, rtol=1e-9)
