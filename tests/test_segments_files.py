"""Segments at the command line and on the page: what is printed, written and shown is what the library says."""

import html
import json
import re

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import mangling
import survscore as ss
from commands import printed, refused, run
from report_case import HOSTILE, OPTIONS
from report_case import make as make_case
from survscore.reports import render, summarise

TIMES = [3.0, 8, 15]
pytestmark = pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning")
NASTY = "<img src=x onerror=alert(1)>"


@pytest.fixture(params=["csv", "parquet"])
def study(request, tmp_path):
    """Write files with a country and a plan whose labels look like numbers; return paths, labels and the library's."""
    n = 400
    y, models, ids = mangling.study(3, n)
    _, predictions = mangling.write(tmp_path, request.param, seed=3, n=n)
    rng = np.random.default_rng(0)
    labels = {"country": rng.choice(["DE", "FR", "[red]X", "IS"], n, p=[0.5, 0.3, 0.18, 0.02]),
              "plan": rng.choice(["01", "2"], n)}  # fmt: skip
    frame = pd.DataFrame(
        {"id": ids, "time": y.time, "event": y.event.astype(int), "censoring_time": y.censoring_time, **labels}
    )
    path = tmp_path / f"y.{request.param}"
    frame.to_csv(path, index=False) if request.param == "csv" else frame.to_parquet(path)
    return [path, predictions], labels, y, models


def test_compare_by_segment_writes_the_library_s_numbers(capsys, tmp_path, study):
    files, labels, y, models = study
    result = ss.compare(y, models, weighting=["administrative", "ipcw"], times=TIMES, reference="cox", by=labels)
    result = result.corrected("benjamini-hochberg")
    options = ["-w", "administrative", "-w", "ipcw", "-t", "3,8,15", "-r", "cox", "-m", "brier", "--by", "country",
               "--by", "plan", "--correction", "benjamini-hochberg", "--interpolation", "linear"]  # fmt: skip
    code, out, err = run(
        capsys, "compare", *files, *options, "--json", tmp_path / "all.json", "--parquet", tmp_path / "d.parquet",
        "--csv", tmp_path / "d.csv",
    )  # fmt: skip
    assert code == 0
    written = json.loads((tmp_path / "all.json").read_text())
    as_text = {"dtype": {"country": str, "plan": str}}
    for table in (
        pd.DataFrame(written["contrasts"]), pd.read_parquet(tmp_path / "d.parquet"),
        pd.read_csv(tmp_path / "d.csv", **as_text),
    ):  # fmt: skip
        pd.testing.assert_frame_equal(table, result.contrasts, rtol=0, atol=1e-12, check_dtype=False)
    means = result.integrated(nan="stop")
    pd.testing.assert_frame_equal(pd.DataFrame(written["verdicts"]), means.contrasts, atol=1e-12, check_dtype=False)
    assert len(written["means"]) == len(means.scores)
    assert {"skill", "country", "plan"} <= set(written["means"][0])
    assert len(written["heterogeneity"]) == len(means.heterogeneity())
    assert [row["n"] for row in written["counts"]] == result.counts["n"].tolist()
    assert written["settings"]["options"]["by"] == ["country", "plan"]
    assert json.loads(pq.read_schema(tmp_path / "d.parquet").metadata[b"survscore"]) == written["settings"]
    for key in result.segments:
        assert re.search(rf"{re.escape(key[0])} +{key[1]} ", out), key
    assert "Benjamini and Hochberg" in out
    assert "too few" in out
    assert sorted(line.split()[0] for line in err.splitlines()) == ["Written:"] * 3
    code, _, err = run(
        capsys, "compare", *files, "-w", "administrative", "-t", "3,8,15", "-m", "auc", "--by", "country"
    )
    assert code == 0
    assert "survscore: note: in 1 of 4 segments some scores are NaN, such as in country 'IS'" in err
    assert "`undefined`" not in err


@pytest.mark.parametrize("times", ["3,8,15", "8"])
def test_score_by_segment(capsys, tmp_path, study, times):
    files, labels, y, models = study
    options = ["-w", "administrative", "-t", times, "--by", "plan"]
    code, out, _ = run(capsys, "score", *files, *options)
    assert code == 0
    result = ss.compare(
        y, models, metric=["brier", "log"], weighting="administrative", times=[float(t) for t in times.split(",")],
        null=False, by={"plan": labels["plan"]},
    )  # fmt: skip
    scores = result.scores if times == "8" else result.integrated().scores
    for row in scores.to_dict("records"):
        assert printed(out, row["score"], row["lower"], row["upper"])
    code, out, _ = run(capsys, "score", *files, *options, "--csv", "-")
    assert code == 0
    (tmp_path / "out.csv").write_text(out)
    table = pd.read_csv(tmp_path / "out.csv", dtype={"plan": str})
    pd.testing.assert_frame_equal(table, result.scores, rtol=0, atol=1e-12)


def test_mistakes_are_one_line(capsys, tmp_path, study):
    files, *_ = study
    usual = [*files, "-w", "administrative", "-t", "5,10"]
    assert "there is no column 'nobody' (by)" in refused(capsys, "compare", *usual, "--by", "nobody")
    assert "--correction is for --by" in refused(capsys, "compare", *usual, "--correction", "none")
    assert "by must name columns of labels, not 'time'" in refused(capsys, "compare", *usual, "--by", "time")
    frame = pd.read_csv(files[0]) if files[0].suffix == ".csv" else pd.read_parquet(files[0])
    frame.loc[7, "country"] = None
    frame.to_csv(tmp_path / "gaps.csv", index=False)
    told = refused(capsys, "compare", tmp_path / "gaps.csv", *usual[1:], "--by", "country")
    assert "country" in told
    assert "missing" in told


def test_very_many_segments(capsys, tmp_path):
    files = mangling.write(tmp_path, n=1100)
    told = refused(capsys, "compare", *files, "-w", "administrative", "-t", "3,8", "--by", "id")
    assert "by makes 1100 segments" in told
    frame = pd.read_csv(files[0]).assign(third=np.arange(1100) // 11)
    frame.to_csv(tmp_path / "y.csv", index=False)
    code, out, _ = run(
        capsys, "compare", tmp_path / "y.csv", files[1], "-w", "administrative", "-t", "3,8", "--by", "third"
    )
    assert code == 0
    assert "50 smaller segments not shown" in out


def test_groups_across_segments_are_told(capsys, study):
    files, *_ = study
    code, out, _ = run(
        capsys, "compare", *files, "-w", "administrative", "-t", "3,8", "--by", "country", "--groups", "plan"
    )
    assert code == 0
    assert "2 groups span several segments, so these are not compared with each other" in " ".join(out.split())
    assert "Cochran" not in out


def test_one_model_and_one_time(capsys, tmp_path, study):
    files, *_ = study
    usual = [files[0], files[1], "-w", "administrative", "-t", "8", "--by", "country"]
    code, out, _ = run(capsys, "compare", *usual)
    assert code == 0
    assert " by country, at 8; " in out
    _, models, ids = mangling.study(3, 400)
    ss.io.write_predictions(tmp_path / "one.csv", {"net": models["net"]}, ids=ids)
    usual[1] = tmp_path / "one.csv"
    assert run(capsys, "compare", *usual, "--null", "none")[0] == 0
    assert run(capsys, "report", *usual, "--null", "none", "-o", tmp_path / "one.html")[0] == 0
    assert "How many there are" in (tmp_path / "one.html").read_text()


# The page


@pytest.fixture(scope="module")
def case():
    y, models = make_case()
    rng = np.random.default_rng(1)
    country = rng.choice(["DE", "FR", "", NASTY, "x" * 400], len(y), p=[0.5, 0.3, 0.01, 0.15, 0.04])
    return y, models, {"<b>country": country}


@pytest.fixture(scope="module")
def summary(case):
    y, models, by = case
    return summarise(y, models, **OPTIONS, by=by)


def test_the_page_tells_the_library_s_numbers(case, summary):
    y, models, by = case
    weightings = ["administrative", "ipcw"]
    result = ss.compare(y, models, metric=["brier", "log"], weighting=weightings, times=OPTIONS["times"], by=by)
    wanted = result.integrated(5, 90).contrasts
    table = pd.DataFrame(summary["segments"]["table"])
    keys = ["<b>country", "metric", "weighting", "model"]
    both = table.merge(wanted, on=keys, suffixes=("", "_wanted"))
    assert len(both) == len(wanted) == len(table)
    for name in ("difference", "lower", "upper", "p_value", "p_adjusted"):
        np.testing.assert_array_equal(both[name].astype(float), both[f"{name}_wanted"])
    assert (both["verdict"] == both["verdict_wanted"]).all()
    assert set(summary["segments"]["listed"]["weighting"]) == {summary["headline"]}
    json.dumps(summary, allow_nan=False)  # plain data
    told = summary["segments"]["sentences"]["brier"]["administrative"]
    assert len(told) == 3
    assert all("of 5 segments" in sentence for sentence in told)


def test_names_on_the_page_are_escaped(summary):
    page = render(summary)
    for name in (NASTY, HOSTILE, "<b>country"):
        assert name not in page
        assert html.escape(name) in page
    assert page.count("<script") == 2
    assert len(page) < 2_000_000
    assert render(json.loads(json.dumps(summary))) == page
