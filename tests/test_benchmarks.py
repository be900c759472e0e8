"""Numbers of benchmarks reach the pages and the README by the files that benchmarks write, and in no other way."""

import argparse
import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

import readme
import results
from report import cells
from results import Results, Run, quote

ROOT = Path(__file__).parent.parent
NAMES = sorted(path.stem for path in results.FOLDER.glob("*.json"))
PAGES = {path: path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.rst")}
TEXT = "\n".join(PAGES.values())


def make_run(monkeypatch, folder, *arguments):
    """Return a run of an imaginary script, whose file is in `folder`."""
    monkeypatch.setattr(sys, "argv", ["imagined.py"])
    parser = results.parser("An imaginary benchmark.")
    parser.add_argument("--rows", type=int, default=10)
    parser.add_argument("--groups", action="store_true")
    parser.add_argument("--only", nargs="+", default=())
    parser.add_argument("--where", type=Path)
    parser.add_argument("--step", help=argparse.SUPPRESS)
    options = parser.parse_args([*arguments, "--json", str(folder / "deep" / "imagined.json")])
    return Run(parser, options, packages=("numpy", "not-installed"), device="a GPU", times=5)


def test_what_a_run_writes_is_what_is_read(monkeypatch, tmp_path, capsys):
    run = make_run(monkeypatch, tmp_path, "--groups", "--only", "one", "a b", "--where", str(tmp_path))
    rows = [{"name": "first", "seconds": 0.12345678, "error": float("nan")}, {"name": "second", "seconds": "not run"}]
    run.add("times", {"what": "{name}", "ms": "{seconds:ms}", "error": "{error}"}, rows, "Times")
    run.add("hidden", {"what": "{name}"}, rows, show=False)
    run.write()
    out = capsys.readouterr().out
    assert "## Times\n\n| what   |      ms | error |" in out
    assert "| second | not run |       |" in out
    assert "hidden" not in out

    found = Results.read("imagined", tmp_path / "deep")
    content = found.content
    assert content["command"] == "python benchmarks/imagined.py --groups --only one 'a b'"
    assert content["settings"] == {"rows": 10, "groups": True, "only": ["one", "a b"], "times": 5}
    assert content["machine"]["device"] == "a GPU"
    assert content["machine"]["cores"] >= 1
    assert set(content["versions"]) == {"Python", "survscore", "numpy"}
    assert str(tmp_path) not in found.path.read_text(encoding="utf-8")
    table = found.table("times")
    assert table["rows"] == [{"name": "first", "seconds": 0.123457}, {"name": "second", "seconds": "not run"}]
    assert cells(table["columns"], table["rows"]) == [["first", "123", ""], ["second", "not run", ""]]
    assert quote("imagined | times | first | {seconds:ms} ms", tmp_path / "deep") == "123 ms"
    assert quote("imagined | settings | {rows} x {times}", tmp_path / "deep") == "10 x 5"


@pytest.mark.parametrize("name", NAMES)
def test_a_file_says_where_its_numbers_are_from(name):
    content = Results.read(name).content
    assert content["machine"].get("cores") or content["machine"].get("device")
    assert "Python" in content["versions"] or "an earlier run" in content["note"]
    assert not content["settings"].get("quick")
    program, script, *_ = content["command"].split()
    assert program == "python"
    assert (ROOT / script).is_file()
    assert not re.search(r"(^|[\s\"])/\w", content["command"] + json.dumps(content["settings"]))


@pytest.mark.parametrize("name", NAMES)
def test_a_page_shows_each_file_and_says_which_run_it_was(name):
    assert re.search(rf"^\.\. benchmark:: {name} \|", TEXT, flags=re.MULTILINE)
    assert f".. benchmark-run:: {name}\n" in TEXT


def test_all_that_pages_ask_for_is_there():
    asked = re.findall(r"^\.\. benchmark:: (\w+) \| (.+)\n((?:   :.*\n)*)", TEXT, flags=re.MULTILINE)
    assert len(asked) > 20
    for file, table, options in asked:
        columns = Results.read(file).table(table)["columns"]
        for option in re.findall(r":(?:columns|bars): (.+)", options):
            assert {part.strip() for part in option.split("|")} <= set(columns), (file, table)
    quoted = re.findall(r":measured:`(.+?)`", TEXT)
    assert len(quoted) > 20
    for address in quoted:
        assert quote(address)


def test_the_readme_quotes_the_files():
    text = readme.README.read_text(encoding="utf-8")
    assert readme.with_part(text) == text, "python benchmarks/readme.py writes it anew"


def test_what_the_readme_claims_of_networks():
    run = Results.read("convergence_stopping")
    rows, peer = run.table("scores")["rows"], "pycox, early stopping"
    rows = [row for row in rows if row["weighting"] != "uncensored"]
    assert (sum(row["survscore"] < row[peer] for row in rows), len(rows)) == (7, 7)
    assert sum(row[f"less {peer}"] < -2 * row[f"error {peer}"] for row in rows) == 5
    times = [row["seconds survscore"] / row[f"seconds {peer}"] for row in run.table("summary")["rows"]]
    text = " ".join(readme.README.read_text(encoding="utf-8").split())
    assert len(run.content["settings"]["seeds"]) == 3
    claim = "lower than those of pycox with plain early stopping on all of seven data sets (means over three seeds;"
    assert f"{claim} by more than two standard errors on five)" in text
    assert f"for {min(times):.1f} to {max(times):.1f} times its processor time" in text


def test_a_script_writes_what_the_page_reads(tmp_path):
    """The smallest of them; all others write in the same way."""
    path = tmp_path / "cores.json"
    small = ["--rows", "600", "--group-rows", "600", "--groups", "--json", str(path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])}
    script = [sys.executable, str(ROOT / "benchmarks" / "cores.py"), *small]
    subprocess.run(script, check=True, capture_output=True, env=environment)
    found, shown = Results.read("cores", tmp_path), Results.read("cores")
    assert found.content["command"] == "python benchmarks/cores.py --rows 600 --groups --group-rows 600"
    assert set(found.content["settings"]) == set(shown.content["settings"]) | {"rows"}
    assert found.table("groups")["columns"] == shown.table("groups")["columns"]
    names = [[row["name"] for row in one.table("cores")["rows"]] for one in (found, shown)]
    assert names[0] == names[1]
    assert all(quote(address, tmp_path) for address in re.findall(r":measured:`(cores \|.+?)`", TEXT))


def built(tmp_path, page):
    """Build a page with the directives, and return its HTML and what was complained about."""
    (tmp_path / "benchmarks").mkdir()
    rows = [{"name": "pycox, *Brier*", "seconds": 0.5, "n": 20_000}, {"name": "``score``", "seconds": 0.1, "n": 7}]
    columns = {"what": "{name}", "ms": "{seconds:ms}", "rows": "{n}", "wanted": "{wanted}"}
    content = {
        "command": "python benchmarks/scores.py --rows 3",
        "machine": {"cores": 2, "processor": "some_processor"},
        "versions": {"Python": "3.11"},
        "settings": {"rows": 3_000},
        "note": "As measured.",
        "tables": {"times": {"columns": columns, "rows": rows}},
    }
    (tmp_path / "benchmarks" / "made.json").write_text(json.dumps(content), encoding="utf-8")
    extension = ROOT / "docs" / "_ext"
    (tmp_path / "conf.py").write_text(
        f"import sys\nsys.path.insert(0, {str(extension)!r})\nextensions = ['benchmark_tables']\n", encoding="utf-8"
    )
    (tmp_path / "index.rst").write_text(f"Page\n====\n\n{page}\n", encoding="utf-8")
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", str(tmp_path), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return (tmp_path / "out" / "index.html").read_text(encoding="utf-8"), done.stderr


needs_sphinx = pytest.mark.skipif(find_spec("sphinx") is None, reason="the extra docs is not installed")


@needs_sphinx
def test_a_page_shows_runs_tables_bars_and_numbers(tmp_path):
    html, complaints = built(
        tmp_path,
        ".. benchmark-run:: made\n\n.. benchmark:: made | times\n   :bars: ms\n\n"
        "It took :measured:`made | times | pycox, *Brier* | {seconds:ms} ms` of "
        ":measured:`made | settings | {rows}` rows.\n\n"
        ".. benchmark:: made | times\n   :columns: rows\n",
    )
    assert not complaints
    assert "--rows" in html
    assert "2 cores (some_processor); Python 3.11" in html
    assert "As measured." in html
    assert 'href="_downloads/' in html
    assert re.findall(r"<th[^>]*><p>(.*?)</p>", html) == ["what", "ms", "rows", "rows"]
    assert "<p>pycox, *Brier*</p>" in html
    assert "<p>20\N{NO-BREAK SPACE}000</p>" in html
    assert re.findall(r"width: ([\d.]+)%", html) == ["100.0", "20.0"]
    assert "It took 500 ms of 3\N{NO-BREAK SPACE}000 rows." in html
