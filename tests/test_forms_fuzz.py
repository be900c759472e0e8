"""Whatever form files are said to have, and whatever they hold: a result, or one line and exit code 2."""

import contextlib
import io as streams
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

import mangling
from survscore import cli, io

MONTH = 365.25 / 12
COMMANDS = {
    "score": (["-t", "3,8"], "--csv", "out.csv"),
    "compare": (["-t", "3,8"], "--json", "out.json"),
    "table": (["-t", "8", "-m", "brier"], "-o", "out.md"),
    "report": (["-t", "3,8", "-m", "brier", "--individuals", "1"], "-o", "out.html"),
    "evaluate": (["-t", "3,8"], "--parquet", "out.parquet"),
}
LAYOUTS = ("wide", "long", "transposed", "months")
ENDINGS = ("csv", "csv.zst", "csv.gz", "parquet", "arrow", "feather")
# Options of all files, and of one alone, right or wrong.
OPTIONS = ["--predicts event", "--percent", "--transposed", "--long", "--predictions-unit month", "--unit D",
           "--columns month_{time}", "--interpolation step", "--extrapolation hold", "--monotone enforce",
           "--grid 1,2,3", "--cutoff 2017-01-29", "--event time", "--id time", "--by-order"]  # fmt: skip
OWN = ["predicts=event", "percent", "transposed", "long", "unit=month", "columns=month_{time}", "interpolation=step",
       "grid=1:3", "monotone=keep", "nothing", "unit=", "percent=1", ""]  # fmt: skip


def predictions(layout, event, percent):
    _, models, ids = mangling.study(n=55)
    curves = models["net"]
    values = 1 - curves.probabilities if event else curves.probabilities
    values = 100 * values if percent else values
    if layout == "transposed":
        return pd.DataFrame(values.T, columns=ids, index=pd.Index(curves.times, name="time")).reset_index()
    names = [f"month_{float(time) / MONTH!r}" if layout == "months" else f"{time:g}" for time in curves.times]
    frame = pd.DataFrame(values, columns=names).assign(id=ids)
    if layout != "long":
        return frame
    return frame.melt(id_vars="id", var_name="time", value_name="survival").astype({"time": float})


def run(arguments, given_by_standard_input):
    out, err = streams.StringIO(), streams.StringIO()
    stdin = SimpleNamespace(buffer=streams.BytesIO(given_by_standard_input), isatty=lambda: False)
    code = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), mock.patch.object(sys, "stdin", stdin):
        try:
            cli.main([str(one) for one in arguments])
        except SystemExit as stop:
            code = stop.code
    return code, out.getvalue(), err.getvalue()


@settings(max_examples=160)
@given(
    command=st.sampled_from(list(COMMANDS)), layout=st.sampled_from(LAYOUTS), ending=st.sampled_from(ENDINGS),
    event=st.booleans(), percent=st.booleans(), right=st.booleans(), by_standard_input=st.booleans(),
    options=st.lists(st.sampled_from(OPTIONS), max_size=2, unique=True),
    own=st.none() | st.lists(st.sampled_from(OWN), max_size=3),
    words=st.booleans(), spoilt=st.sampled_from([None, "y", "net", "net"]), seed=st.integers(0, 99),
)  # fmt: skip
def test_a_result_or_one_line(
    command, layout, ending, event, percent, right, by_standard_input, options, own, words, spoilt, seed
):
    times, target_option, target_name = COMMANDS[command]
    y, _, ids = mangling.study(n=55)
    frame = predictions(layout, event, percent)
    if right:  # what options say is so
        options = [*(["--predicts event"] if event else []), *(["--percent"] if percent else [])]
        options += {"long": ["--long"], "transposed": ["--transposed"]}.get(layout, [])
        options += ["--columns month_{time}", "--predictions-unit month", "--unit D"] if layout == "months" else []
        own = None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        io.write_outcomes(folder / "y.csv", y, ids=ids)
        if words:
            observed = pd.read_csv(folder / "y.csv")
            observed["event"] = np.where(observed["event"].astype(bool), "yes", "no")
            observed.to_csv(folder / "y.csv", index=False)
        path = folder / f"net.{ending}"
        path.write_bytes(mangling.content(frame, ending))
        if spoilt is not None:
            file = folder / "y.csv" if spoilt == "y" else path
            file.write_bytes(mangling.mangle(file.read_bytes(), np.random.default_rng(seed)))
        source = "-" if by_standard_input and command != "evaluate" else str(path)
        source += f"[{','.join(own)}]" if own is not None else ""
        files = [folder / "y.csv", f"net={source}"]
        files = files if command != "evaluate" else [source, "--outcomes", folder / "y.csv"]
        there, target = sorted(folder.iterdir()), folder / target_name
        chosen = [word for option in options for word in option.split(" ")]
        arguments = [command, *files, "-w", "administrative", *times, *chosen, target_option, target]
        code, out, err = run(arguments, path.read_bytes())
        lines = [line for line in err.splitlines() if not line.startswith(("survscore: note: ", "Written: "))]
        assert code in (0, 2), (code, err)
        assert "Traceback" not in err + out
        assert sorted(folder.iterdir()) == sorted([*there, *([target] if code == 0 else [])]), err
        if code == 0:
            assert not lines, err
        elif not err.startswith("Usage: "):  # an option that the command does not have
            assert len(lines) == 1, err
            assert lines[0].startswith("survscore: "), err
            assert out == ""
        streamed = layout in ("wide", "months") and ending in ("csv", "parquet")
        if right and spoilt is None and (command != "evaluate" or streamed):
            assert code == 0, err
