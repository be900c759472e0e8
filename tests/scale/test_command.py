"""The command evaluate: what it writes, how it is interrupted, and what it refuses."""

import importlib.util
import json
import pickle
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import survscore as ss
from cluster_case import check_alike
from combinations import nightly_but
from commands import run
from registry import without_predictions
from scale_case import TIMES, rows, write
from scale_tables import make
from survscore.scale import State, evaluate_state

MAIN = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever the parent ignores
from survscore.cli import main
main(sys.argv[1:])
"""
SLOWLY = """
import pathlib, sys, time
from survscore.cli import main
from survscore.scale.state import State
update, marker = State.update, pathlib.Path(sys.argv[1])
State.update = lambda state, rows: (marker.touch(), time.sleep(15), update(state, rows))[-1]
from survscore.scale.files import FilePart
FilePart.batches.__kwdefaults__["rows"] = 10_000
main(sys.argv[2:])
"""
by_segment = pytest.mark.skipif(
    importlib.util.find_spec("survscore.results.segments") is None, reason="needs survscore.results.segments"
)


@pytest.fixture
def data(tmp_path):
    return write(tmp_path / "data")


def in_memory(table, **settings):
    names = [name for name in table.schema.names if ":" in name]
    y = ss.Outcomes(table["time"].to_numpy(), table["event"].to_numpy(), table["censoring_time"].to_numpy())
    models = {
        model: ss.SurvivalCurves(
            np.stack([table[name].to_numpy() for name in names if name.startswith(model)], axis=1), TIMES
        )
        for model in ("net", "cox")
    }
    settings["weighting"] = without_predictions(settings["weighting"])
    return ss.compare(y, models, times=TIMES, null=False, **settings)


def test_the_numbers_of_compare(data, tmp_path, capsys):
    whole = pa.concat_tables([rows(50, k) for k in range(6)])
    expected = in_memory(whole, weighting=["administrative", "ipcw"], metric=["brier", "log"])
    out = {name: tmp_path / f"out.{name}" for name in ("json", "csv", "parquet")}
    code, printed, err = run(
        capsys, "evaluate", data, "-w", "administrative", "-w", "ipcw", "-m", "brier", "-m", "log",
        *(word for name, path in out.items() for word in (f"--{name}", path)),
    )  # fmt: skip
    assert code == 0
    assert err.count("Written: ") == 3
    told = json.loads(out["json"].read_text())
    found = pd.DataFrame(told["scores"])
    pd.testing.assert_frame_equal(found[["score", "se"]], expected.scores[["score", "se"]], rtol=1e-9)
    assert found["weighting"].tolist() == expected.scores["weighting"].tolist()
    table = pd.read_csv(out["csv"])  # scores, and beside each the difference to the reference
    np.testing.assert_allclose(table[["score", "se"]], expected.scores[["score", "se"]], rtol=1e-9)
    contrasts = table.dropna(subset=["reference"])
    numbers = ["difference", "difference_se", "difference_lower", "difference_upper"]
    np.testing.assert_allclose(contrasts[numbers], expected.contrasts[["difference", "se", "lower", "upper"]],
                               rtol=1e-9, atol=1e-12)  # fmt: skip
    written = pd.read_parquet(out["parquet"]).dropna(subset=["reference"])
    assert written["verdict"].tolist() == contrasts["verdict"].tolist()
    assert told["settings"]["individuals"] == 300
    assert told["settings"]["files_read"] == 6
    assert told["settings"]["survscore"] == ss.__version__
    for text in ("Brier score (lower is better)", "administrative", "IPCW", "reference", "significantly worse"):
        assert text in printed


def test_means_over_time(tmp_path, capsys):
    folder = write(tmp_path / "data", dropouts=False)
    whole = pa.concat_tables([rows(50, k, dropouts=False) for k in range(6)])
    expected = in_memory(whole, weighting="administrative").integrated(30, 90)
    out = tmp_path / "out.json"
    code, printed, _ = run(capsys, "evaluate", folder, "-w", "administrative", "--range", "30:90", "--json", out)
    assert code == 0
    found = pd.DataFrame(json.loads(out.read_text())["verdicts"])
    np.testing.assert_allclose(found["difference"], expected.contrasts["difference"], rtol=1e-9)
    np.testing.assert_allclose(found["se"], expected.contrasts["se"], rtol=1e-6)
    assert "mean over 30 to 90" in printed
    lost = write(tmp_path / "lost")
    whole = pa.concat_tables([rows(50, k) for k in range(6)])
    expected = in_memory(whole, weighting="administrative").integrated()
    assert run(capsys, "evaluate", lost, "-w", "administrative", "--range", ":", "--json", out)[0] == 0
    found = pd.DataFrame(json.loads(out.read_text())["verdicts"])
    np.testing.assert_allclose(found["se"], expected.contrasts["se"], rtol=1e-4)


def test_columns_models_and_names_of_outcomes(tmp_path, capsys):
    table = rows(200).rename_columns(
        ["duration", "churned", "end", "country", *(f"{m}_{t}" for m in ("net", "cox") for t in TIMES)]
    )
    folder = tmp_path / "data"
    folder.mkdir()
    pa.csv.write_csv(table, folder / "all.csv")
    named = ("--time", "duration", "--event", "churned", "--censoring-time", "end", "--columns", "{model}_{time}")
    code, out, _ = run(
        capsys, "evaluate", folder, "-w", "administrative", *named, "--models", "cox", "-t", "60", "--json", "-"
    )
    assert code == 0
    (found,) = json.loads(out)["scores"]
    expected = in_memory(rows(200), weighting="administrative").scores
    wanted = expected[(expected.model == "cox") & (expected.time == 60)]["score"].item()
    assert (found["model"], found["score"]) == ("cox", pytest.approx(wanted, rel=1e-12))


def test_dates(tmp_path, capsys):
    table = rows(300, dropouts=False)
    end, time = table["censoring_time"].to_numpy().astype(int), table["time"].to_numpy().astype(int)
    cutoff = np.datetime64("2024-06-01")
    start = cutoff - end
    event_date = np.where(table["event"].to_numpy() == 1, start + time, np.datetime64("NaT"))
    dates = {"start": start.astype("datetime64[D]"), "event_date": pa.array(event_date, pa.date32(), from_pandas=True)}
    dated = pa.table(dates | {name: table[name] for name in table.schema.names if ":" in name})
    (tmp_path / "data").mkdir()
    pq.write_table(dated, tmp_path / "data" / "a.parquet")
    pq.write_table(table, tmp_path / "times.parquet")
    arguments = ("-w", "administrative", "--json", "-")
    found = run(capsys, "evaluate", tmp_path / "data", "--cutoff", "2024-06-01", *arguments)[1]
    expected = run(capsys, "evaluate", tmp_path / "times.parquet", *arguments)[1]
    assert json.loads(found)["scores"] == json.loads(expected)["scores"]


def test_days_are_added_to_days(tmp_path, capsys):
    days = [write(tmp_path / f"day={k}", files=2, dropouts=k == 2) for k in range(3)]
    for k, day in enumerate(days):  # other rows on other days
        for j, path in enumerate(sorted(day.iterdir())):
            pq.write_table(rows(50, 10 * k + j, dropouts=k == 2), path)
    total = tmp_path / "total.state"
    arguments = ("-w", "administrative", "--json", "-")
    for k, day in enumerate(days):
        before = ["--add", total] if k else []
        code, out, err = run(capsys, "evaluate", day, *arguments, "--state-out", total, *before)
        assert (code, err) == (0, f"Written: {total}\n")
    together = run(capsys, "evaluate", *days, *arguments)[1]
    for mine, theirs in zip(json.loads(out)["scores"], json.loads(together)["scores"], strict=True):
        numbers = {name: value for name, value in theirs.items() if isinstance(value, float)}
        assert {name: mine[name] for name in numbers} == pytest.approx(numbers, rel=1e-11)
    state = State.from_bytes(total.read_bytes())
    assert (state.n, len(state.files)) == (300, 6)
    # once more, and it would be counted twice
    code, out, err = run(capsys, "evaluate", days[2], *arguments, "--state-out", total, "--add", total)
    assert (code, out) == (2, "")
    assert "2 files would be counted twice, the first " in err
    assert State.from_bytes(total.read_bytes()).n == 300
    code, _, err = run(capsys, "evaluate", write(tmp_path / "x"), *arguments, "--add", total, "-t", "60")
    assert (code, err.count("\n")) == (2, 1)
    assert "stored sums of another specification can't be added: models, times differ" in err


def test_stored_sums_that_are_none(data, tmp_path, capsys):
    path = tmp_path / "a.state"
    for content, what in ((None, "there is no such file"), (b"half", "not a state of survscore")):
        if content is not None:
            path.write_bytes(content)
        code, out, err = run(capsys, "evaluate", data, "-w", "ipcw", "--add", path)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert f"{path}: {what}" in err


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--storage-option", "secret_key:hunter2"], "--storage-option must be like region=eu-north-1"),
        (["--storage-option", "secret_key=hunter2"], "--storage-option are for remote storage"),
        (["--reference", "none"], "reference must be one of the models ['net', 'cox'], not 'none'"),
        (["--by", "planet"], "there is no column 'planet'"),
        (["--models", "planet"], "there is no model 'planet'"),
        (["--unit", "W"], "--unit is for dates, which need --cutoff"),
        (["--cutoff", "2024-01-01", "--time", "x"], "--time is for times, not for --cutoff"),
        (["--memory-limit", "some"], "--memory-limit must be a number of bytes"),
        (["--memory-limit", "100MB"], "--memory-limit of 100 MB is too little: "),
        (["--state-out", "data/x.state"], "lies in data, which is read; write it elsewhere"),
        (["--csv", "data/x.csv"], "lies in data, which is read; write it elsewhere"),
        (["--state", "data/kept"], "lies in data, which is read; write it elsewhere"),
        (["--population", "fixed", "-w", "ipcw"], ""),
        (["--manifest", "nothing.txt"], "nothing.txt: there is no such file"),
    ],
)
def test_mistakes_are_one_line(arguments, what, data, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    code, out, err = run(capsys, "evaluate", "data", "-w", "administrative", *arguments)
    if not what:
        assert code == 0
        return
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert what in err
    assert "hunter2" not in err
    assert sorted(tmp_path.rglob("*")) == before


def test_secrets_are_not_told(data, capsys, tmp_path):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    for path in data.iterdir():
        memory.pipe(f"/lake/{path.name}", path.read_bytes())
    told = ("--storage-option", "token=hunter2hunter2", "--json", "-")
    code, out, err = run(capsys, "evaluate", "memory://lake/", "-w", "administrative", *told)
    assert (code, err) == (0, "")
    assert "hunter2" not in out
    assert json.loads(out)["settings"]["individuals"] == 300


def test_a_manifest(data, tmp_path, capsys):
    manifest = tmp_path / "manifest.txt"
    manifest.write_text("".join(f"part-{k:03d}.parquet\n" for k in range(7)))
    code, out, err = run(capsys, "evaluate", data, "-w", "ipcw", "--manifest", manifest)
    assert (code, out) == (2, "")
    assert "1 of 7 files missing, the first 'part-006.parquet'" in err


@by_segment
def test_segments(data, tmp_path, capsys):
    out = tmp_path / "out.json"
    code, printed, _ = run(capsys, "evaluate", data, "-w", "administrative", "--by", "country", "--json", out)
    assert code == 0
    found = pd.DataFrame(json.loads(out.read_text())["scores"])
    assert found.columns[0] == "country"
    assert set(found["country"]) == {"(all)", "DE", "FR", "SE"}
    for country in ("DE", "FR", "SE"):
        assert country in printed
    whole = pa.concat_tables([rows(50, k) for k in range(6)])
    alone = in_memory(whole.filter(pa.compute.equal(whole["country"], "FR")), weighting="administrative")
    np.testing.assert_allclose(found[found["country"] == "FR"]["score"], alone.scores["score"], rtol=1e-9)


# Interrupted


@pytest.mark.parametrize(
    ("stop", "code"), nightly_but([(signal.SIGINT, 130)], [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
)
def test_interrupted_and_resumed(stop, code, tmp_path):
    folder = write(tmp_path / "data", files=150, n=4000)
    kept, out, whole = tmp_path / "kept", tmp_path / "out.csv", tmp_path / "whole.csv"
    sums = [tmp_path / "out.state", tmp_path / "whole.state"]
    command = [sys.executable, "-c", MAIN, "evaluate", str(folder), "-w", "ipcw", "--threads", "1"]
    resumed = [*command, "--state", str(kept), "--csv", str(out), "--state-out", str(sums[0])]
    with subprocess.Popen(resumed, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while len(list(kept.rglob("*.state"))) < 5:
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.005)
        process.send_signal(stop)
        err = process.communicate(timeout=60)[1]
    assert process.returncode == code
    assert "Traceback" not in err
    finished = list(kept.rglob("*.state"))
    assert 0 < len(finished) < 150
    left = [
        path for path in tmp_path.rglob("*") if path.is_file() and path not in finished and folder not in path.parents
    ]
    assert left == []
    done = {path: path.stat().st_mtime_ns for path in finished}
    subprocess.run(resumed, check=True, capture_output=True)
    assert {path: path.stat().st_mtime_ns for path in finished} == done  # not made again
    subprocess.run([*command, "--csv", str(whole), "--state-out", str(sums[1])], check=True, capture_output=True)
    assert out.read_bytes() == whole.read_bytes()
    assert sums[0].read_bytes() == sums[1].read_bytes()


@pytest.mark.nightly
def test_a_large_file_is_left_before_its_end(tmp_path):
    (tmp_path / "data").mkdir()
    pq.write_table(rows(400_000), tmp_path / "data" / "large.parquet", row_group_size=10_000)
    marker, out = tmp_path / "begun", tmp_path / "out.csv"
    arguments = [str(tmp_path / "data"), "-w", "ipcw", "--csv", str(out), "--state", str(tmp_path / "kept")]
    with subprocess.Popen(
        [sys.executable, "-c", SLOWLY, marker, "evaluate", *arguments], stderr=-1, text=True
    ) as process:
        deadline = time.monotonic() + 60
        while not marker.exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        err = process.communicate(timeout=60)[1]  # the whole file would take ten minutes
    assert (process.returncode, err) == (143, "")
    assert not out.exists()
    assert list((tmp_path / "kept").rglob("*.*")) == []


# Pieces, memory


@pytest.mark.parametrize("whole", [True, False])
def test_pieces_of_a_file_make_the_same_sums(whole, tmp_path, monkeypatch):
    pq.write_table(rows(3000, whole=whole), tmp_path / "a.parquet", row_group_size=100)
    found = []
    for cores, least in ((1, 1), (2, 1), (7, 1), (7, 1000), (7, 10_000)):
        monkeypatch.setattr("survscore._config.Config.n_cores", lambda _, n=cores: n)
        monkeypatch.setattr("survscore.scale.engines.PIECE_ROWS", least)
        state = evaluate_state(tmp_path / "a.parquet", weighting=["administrative", "ipcw"], by="country")
        assert len(state.files) == 1
        found.append(state)
    for other in found[1:]:
        check_alike(found[0], other)


def test_pieces_are_all_rows_once(tmp_path):
    from survscore.scale.sources import open_source

    pq.write_table(rows(1000), tmp_path / "a.parquet", row_group_size=70)
    (part,) = open_source(tmp_path / "a.parquet").parts
    for n in (1, 2, 3, 14, 15, 99):
        pieces = part.split(n)
        assert len(pieces) <= n
        assert [one for piece in pieces for one in piece.ids] == [part.id]
        read = [batch for piece in pieces for batch in piece.batches(["time"])]
        assert pa.Table.from_batches(read)["time"].to_pylist() == rows(1000)["time"].to_pylist()
        assert pickle.loads(pickle.dumps(pieces)) == pieces


def test_a_column_of_ids_is_no_segment(tmp_path, capsys):
    table = rows(110_000).append_column("customer", pa.array(np.arange(110_000)))
    pq.write_table(table, tmp_path / "a.parquet")
    code, out, err = run(capsys, "evaluate", tmp_path / "a.parquet", "-w", "ipcw", "--by", "customer")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "makes more than 100,000 segments: probably one of them is a column of ids" in err
    # nor two of them, whose combinations are a billion
    table = table.append_column("visit", pa.array(np.arange(110_000)[::-1]))
    with pytest.raises(ss.InputError, match="makes more than 100,000 segments"):
        evaluate_state(table, weighting="ipcw", by=["customer", "visit"])


def test_segments_that_do_not_fit_are_refused_before(tmp_path, capsys):
    table = rows(20_000).append_column("shop", pa.array(np.arange(20_000) // 2))
    pq.write_table(table, tmp_path / "a.parquet")
    told = ("--by", "shop", "--memory-limit", "1GB", "--skip-bad-files")
    code, out, err = run(capsys, "evaluate", tmp_path / "a.parquet", "-w", "ipcw", *told)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert re.search(r"sums of [\d,]+ segments x 128 times of leaving x 3 times x 2 models x 1 weighting take", err)
    assert "fit in memory: have fewer segments" in err
    assert "or raise --memory-limit" in err


def test_memory_limits_lower_what_is_read_at_once():
    from survscore.scale.memory import Budget, as_bytes, table_bytes

    assert [as_bytes(text) for text in ("1GB", "512 MiB", "1000", "1.5 kb", 7)] == [10**9, 2**29, 1000, 1500, 7]
    plenty, some, little = (Budget.of(as_bytes(size), 51, 8, remote=False) for size in ("9GB", "2.4GB", "600MB"))
    assert (plenty.rows, plenty.threads) == (131072, 8)
    assert some.threads == 8
    assert some.rows < 131072
    assert little.threads == 1
    assert Budget.of(None, 51, 8, remote=False).threads == 8
    # what is foreseen is what is made
    what = evaluate_state(rows(100), weighting=["administrative", "ipcw"], by="country").specification
    state = State(what).update(rows(100))
    made = sum(array.nbytes for sums in state.sums for array in sums.values.values())
    assert made == table_bytes(what, 3, state.n_bins)


def test_many_exits_are_sampled_alike_however_they_are_cut(monkeypatch):
    from survscore.scale import specify
    from survscore.scale.looks import Look, looked_at

    monkeypatch.setattr("survscore.scale.looks.MOST_KEPT", 100)
    table = make(3000, whole=False).table
    what = looked_at(specify(table.schema, weighting="ipcw"))

    def looks(size):
        found = Look(what)
        for batch in table.to_batches(max_chunksize=size):
            found = Look(what).update(batch) + found
        return found.exits

    whole, cut = looks(3000), looks(77)
    assert np.array_equal(whole, cut)
    assert whole.size in (100, 101)
    assert whole[-1] == table["time"].to_numpy()[~table["event"].to_numpy()].max()


def test_progress_tells_files_rows_and_what_is_left(data, monkeypatch):
    told = []
    monkeypatch.setattr("survscore.scale.engines.TICK", 1e-4)
    evaluate_state(data, weighting="ipcw", progress=lambda *what: told.append(what))
    files = [done for done, total, _ in told if total == 6]
    assert sorted(files) == files
    assert told[-1][:2] == (6, 6)
    assert told[-1][2].startswith("300 rows, ")
    assert any(what.endswith(" left") for _, _, what in told)


def test_without_weighting_the_recommendation_is_printed_and_written(tmp_path, capsys):
    folder = tmp_path / "rows"
    case = make(1500)
    case.write(folder, 3)
    code, out, _ = run(capsys, "evaluate", folder)
    assert code == 0
    assert "projected" in out
    expected = ss.evaluate(folder).recommendation()
    assert expected.headline in " ".join(out.split()) or expected.verdicts[0].sentences[0] in " ".join(out.split())
    code, out, _ = run(capsys, "evaluate", folder, "--json", "-", "--strata", "country")
    written = json.loads(out)
    assert code == 0
    assert [row["verdict"] for row in written["recommendations"]] == ["worse"]
    assert written["settings"]["weightings"] == ["administrative (drop-out by Kaplan-Meier)", "projected (3 strata)"]
    rule = '[[check]]\nvalue = "recommendation"\nmodel = "b"\nreference = "a"\nat = 162\n'
    (tmp_path / "rules.toml").write_text(rule)
    (tmp_path / "scores.json").write_text(out)
    code, out, err = run(capsys, "check", tmp_path / "rules.toml", "--results", tmp_path / "scores.json")
    assert code in (0, 1), err
    assert "b is significantly worse" in " ".join(out.split()) or "a is significantly better" in " ".join(out.split())
