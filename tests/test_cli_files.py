"""The commands on files: what they print and write is what the library says."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import mangling
import survscore as ss
from commands import printed, refused, run
from survscore import cli
from survscore.cli.screen import OTHER_CODE, OTHER_NAMES, one_line

TIMES = [3.0, 8, 15, 29]


@pytest.fixture(params=["csv", "parquet"])
def files(request, tmp_path):
    return mangling.write(tmp_path, request.param)


def test_score_writes_the_library_s_numbers(capsys, tmp_path, files):
    y, models, _ = mangling.study()
    weightings = [ss.Administrative(), ss.IPCW(max_weight=2), ss.IPCW()]
    options = ["-w", "administrative", "-w", "ipcw", "--cap", 2, "--cap", "none", "-t", "3,8,15,29", "--level", 0.9]
    code, out, err = run(
        capsys, "score", *files, *options, "--range", "3:15", "--csv", "-", "--json", tmp_path / "all.json",
        "--parquet", tmp_path / "scores.parquet", "--interpolation", "linear",
    )  # fmt: skip
    assert code == 0
    assert sorted(line.split()[0] for line in err.splitlines()) == ["Written:", "Written:"]
    wanted = []
    for name, curves in models.items():
        for score in ss.score_all(y, curves, weighting=weightings, times=TIMES, level=0.9, ranges=[(3, 15)]):
            frame = score.to_frame()
            frame.insert(2, "model", name)
            wanted.append((score, frame))
    table = pd.concat([frame for _, frame in wanted], ignore_index=True)
    (tmp_path / "out.csv").write_text(out)
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "out.csv"), table, rtol=0, atol=1e-12)
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "scores.parquet"), table, rtol=0, atol=1e-12)
    written = json.loads((tmp_path / "all.json").read_text())
    pd.testing.assert_frame_equal(pd.DataFrame(written["scores"]), table, rtol=0, atol=1e-12)
    means = [score.integrated(3, 15) for score, _ in wanted]
    assert np.allclose([row["score"] for row in written["means"]], [mean.value for mean in means], rtol=0, atol=1e-12)
    assert np.allclose([row["se"] for row in written["means"]], [mean.se for mean in means], rtol=0, atol=1e-12)
    carried = json.loads(pq.read_schema(tmp_path / "scores.parquet").metadata[b"survscore"])
    assert carried == written["settings"]
    assert carried["survscore"] == ss.__version__
    assert carried["weightings"] == [str(weighting) for weighting in weightings]


def test_score_prints_a_table(capsys, files):
    code, out, _ = run(capsys, "score", files[0], f"net={files[1]}", "-w", "administrative", "-t", "3:15:3")
    y, models, _ = mangling.study()
    mean = ss.brier_score(y, models["net"], weighting="administrative", times=np.arange(3, 16, 3.0)).integrated()
    assert code == 0
    assert printed(out, mean.value, mean.lower, mean.upper)
    assert "cox" not in out
    code, out, _ = run(capsys, "score", *files, "-w", "administrative", "-t", "8")  # a single time has no mean
    assert code == 0
    assert "at 8" in out
    assert "mean" not in out


def test_compare_writes_the_library_s_numbers(capsys, tmp_path, files):
    y, models, _ = mangling.study()
    result = ss.compare(y, models, weighting=["administrative", "ipcw"], times=TIMES, reference="cox")
    options = ["-w", "administrative", "-w", "ipcw", "-t", "3,8,15,29", "-r", "cox", "-m", "brier"]
    code, out, _ = run(capsys, "compare", *files, *options, "--json", "-")
    assert code == 0
    written = json.loads(out)
    found = pd.DataFrame(written["contrasts"])
    pd.testing.assert_frame_equal(found, result.contrasts, rtol=0, atol=1e-12)
    whole = result.integrated().contrasts
    verdicts = pd.DataFrame(written["verdicts"])
    pd.testing.assert_frame_equal(verdicts[whole.columns], whole, rtol=0, atol=1e-12)
    assert written["settings"]["reference"] == "cox"
    code, out, _ = run(capsys, "compare", *files, *options)
    assert code == 0
    for row in whole.to_dict("records"):
        assert printed(out, row["lower"], row["upper"])
    code, out, _ = run(capsys, "compare", *files, *options, "--null", "none", "--csv", tmp_path / "d.csv")
    assert code == 0
    assert "Kaplan-Meier   " not in out
    assert set(pd.read_csv(tmp_path / "d.csv").model) == {"net"}


def test_groups_and_training_data_are_used(capsys, tmp_path):
    y, models, ids = mangling.study()
    labels = np.arange(len(y)) // 4
    frame = pd.DataFrame(
        {"id": ids, "time": y.time, "event": y.event, "censoring_time": y.censoring_time, "who": labels}
    )
    frame.to_csv(tmp_path / "y.csv", index=False)
    _, predictions = mangling.write(tmp_path)
    train, _, _ = mangling.study(seed=5)
    ss.io.write_outcomes(tmp_path / "train.csv", train)
    code, out, _ = run(
        capsys, "score", tmp_path / "y.csv", predictions, "-w", "ipcw", "--train", tmp_path / "train.csv", "--groups",
        "who", "-t", "3,8", "-m", "log", "--divide-by", "n", "--json", "-",
    )  # fmt: skip
    assert code == 0
    found = [row["se"] for row in json.loads(out)["scores"] if row["model"] == "net"]
    weighting = ss.IPCW(train, normalize="n")
    wanted = ss.log_loss(y, models["net"], weighting=weighting, times=[3, 8], groups=labels)
    assert np.allclose(found, wanted.se, rtol=0, atol=1e-12)


def test_dates_with_a_cutoff(capsys, tmp_path):
    assert run(capsys, "simulate", tmp_path, "-n", 300, "--cutoff", "2020-03-31", "--kind", "constant")[0] == 0
    paths = [tmp_path / "outcomes.csv", tmp_path / "truth.csv"]
    code, out, _ = run(capsys, "score", *paths, "--cutoff", "2020-03-31", "-w", "administrative", "-t", "20:80:20",
                       "--json", "-")  # fmt: skip
    assert code == 0
    assert json.loads(out)["settings"]["individuals"] == 300
    assert "need --cutoff" in refused(capsys, "score", *paths, "--start", "start", "-w", "administrative")
    assert "give the data cut-off as --cutoff" in refused(capsys, "score", *paths, "-w", "administrative")


PAPER = ["-w", "administrative", "-w", "ipcw"]


def test_report_says_what_the_library_says_and_where_it_is(capsys, tmp_path, files):
    y, models, ids = mangling.study()
    target = tmp_path / "new" / "report.html"
    code, out, _ = run(capsys, "report", *files, "-o", target, "--title", "Churn <March>", "-t", "8,15", *PAPER)
    assert code == 0
    wanted = ss.report(
        y, models, weighting=["administrative", "ipcw"], ids=ids, times=[8, 15], horizons=[8, 15]
    ).summary
    suspected = wanted["around_censoring"]["sentences"][:1]
    assert out.splitlines() == [*wanted["verdicts"]["sentence"][:2], *suspected, f"Written: {target}"]
    page = target.read_text()
    assert "Churn &lt;March&gt;" in page
    for individual in wanted["curves"]["people"]["individual"]:  # they go by their ids
        assert f"<td>{individual}</td>" in page


def test_options_that_do_not_fit_are_refused(capsys, tmp_path, files):
    for options, message in (
        ([], "--weighting must be given, since there are censored individuals. All censoring times are known"),
        (["-w", "administrative", "--cap", "3"], "--cap is for --weighting ipcw, or administrative with drop-outs; he"),
        (["-w", "uncensored", "--train", files[0]], "--train is for --weighting ipcw or administrative"),
        (["-w", "ipcw", "--dropout", "refuse"], "--dropout is for --weighting administrative"),
        (["-w", "administrative", "--population", "x"], "'x' must be fixed, or a time, zero or later"),
        (["-w", "administrative", "-m", "hinge"], "metric must be one of 'brier', 'log', 'auc'"),
        (["-w", "ipcw", "--train", files[0], "--censoring", files[1]], "must hold one censoring model, not 2"),
        (["-w", "uncensored"], "'uncensored' weighting needs each individual's status"),
        (["-w", "ipcw", "--cap", "0.5"], "'0.5' must be a number of at least 1, or none"),
        (["-w", "ipcw", "--censoring-interpolation", "step"], "--censoring-interpolation is for --censoring"),
        (["-w", "administrative", "--unit", "W"], "--unit is for dates, which need --cutoff"),
        (["-w", "administrative", "--by-order", "--id", "id"], "--id is for matching by id"),
        (["-w", "administrative", "-t", "10", "-t", "20"], "give it once"),
        (["-w", "administrative", "-t", "nowhere.txt"], "'nowhere.txt' is neither a number nor a file"),
        (["-w", "nothing"], "'nothing' is not one of 'uncensored', 'administrative'"),
        (["-w", "administrative", "-t", "5:1:1"], "(START:STOP:STEP, going up)"),
        (["-w", "administrative", "-t", "8,3"], "times must be strictly increasing"),
        (["-w", "administrative", "-t", "8", "--range", "0:9"], "one time, 8, spans no range"),
        (["-w", "administrative", "--range", "0-9"], "must be like 0:365"),
        (["-w", "administrative", "--level", "95"], "level must be between 0 and 1"),
        (["-w", "administrative", "--groups", "nobody"], "there is no column 'nobody'"),
        (["-w", "administrative", "--time", "nothing"], "there is no column 'nothing' (time)"),
        (["-w", "administrative", "--csv", tmp_path / "x.txt"], "must end in .csv"),
        (["-w", "administrative", "--csv", "-", "--json", "-"], "only one of --json and --csv"),
        (["-w", "administrative", "--parquet", "-"], "--parquet can't go to standard output"),
        (["-w", "administrative", "--cutoff", "2017-01-01"], "there is no column 'start'"),
    ):
        assert message in refused(capsys, "score", *files, *options), message
    assert "reference must be one of" in refused(capsys, "compare", *files, "-w", "administrative", "-r", "tree")
    lists = files[1].suffix == ".parquet"
    about_the_grid = "the one given differs" if lists else "a grid is for list columns, and no file has one"
    assert about_the_grid in refused(capsys, "score", *files, "-w", "administrative", "--grid", "1,2")
    assert "must end in .html" in refused(capsys, "report", *files, "-o", tmp_path / "report.pdf")
    before = [path.read_bytes() for path in files]
    for option in ("--csv", "--parquet"):
        if files[0].name.endswith(option[2:]):
            assert "is read and can't be written too" in refused(
                capsys, "score", *files, "-w", "ipcw", option, files[0]
            )
    assert [path.read_bytes() for path in files] == before
    nowhere = files[0] / "x.csv"
    assert f"{nowhere}: can't be written" in refused(capsys, "score", *files, "-w", "ipcw", "--csv", nowhere)
    assert "after the last time" in refused(capsys, "compare", *files, "-w", "administrative", "-t", "99")
    assert "there is no such file" in refused(capsys, "score", tmp_path / "no.csv", "-w", "ipcw")
    spoilt = ["score", files[0], files[0], "-w", "ipcw", "--csv", tmp_path / "new" / "x.csv"]
    assert "no column is named by time" in refused(capsys, *spoilt)
    assert sorted(tmp_path.iterdir()) == sorted(files)


def test_a_model_that_reaches_farther_keeps_its_scores(capsys, tmp_path):
    outcomes, predictions = mangling.write(tmp_path)
    _, models, ids = mangling.study()
    short = ss.SurvivalCurves(models["net"].probabilities[:, :3], models["net"].times[:3])
    ss.io.write_predictions(tmp_path / "short.csv", {"short": short}, ids=ids)
    asked = ["-w", "administrative", "-t", "3,15", "-m", "brier", "--json", "-"]
    rows = json.loads(run(capsys, "score", outcomes, predictions, tmp_path / "short.csv", *asked)[1])["scores"]
    assert {row["model"] for row in rows if row["time"] == 15 and row["score"] is not None} == {"net", "cox"}


def test_a_time_without_score_is_a_note(capsys, files):
    options = ["-w", "administrative", "-t", "3,8,99", "-m", "brier", "--interpolation", "linear"]
    code, _, err = run(capsys, "score", *files, *options)
    assert code == 0
    assert err.startswith(
        "survscore: note: scores are NaN under administrative: 1 time where the predictions end at 30"
    )
    assert err.count("\n") == 1


def test_formats_explains_and_checks(capsys, tmp_path, files):
    code, out, err = run(capsys, "formats")
    assert (code, err) == (0, "")
    assert "censoring_time" in out
    code, out, _ = run(capsys, "formats", "--check", *files)
    assert code == 0
    assert "outcomes: Outcomes(40 individuals" in out
    assert "predictions of 'cox': SurvivalCurves(40 individuals, 5 times from 2.5 to 30" in out
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    assert "holds neither outcomes" in refused(capsys, "formats", other)
    assert "holds neither outcomes" in refused(capsys, "formats", "--check", other)


def options_of(text):
    """Return the long names of the options that a help lists."""
    options = re.split(r"^(?:Options|Input|Times|Method|Output|More):$", text, flags=re.MULTILINE)[1:]
    return re.findall(r"^  (?:-\w, )?--([\w-]+)", "".join(options), flags=re.MULTILINE)


def test_help_is_grouped_by_topic_and_short(capsys):
    """At most 25 options by default, all of them by --help-all; every option is named by a topic."""
    from survscore.cli.options import TOPICS

    for name, command in cli.cli.commands.items():
        usual, every = run(capsys, name, "--help")[1], run(capsys, name, "--help-all")[1]
        assert len(options_of(usual)) <= 25, name
        has = {max(one.opts, key=len)[2:] for one in command.params if isinstance(one, click.Option)}
        if len(has) <= 25:
            assert set(options_of(usual)) == has | {"help"}, name
            continue
        assert set(options_of(every)) == has | {"help"}, name
        assert f"{len(has) + 1 - len(options_of(usual))} more options: survscore {name} --help-all" in usual
        assert [line[:-1] for line in every.splitlines() if line == "More:"] == [], name
        headings = [line[:-1] for line in every.splitlines() if line[:-1] in TOPICS]
        assert headings == [topic for topic in TOPICS if topic in headings], name


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_completes(shell):
    asked = {"bash": {"COMP_WORDS": "survscore sco", "COMP_CWORD": "1"}}.get(
        shell, {"COMP_WORDS": "survscore sco", "COMP_CWORD": "1" if shell == "zsh" else "sco"}
    )
    environment = {**os.environ, **asked, "_SURVSCORE_COMPLETE": f"{shell}_complete"}
    done = subprocess.run(
        [sys.executable, "-c", "from survscore.cli import main; main()"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "score" in done.stdout
    assert "compare" not in done.stdout


def test_repeated_options_count_once(capsys, files):
    asked = ["-w", "ipcw", "-w", "ipcw", "-m", "brier", "-m", "brier", "--cap", 2, "--cap", 2, "--cap", 2.0000001]
    code, out, _ = run(capsys, "score", *files, *asked, "-t", "3,8")
    assert code == 0
    assert out.count(" IPCW (max_weight=2) ") == out.count(" IPCW (max_weight=2.0000001) ") == 3 * 2
    code, out, _ = run(capsys, "compare", *files, *asked, "-t", "3,8", "--json", "-")
    assert len(json.loads(out)["means"]) == 2 * 3


@pytest.mark.parametrize("command", ["score", "compare", "report"])
def test_one_individual_one_time_one_group(capsys, tmp_path, command):
    folder = tmp_path / "one"
    assert run(capsys, "simulate", folder, "-n", 1, "--kind", "constant")[0] == 0
    paths = [folder / f"{name}.csv" for name in ("outcomes", "truth", "leaking")]
    to = ["-o", tmp_path / "r.html"] if command == "report" else []
    code, out, _ = run(capsys, command, *paths, "-w", "administrative", "-t", "1,2", *to)
    assert code == 0
    assert "nan" not in out.lower()
    outcomes, predictions = mangling.write(tmp_path)
    for options in (["-t", "8"], ["-t", "3,8", "--groups", "one"]):
        frame = pd.read_csv(outcomes, dtype={"id": str}).assign(one="x")
        frame.to_csv(outcomes, index=False)
        code, out, _ = run(capsys, command, outcomes, predictions, "-w", "administrative", *options, *to)
        assert code == 0
        assert "nan" not in out.lower()
        if command == "report" and options == ["-t", "8"]:
            assert "its Brier score at 8 differs by" in out


def test_group_labels_are_text(capsys, tmp_path):
    y, _, ids = mangling.study()
    _, predictions = mangling.write(tmp_path)
    found = {}
    labels = {
        "text": [f"c{k // 2}" for k in range(len(y))],
        "zeros": [f"{'0' * (k // 2)}7" for k in range(len(y))],
        "long": [str(12345678901234567890 + k // 2) for k in range(len(y))],
    }
    for name, groups in labels.items():
        frame = pd.DataFrame(
            {"id": ids, "time": y.time, "event": y.event, "censoring_time": y.censoring_time, "g": groups}
        )
        frame.to_csv(tmp_path / "y.csv", index=False)
        options = ["-w", "administrative", "--groups", "g", "-t", "3,8", "--json", "-"]
        out = run(capsys, "score", tmp_path / "y.csv", predictions, *options)[1]
        found[name] = [row["se"] for row in json.loads(out)["scores"]]
    assert np.allclose(found["text"], found["zeros"], rtol=1e-12)
    assert np.allclose(found["text"], found["long"], rtol=1e-12)


def test_simulate_keeps_what_is_there(capsys, tmp_path):
    mine = tmp_path / "outcomes.csv"
    mine.write_text("precious")
    assert "is there already; --force replaces it" in refused(capsys, "simulate", tmp_path)
    assert list(tmp_path.iterdir()) == [mine]
    assert mine.read_text() == "precious"
    assert run(capsys, "simulate", tmp_path, "--force", "-n", 10)[0] == 0
    assert mine.read_text() != "precious"
    for cutoff in ("soon", "01/02/2017", "NaT", "1677-12-01"):
        assert "must be a date like" in refused(capsys, "simulate", tmp_path / "new", "--cutoff", cutoff)
    assert not (tmp_path / "new").exists()
    _, out, _ = run(capsys, "simulate", tmp_path / "my folder", "-n", 10)
    assert f"survscore compare '{tmp_path / 'my folder' / 'outcomes.csv'}'" in out


def test_names_are_printed_as_they_are_and_on_one_line(capsys, tmp_path):
    y, models, _ = mangling.study()
    ss.io.write_outcomes(tmp_path / "y.csv", y)
    names = ["[red]x[/]", ":smile:", "x\\", "new\nline", "\x1b[41mEVIL"]
    ss.io.write_predictions(tmp_path / "p.csv", dict.fromkeys(names, models["net"]))
    code, out, _ = run(capsys, "score", tmp_path / "y.csv", tmp_path / "p.csv", "-w", "administrative", "-t", "3,8")
    assert code == 0
    for name in ("[red]x[/]", ":smile:", "x\\ ", "new\\nline", "\\x1b[41mEVIL"):
        assert name in out, name
    assert "\x1b[41m" not in out
    assert "no such.csv" in refused(capsys, "score", tmp_path / "no\nsuch.csv", "-w", "ipcw")
    (tmp_path / "d.csv").write_text('start,event_date\n"2017\n\x1b]0;owned",\n')
    refused(capsys, "score", tmp_path / "d.csv", "--cutoff", "2017-02-01")
    (tmp_path / "d.csv").write_text(f"start,event_date\n{'x' * 100_000},\n")
    assert len(refused(capsys, "score", tmp_path / "d.csv", "--cutoff", "2017-02-01")) < 1000


def test_times_may_be_many_or_in_a_file(capsys, tmp_path, files, monkeypatch):
    monkeypatch.chdir(tmp_path)
    many = ",".join(str(k / 10) for k in range(1, 290))
    code, out, _ = run(capsys, "score", *files, "-w", "administrative", "-t", many, "--csv", "-", "-m", "brier")
    assert (code, out.count("\n")) == (0, 1 + 2 * 289)
    (tmp_path / "times.txt").write_bytes("\ufeff3\n8\n".encode())
    (tmp_path / "my times.txt").write_text("3\n8\n15\n")
    written = (tmp_path / "times.csv", "3\n8\n")
    written[0].write_text(written[1])
    assert "is read and can't be written" in refused(
        capsys, "score", *files, "-w", "administrative", "-t", "times.csv", "--csv", "times.csv"
    )
    assert written[0].read_text() == written[1]
    (tmp_path / "8").write_text("1")  # a number is a number, whatever files there are
    for given, n in (("times.txt", 2), ("8", 1), ("my times.txt", 3), ("0.1:0.3:0.1", 3)):
        code, out, _ = run(capsys, "score", *files, "-w", "administrative", "-t", given, "--csv", "-", "-m", "brier")
        assert (code, out.count("\n")) == (0, 1 + 2 * n)
    assert ",0.3," in out


def test_a_censoring_model_is_read_as_its_file_says(capsys, tmp_path):
    y, models, ids = mangling.study()
    outcomes, predictions = mangling.write(tmp_path)
    ss.io.write_predictions(tmp_path / "g.parquet", {"G": models["cox"]}, ids=ids)
    asked = ["-w", "ipcw", "--censoring", tmp_path / "g.parquet", "--cap", 5, "-t", "3,8", "-m", "brier", "--json", "-"]
    for option, interpolation in (([], "linear"), (["--censoring-interpolation", "step"], "step")):
        out = run(capsys, "score", outcomes, f"net={predictions}", *asked, "--interpolation", "step", *option)[1]
        G = ss.SurvivalCurves(models["cox"].probabilities, models["cox"].times, interpolation=interpolation)
        net = ss.SurvivalCurves(models["net"].probabilities, models["net"].times, interpolation="step")
        wanted = ss.brier_score(y, net, weighting=ss.IPCW(G, max_weight=5), times=[3, 8]).scores
        found = [row["score"] for row in json.loads(out)["scores"]]
        assert np.allclose(found, wanted, rtol=0, atol=1e-12)


def test_results_name_all_options(capsys, files):
    asked = ["-w", "administrative", "-t", "3,8", "--range", "3:8", "--monotone", "keep", "--json", "-"]
    options = json.loads(run(capsys, "score", *files, *asked)[1])["settings"]["options"]
    assert options["horizons"] == [3, 8]
    assert options["range"] == [3, 8]
    assert options["weighting"] == ["administrative"]
    assert options["monotone"] == "keep"


def test_arguments_in_messages_are_options():
    """Whatever Python stands in backticks has an option that exists; anything else stays as it is."""
    known = {name for command in cli.cli.commands.values() for one in command.params for name in one.opts}
    words = [word for text in (*OTHER_CODE.values(), *OTHER_NAMES.values()) for word in re.findall(r"--[\w-]+", text)]
    assert set(words) <= known
    source = "".join(path.read_text() for path in Path(ss.__file__).parent.rglob("*.py"))
    assert [code for code in OTHER_CODE if f"`{code}`" not in source] == []
    assert one_line("`percent=True` takes\nthese, `id` or `nothing=1`") == "--percent takes these, --id or nothing=1"


def test_advice_is_given_in_options(capsys, tmp_path):
    (tmp_path / "y.csv").write_text("start,event_date\n2017-03-01,\n2017-01-01,\n")
    asked = ["score", tmp_path / "y.csv", tmp_path / "p.csv", "-w", "administrative", "--cutoff", "2017-02-01"]
    (tmp_path / "p.csv").write_text("3,8\n0.5,0.7\n0.9,0.4\n")
    assert "--drop-late-starts leaves" in refused(capsys, *asked)
    assert "--monotone keep or --monotone enforce" in refused(capsys, *asked, "--drop-late-starts")
    code, out, err = run(capsys, *asked, "--drop-late-starts", "--monotone", "keep")
    assert (code, "1 individual" in out) == (0, True)
    assert err.startswith("survscore: note: left out 1 individual")


def test_a_terminal_without_utf8_gets_an_answer(tmp_path):
    paths = [str(path) for path in mangling.write(tmp_path)]
    command = ["-m", "survscore", "score", *paths, "-w", "administrative", "-t", "5,10"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "net" in done.stdout


def test_one_model_alone_has_nothing_to_compare_with(capsys, tmp_path):
    outcomes, predictions = mangling.write(tmp_path)
    alone = [outcomes, f"net={predictions}", "-w", "administrative", "-t", "3,8"]
    code, out, _ = run(capsys, "compare", *alone, "--null", "none")
    assert (code, "reference" in out) == (0, True)
    code, out, _ = run(capsys, "compare", *alone, "--null", "none", "--csv", "-")
    assert out.splitlines()[0].startswith("metric,weighting,model,reference,time,difference")
    assert run(capsys, "report", *alone, "-o", tmp_path / "r.html")[0] == 0


def test_a_new_metric_or_weighting_is_offered_at_once(capsys):
    from survscore.cli.options import METRIC
    from survscore.metrics import METRICS
    from survscore.weighting import WEIGHTINGS

    asked = {name: f"{name}@0.2" if name == "net_benefit" else name for name in METRICS}
    assert [METRIC.convert(name, None, None) for name in asked.values()] == list(asked.values())
    assert [one.value for one in METRIC.shell_complete(None, None, "")] == list(METRICS)
    assert f"[{'|'.join(WEIGHTINGS)}|known]" in run(capsys, "score", "--help")[1]


@pytest.fixture
def lost(tmp_path):
    """Write files of 1000 individuals of whom nine dropped out; return the paths and the outcomes."""
    from survscore.io import write_study

    paths = write_study(tmp_path, "simple", n=1000, seed=1, ending="csv")[:3]
    frame = pd.read_csv(paths[0])
    rows = frame.index[(frame.event == 0) & (frame.time > 20)][:9]
    frame.loc[rows, "time"] *= 0.5
    frame.to_csv(paths[0], index=False)
    return paths, ss.Outcomes(frame.time, frame.event, frame.censoring_time)


BOTH = [*PAPER, "-t", "5:90:5"]


def test_drop_outs_are_weighted_for_and_bounded(capsys, lost):
    paths, y = lost
    models = ss.io.read_study(*paths[:1], paths[1:]).models
    times = np.arange(5, 91, 5.0)
    result = ss.compare(y, models, weighting=["administrative", "ipcw"], times=times).integrated()
    code, out, _ = run(capsys, "compare", *paths, *BOTH, "-m", "brier", "--json", "-")
    assert code == 0
    written = json.loads(out)
    assert written["settings"]["dropped_out"] == 9
    assert written["settings"]["weightings"][0] == "administrative (drop-out by Kaplan-Meier in risk strata)"
    for name, wanted in (("means", result.scores), ("verdicts", result.contrasts)):
        found = pd.DataFrame(written[name])
        for column in ("bound_lower", "bound_upper"):
            assert np.allclose(found[column].astype(float), wanted[column], rtol=0, atol=1e-12, equal_nan=True)
    code, out, _ = run(capsys, "compare", *paths, *BOTH, "-m", "brier")
    assert code == 0
    text = " ".join(out.split())
    assert "1000 individuals, 9 dropped out" in text
    assert "The verdict holds whatever happened to the 9 of 1,000 who dropped out" in text
    assert "Weightings contradict each other" in text
    row = result.contrasts.iloc[0]
    assert f"{row.bound_lower:+.4f} to {row.bound_upper:+.4f}" in run(capsys, "compare", *paths, *BOTH, "--full")[1]
    code, out, _ = run(capsys, "score", *paths, *BOTH, "-m", "brier")
    assert code == 0
    mean = ss.brier_score(y, models["truth"], weighting="administrative", times=times).integrated()
    assert "{:.4f} to {:.4f}".format(*mean.bounds) in out
    assert "Whatever happened to the 9 of 1,000 who dropped out" in out


def test_the_report_goes_by_the_weighting_to_trust(capsys, tmp_path, lost):
    paths, y = lost
    code, out, _ = run(capsys, "report", *paths, "-o", tmp_path / "r.html", *BOTH)
    assert code == 0
    first, verdict, *_ = out.splitlines()
    assert first == "9 of 1,000 dropped out."
    assert verdict.startswith("leaking is significantly worse than truth: its mean Brier score")
    assert "Whatever" in verdict or "whatever" in verdict
    assert "IPCW is misleading here: leaking encodes the censoring time" in out
    code, out, _ = run(capsys, "report", *paths, "-o", tmp_path / "r.html", "-t", "5:90:5", "-w", "ipcw")
    assert code == 0
    assert out.startswith("Careful. This answer is based on an IPCW score.")
    assert "leaking is significantly better than truth" in out
    ss.io.write_outcomes(paths[0], ss.Outcomes(y.time, y.event), ids=np.arange(1, 1001))  # C* is not known
    code, out, _ = run(capsys, "report", *paths, "-o", tmp_path / "r.html", "-t", "5:90:5")
    assert code == 0
    assert out.startswith("Careful. This answer is based on an IPCW score.")
    assert "(--cutoff derives it) and use 'administrative'" in out
    assert "IPCW()" not in out


def test_options_about_drop_outs(capsys, tmp_path, lost):
    paths, y = lost
    curves = ss.io.read_study(paths[0], paths[1:]).models["truth"]
    times = [10.0, 20, 30, 40]
    asked = ["score", *paths[:2], "-w", "administrative", "-t", "10:40:10", "-m", "brier"]
    train = ss.Outcomes(y.time[::-1] * 0.9, y.event[::-1], y.censoring_time[::-1])
    ss.io.write_outcomes(tmp_path / "train.csv", train)
    for options, weighting in (
        ([], ss.Administrative()),
        (["--dropout", "kaplan-meier"], ss.Administrative()),
        (["--train", tmp_path / "train.csv"], ss.Administrative(train)),
        (["--cap", 1, "--divide-by", "n"], ss.Administrative(max_weight=1, normalize="n")),
        (["--population", "fixed"], ss.Administrative(population="fixed")),
        (["--population", "50"], ss.Administrative(population=50)),
    ):
        code, out, _ = run(capsys, *asked, *options, "--json", "-")
        assert code == 0, options
        wanted = ss.brier_score(y, curves, weighting=weighting, times=times)
        table = pd.DataFrame(json.loads(out)["scores"])
        assert list(table.weighting.unique()) == [wanted.weighting]
        assert np.allclose(table.score, wanted.scores, rtol=0, atol=1e-12)
        assert np.allclose(table.se, wanted.se, rtol=0, atol=1e-12)
    assert "9 individuals of 1000 dropped out" in refused(capsys, *asked, "--dropout", "refuse")
    without = ss.Outcomes(y.time, y.event, np.where(y.dropped_out, y.time, y.censoring_time))
    ss.io.write_outcomes(tmp_path / "nobody.csv", without)
    assert "--train: no individual dropped out in the given outcomes" in refused(
        capsys, *asked, "--train", tmp_path / "nobody.csv"
    )
    ss.io.write_outcomes(tmp_path / "unknown.csv", ss.Outcomes(y.time, y.event))
    assert "--train: the given outcomes need censoring_time" in refused(
        capsys, *asked, "--train", tmp_path / "unknown.csv"
    )


def test_the_null_model_can_be_the_share_of_those_counted(capsys, tmp_path, files):
    target = tmp_path / "found.json"
    code, _, _ = run(
        capsys, "compare", *files, "-w", "administrative", "-t", "3:15:3", "--null", "counted", "--json", target
    )
    assert code == 0
    assert {row["model"] for row in json.loads(target.read_text())["scores"]} >= {"share of those counted"}
    page = tmp_path / "report.html"
    code, _, _ = run(capsys, "report", *files, "-t", "3:15:3", "--null", "counted", "-o", page)
    assert code == 0
    assert "score of share of those counted" in page.read_text()
    code, _, err = run(capsys, "compare", *files, "-w", "administrative", "--null", "everybody")
    assert code == 2
    assert "--null" in err


def test_score_prints_the_parts_of_projected_scores(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    files = mangling.write(tmp_path, "csv")
    code, out, _ = run(
        capsys, "score", *files, "-w", "projected", "-t", "3,8", "-m", "brier", "--json", tmp_path / "all.json"
    )
    assert code == 0
    code, out, _ = run(capsys, "score", *files, "-w", "projected", "-t", "3,8", "-m", "brier")
    y, models, _ = mangling.study()
    score = ss.brier_score(y, models["net"], weighting="projected", times=[3.0, 8.0])
    written = [
        *score.parts[["share_observed", "observed", "projected"]].to_numpy(),
        score.integrated().parts,
    ]
    for share, observed, projected in written:
        assert f"{observed:.4f} ({100 * share:.0f} %)" in out
        if share < 1:  # at 3, all have C* >= t
            assert f"{projected:.4f} ({100 - 100 * share:.0f} %)" in out
    assert written[1][0] < 1
    rows = json.loads((tmp_path / "all.json").read_text())["means"]
    assert rows[0]["share_observed"] == pytest.approx(written[-1][0])
    code, out, _ = run(capsys, "compare", *files, "-w", "projected", "-t", "8", "-m", "brier", "--full")
    assert f"at 8, observed (C* >= t, {100 * written[1][0]:.0f} %): " in out
