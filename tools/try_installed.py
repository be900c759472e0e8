"""Try what is installed beside this interpreter, as a user would: both ways to start the command, and scores of files.

``python tools/try_installed.py FOLDER`` writes into a folder, and ends with the first thing that does not work. Where
jinja2 is installed it writes a report, and where torch is, it runs the demo.
"""

import subprocess
import sys
import sysconfig
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

PICTURES = {".png", ".svg", ".pdf", ".gif", ".jpg"}


def run(*command):
    """Run a command, and return what it prints."""
    print("$", *command, flush=True)
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout


def main(folder):
    """Try everything."""
    installed = Path(str(files("survscore")))
    if Path(sysconfig.get_path("purelib")).resolve() not in installed.resolve().parents:
        raise SystemExit(f"try_installed.py: survscore is imported from {installed}, which is not installed")
    if not (installed / "py.typed").exists():
        raise SystemExit("try_installed.py: the package has no py.typed")
    needless = [path for path in installed.rglob("*") if path.suffix in PICTURES or path.name.startswith("test")]
    if needless:
        raise SystemExit(f"try_installed.py: the wheel contains tests or pictures, such as {needless[0]}")
    scripts = Path(sysconfig.get_path("scripts"))
    command = str(next(path for path in (scripts / "survscore", scripts / "survscore.exe") if path.exists()))
    for start in ([command], [sys.executable, "-m", "survscore"]):
        if run(*start, "--version").split()[-1] != version("survscore"):
            raise SystemExit("try_installed.py: the command tells another version than the package")
    outcomes, *models = (str(folder / name) for name in ("outcomes.csv", "truth.csv", "leaking.csv"))
    run(command, "simulate", str(folder))
    from_csv = run(command, "compare", outcomes, *models)
    if "Brier" not in from_csv:
        raise SystemExit("try_installed.py: no scores were printed")
    from pyarrow import csv, parquet

    as_parquet = [str(Path(name).with_suffix(".parquet")) for name in (outcomes, *models)]
    for name, copy in zip((outcomes, *models), as_parquet, strict=True):
        parquet.write_table(csv.read_csv(name), copy)
    if run(command, "compare", *as_parquet) != from_csv:
        raise SystemExit("try_installed.py: Parquet files give other scores than CSV files")
    if find_spec("jinja2") is not None:
        page = folder / "report.html"
        run(command, "report", outcomes, *models, "-o", str(page))
        if "</html>" not in page.read_text(encoding="utf-8"):
            raise SystemExit(f"try_installed.py: {page} is no whole page")
    if find_spec("torch") is not None:
        print(run(command, "demo", "--size", "quick", "--out", str(folder / "demo")))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
