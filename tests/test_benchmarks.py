"""Numbers of benchmarks reach the pages and the README by the files that benchmarks write, and in no other way."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

import readme
import results
from results import Results, quote

ROOT = Path(__file__).parent.parent
NAMES = sorted(path.stem for path in results.FOLDER.glob("*.json"))
PAGES = {path: path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.rst")}
TEXT = "\n".join(PAGES.values())


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
