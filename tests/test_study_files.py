"""Study files: the same bytes as the long command, and one line about what is wrong with them."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mangling
from commands import refused, run
from survscore.cli.files import LARGEST
from survscore.io import write_outcomes

OUTCOMES = {"file": "y.csv", "id": "customer", "time": "days", "event": "churned", "unit": "day"}
MODELS = {
    "cox": {"file": "cox.csv", "columns": "month_{time}", "unit": "month", "predicts": "event"},
    "net": {"file": "deep/net.csv", "percent": True},
}
SCORE = {"horizons": [3, 8, 15], "weighting": ["administrative", "ipcw"], "cap": [2, "none"], "metric": ["brier"]}
LONG = [
    "y.csv", "cox=cox.csv[columns=month_{time},unit=month,predicts=event]", "net=deep/net.csv[percent]",
    "--id", "customer", "--time", "days", "--event", "churned", "--unit", "day", "-w", "administrative", "-w", "ipcw",
    "--cap", "2", "--cap", "none", "-m", "brier",
]  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Write outcomes and two files of predictions that differ in all that they can."""
    monkeypatch.chdir(tmp_path)
    y, models, ids = mangling.study(n=60)
    write_outcomes(tmp_path / "y.csv", y, ids=ids)
    table = pd.read_csv("y.csv").rename(columns={"id": "customer", "time": "days", "event": "churned"})
    table.assign(country=np.arange(60) % 2).to_csv("y.csv", index=False)
    curves = models["net"]
    (tmp_path / "deep").mkdir()
    months = [f"month_{float(time) / 30.4375!r}" for time in curves.times]
    pd.DataFrame(1 - curves.probabilities, columns=months).assign(customer=ids).to_csv("cox.csv", index=False)
    percent = pd.DataFrame(100 * curves.probabilities**1.2, columns=[f"{time:g}" for time in curves.times])
    percent.assign(customer=ids).to_csv("deep/net.csv", index=False)
    return tmp_path


def as_toml(tables, above=""):
    """Return tables as TOML: JSON writes names, texts, numbers, flags and lists as TOML does, but for NaN."""
    text = ""
    for name, table in tables.items():
        head = f"{above}{json.dumps(name, ensure_ascii=False)}"
        inside = {key: value for key, value in table.items() if isinstance(value, dict)}
        plain = {key: value for key, value in table.items() if key not in inside}
        lines = [f"{json.dumps(key)} = {json.dumps(value)}" for key, value in plain.items()]
        text += "\n".join([f"[{head}]", *lines]).replace("NaN", "nan").replace("Infinity", "inf") + "\n"
        text += as_toml(inside, f"{head}.")
    return text


def study(path="study.toml", **tables):
    with open(path, "w", encoding="utf-8") as file:
        file.write(as_toml({"outcomes": OUTCOMES, "models": MODELS, "score": SCORE, **tables}))
    return path


@pytest.mark.parametrize("results", [[], ["--json", "-"], ["--csv", "-"]])
@pytest.mark.parametrize("command", ["score", "compare"])
def test_the_same_bytes_as_the_long_command(capsys, folder, command, results):
    wanted = run(capsys, command, *LONG, "-t", "3,8,15", *results)
    assert wanted[0] == 0, wanted
    assert run(capsys, command, "--study", study(), *results) == wanted


def test_a_report_is_the_same(capsys, folder):
    assert run(capsys, "report", *LONG, "-t", "3,8,15", "--title", "Churn", "-o", "a.html", "-r", "net")[0] == 0
    said = {"title": "Churn", "out": "a.html", "reference": "net"}
    long = (folder / "a.html").read_bytes()
    (folder / "a.html").unlink()
    assert run(capsys, "report", "--study", study(report=said))[0] == 0
    assert (folder / "a.html").read_bytes() == long


def test_the_command_line_wins(capsys, folder):
    path = study()
    wanted = run(capsys, "score", *LONG[:-2], "-m", "log", "-t", "8", "--json", "-")
    assert run(capsys, "score", "--study", path, "-m", "log", "-t", "8", "--json", "-") == wanted
    other = run(capsys, "score", "--study", path, "y.csv", f"mine{LONG[1][3:]}", "--json", "-")
    assert set(json.loads(other[1])["settings"]["curves"]) == {"mine"}
    assert run(capsys, "score", "--study", path, "--weighting", "ipcw", "--cap", "none", "--csv", "-")[0] == 0


def test_a_command_s_own_table_wins_over_that_of_all(capsys, folder):
    path = study(compare={"horizons": "8,15", "reference": "net"})
    wanted = run(capsys, "compare", *LONG, "-t", "8,15", "-r", "net", "--json", "-")
    assert run(capsys, "compare", "--study", path, "--json", "-") == wanted
    assert (
        run(capsys, "score", "--study", path, "--json", "-")[1]
        == run(capsys, "score", *LONG, "-t", "3,8,15", "--json", "-")[1]
    )


def test_files_are_beside_the_study_file(capsys, folder, monkeypatch):
    (folder / "times.txt").write_text("3 8 15")
    study(score={**SCORE, "horizons": "times.txt"})
    wanted = run(capsys, "score", "--study", "study.toml", "--csv", "-")
    assert wanted[0] == 0
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    assert run(capsys, "score", "--study", "../study.toml", "--csv", "-") == wanted
    assert run(capsys, "score", "--study", folder / "study.toml", "--csv", "-") == wanted


def test_dates_need_no_quotes(capsys, folder):
    (folder / "d.csv").write_text("id,start,event_date\na,2016-11-01,2017-01-15\nb,2016-12-15,\n")
    (folder / "p.csv").write_text("id,10,30\na,0.9,0.5\nb,0.9,0.8\n")
    (folder / "study.toml").write_text(
        '[outcomes]\nfile = "d.csv"\ncutoff = 2017-01-29\n[models]\nfile = "p.csv"\n'
        '[score]\nweighting = "administrative"\n'
    )
    wanted = run(capsys, "score", "d.csv", "p.csv", "--cutoff", "2017-01-29", "-w", "administrative", "--json", "-")
    assert wanted[0] == 0
    assert run(capsys, "score", "--study", "study.toml", "--json", "-") == wanted


def test_the_study_file_is_not_overwritten(capsys, folder):
    path = study(report={"out": "study.html"})
    (folder / "study.toml").rename(folder / "study.html")
    assert "is read and can't be written too" in refused(capsys, "report", "--study", "study.html")
    assert path


# What is wrong with them


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "[outcome]\nfile = 'y.csv'",
            "there is no 'outcome', did you mean outcomes? Known are outcomes, models, score",
        ),
        ("[score]\nweigthing = ['ipcw']", "[score] there is no 'weigthing', did you mean weighting? Known are"),
        ("[models.cox]\nfile = 'c.csv'\npredict = 'event'", "there is no 'predict', did you mean predicts?"),
        ("outcomes = 'y.csv'", "outcomes must be a table, [outcomes], not a value"),
        ("[models]\ncox = 'c.csv'", "[models] there is no 'cox'"),
        ("[models.cox]\ncolumns = '{time}'", "[models.cox] must say the file of the predictions"),
        ("[models.cox]\nfile = ['a', 'b']", "[models.cox] file must name a file, not"),
        ("[models.cox]\nfile = 'c.csv'\npercent = 'yes'", "[models.cox] percent must be true or false, not 'yes'"),
        ("[outcomes]\nfile = 3", "[outcomes] file must name a file, not '3'"),
        ("[outcomes]\nfile = 'y.csv'\ntime = ['a']", "[outcomes] time must be text or a number, not"),
        ("[outcomes]\nfile = 'y.csv'\n[outcomes.time]\na = 1", "[outcomes] time must be text or a number"),
        ("[outcomes]\nfile = 'y.csv'\ndrop-late-starts = 1", "drop-late-starts must be true or false, not '1'"),
        ("[score]\nhorizons = [nan]", "[score] horizons must be a finite number, not nan"),
        ("[outcomes]\nfile = 'y.csv'\n[score]\nweighting = 'ipwc'", "'ipwc' is not one of"),
        ("[score]\nweighting = [{a = 1}]", "[score] weighting must be text or a number"),
        ("[outcomes]\nfile = 'y.csv'\n[score]\nhorizons = 'soon'", "'soon' is neither a number nor a file"),
        ("[outcomes", "is no TOML"),
        ("[outcomes]\nfile = 'none.csv'\n[score]\nweighting = 'ipcw'", "none.csv: there is no such file"),
        ('[outcomes]\nfile = "a\\u0000b.csv"', "must name a file"),
        ('[outcomes]\nfile = "\\u001b[31m.csv"\n[score]\nweighting="ipcw"', "\\x1b[31m.csv: there is no such file"),
        ("x = " + "[" * 3000 + "]" * 3000, "is no TOML"),
    ],
)
def test_what_is_wrong_is_one_line(capsys, folder, content, message):
    (folder / "bad.toml").write_text(content, encoding="utf-8")
    assert message in refused(capsys, "score", "--study", "bad.toml")


def test_files_that_are_no_study_files(capsys, folder):
    (folder / "latin.toml").write_bytes("[outcomes]\nfile = 'küche.csv'".encode("latin-1"))
    assert "is not written in UTF-8" in refused(capsys, "score", "--study", "latin.toml")
    (folder / "huge.toml").write_bytes(b"# nothing\n" * (LARGEST // 10 + 1))
    assert "more than 1 MB" in refused(capsys, "score", "--study", "huge.toml")
    assert "is a folder, not a file" in refused(capsys, "score", "--study", folder)
    assert "there is no such file" in refused(capsys, "score", "--study", "none.toml")
    (folder / "zero.toml").symlink_to("/dev/zero")
    assert "is a device, not a file" in refused(capsys, "score", "--study", "zero.toml")


ANY = settings(max_examples=100)
KEYS = st.one_of(
    st.sampled_from(
        ["outcomes", "models", "score", "file", "time", "weighting", "horizons", "columns", "percent", "cutoff"]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5),
)
LEAVES = st.one_of(
    st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    st.sampled_from(["y.csv", "cox.csv", "ipcw", "days"]),
)  # fmt: skip
TABLES = st.dictionaries(
    KEYS, st.dictionaries(KEYS, st.one_of(LEAVES, st.lists(LEAVES, max_size=3)), max_size=4), max_size=4
)


@ANY
@given(TABLES)
def test_any_tables_get_an_answer(capsys, folder, tables):
    (folder / "any.toml").write_text(as_toml(tables), encoding="utf-8")
    before = sorted(folder.rglob("*"))
    code, out, err = run(capsys, "score", "--study", "any.toml")
    assert code in (0, 2)
    assert code == 0 or (out == "" and err.count("\n") == 1)
    assert sorted(folder.rglob("*")) == before


@ANY
@given(st.binary(max_size=200))
def test_any_bytes_get_an_answer(capsys, folder, content):
    (folder / "any.toml").write_bytes(content)
    refused(capsys, "score", "--study", "any.toml")
