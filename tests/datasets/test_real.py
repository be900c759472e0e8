"""Real data out of installed packages: who is in them, when they end, and what X may know."""

import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import survscore as ss
from survscore import InputError
from survscore.datasets import origins
from survscore.datasets.loading import BY_CAUSE, RECIPES

# Counted in the packages' own tables, apart from the loaders: individuals, events, lost, closing date, columns of X
KNOWN = {
    "aids2": (2843, 1761, 18, "1991-07-01", ["state", "sex", "transmission", "age"]),
    "cdnow": (23570, 11516, 0, "1998-06-30", ["orders", "cds", "dollars"]),
    "dd": (1737, 1545, 0, "2008-12-31", ["continent", "region", "regime", "democracy"]),
    "dmlate": (10000, 2503, 0, "2009-12-31", ["sex", "age", "tablets", "insulin"]),
    "jasa": (103, 75, 2, "1974-04-01", ["age", "surgery"]),
    "senators": (930, 831, 0, "2013-10-01", ["party", "region"]),
    "sibr": (10000, 2924, 0, "2012-12-31", ["age"]),
    "sire": (8243, 4595, 0, "2012-12-31", ["age"]),
    "thoro": (2470, 1966, 40, "1992-02-20", ["sex", "contrast", "volume", "age"]),
}
# Counted in the same way: events by cause
CAUSES = {
    "dmlate": {"insulin": 1694, "death": 2052},
    "senators": {"death": 494, "resignation": 201, "retirement": 136},
    "sibr": {"cancer": 1540, "other causes": 1384},
    "sire": {"cancer": 3090, "other causes": 1505},
    "thoro": {"cancer": 559, "other causes": 1407},
}
# Columns of the tables that tell how it went on
OUTCOMES = {
    "aids2": ["death", "status"],
    "dd": ["duration"],
    "dmlate": ["dodth", "dox"],
    "jasa": ["fu.date", "fustat"],
    "senators": ["end_date", "observed"],
    "sibr": ["ex_date", "status"],
    "sire": ["ex_date", "status"],
    "thoro": ["exitdat", "exitstat", "cause"],
}
# All of their columns with dates, and a hundred years in each one's unit
CENTURY = {
    "aids2": (["diag", "death"], 36525),
    "dd": (["start_year"], 100),
    "dmlate": (["dobth", "dodm", "dodth", "dooad", "doins", "dox"], 100.0),
    "jasa": (["accept.dt", "fu.date"], pd.Timedelta(days=36525)),
    "sibr": (["dg_date", "ex_date"], pd.Timedelta(days=36525)),
    "sire": (["dg_date", "ex_date"], pd.Timedelta(days=36525)),
    "thoro": (["birthdat", "injecdat", "exitdat"], pd.Timedelta(days=36525)),
}
DAYS = {"D": 1.0, "M": 365.25 / 12, "Y": 365.25}


def installed(name):
    if RECIPES[name].origin.find() is None:
        pytest.skip(f"needs the package of {name}: {RECIPES[name].origin.how_to_get}")
    return name


def table_of(name):
    recipe = RECIPES[installed(name)]
    return recipe.origin.read(recipe.origin.find())[list(recipe.columns)]


@pytest.fixture(params=KNOWN)
def data(request):
    return ss.datasets.load(installed(request.param))


def test_all_sets_are_known():
    assert ss.datasets.names() == list(KNOWN) == sorted(KNOWN)


def test_the_counts(data):
    n, events, lost, closing, columns = KNOWN[data.name]
    assert (data.n, data.n_events, data.n_lost, data.closing_date) == (n, events, lost, closing)
    assert data.X.columns.tolist() == columns
    assert len(data.X) == n
    assert data.X.index.equals(pd.RangeIndex(n))
    assert data.groups is None or len(data.groups) == n


def test_c_star_is_the_closing_date_minus_the_start(data):
    closing = np.datetime64(data.closing_date)
    assert (data.dates.cutoff == closing).all()
    days = (closing - data.dates.start) / np.timedelta64(1, "D")
    np.testing.assert_allclose(data.y.censoring_time * DAYS[data.unit], days, atol=3)
    if data.unit == "D":
        np.testing.assert_array_equal(data.y.censoring_time, days)


def test_nothing_is_seen_after_the_closing_date(data):
    assert (data.y.time <= data.y.censoring_time).all()
    happened = data.dates.event_date[data.y.event]
    assert not np.isnat(happened).any()
    assert (happened <= np.datetime64(data.closing_date)).all()
    lost = data.dates.last_seen[data.y.dropped_out]
    assert (lost < np.datetime64(data.closing_date)).all()


def test_x_is_complete_and_holds_numbers_and_categories_only(data):
    assert not data.X.isna().any().any()
    for column in data.X:
        kind = data.X[column].dtype
        assert isinstance(kind, pd.CategoricalDtype) or kind.kind in "if", column
        assert data.X[column].nunique() > 1, column


@pytest.mark.parametrize("name", OUTCOMES)
def test_x_does_not_know_how_it_went_on(name):
    table, recipe = table_of(name), RECIPES[name]
    other = table.assign(**{column: table[column].to_numpy()[::-1] for column in OUTCOMES[name]})
    pd.testing.assert_frame_equal(recipe.make(table).X, recipe.make(other).X)


def test_later_prescriptions_are_not_in_x():
    table = table_of("dmlate")
    now = table.assign(**{name: table[name].where(table[name] <= table["dodm"]) for name in ("dooad", "doins")})
    assert (now["dooad"].notna().sum(), now["doins"].notna().sum()) == (2367, 97)
    pd.testing.assert_frame_equal(RECIPES["dmlate"].make(now).X, RECIPES["dmlate"].make(table).X)


@pytest.mark.parametrize("name", CENTURY)
def test_x_does_not_know_the_date(name):
    table = table_of(name)
    if name == "dd":
        table = table[table["start_year"] > 1946]  # who began before is left out
    columns, century = CENTURY[name]
    later = table.assign(**{column: table[column] + century for column in columns})
    pd.testing.assert_frame_equal(RECIPES[name].make(table).X, RECIPES[name].make(later).X)


def test_what_is_described_is_what_is_loaded(data):
    row = ss.datasets.describe().loc[data.name]
    assert (row["individuals"], row["events"], row["lost"]) == (data.n, data.n_events, data.n_lost)
    assert (row["unit"], row["who_is_lost"]) == (data.unit, data.lost)
    for name in ("event", "start", "closing", "licence", "source", "notes"):
        assert row[name] == getattr(data, name)
        assert row[name]


def test_those_who_are_said_to_be_lost_are_coded_so():
    thoro, aids = table_of("thoro"), table_of("aids2")
    assert (ss.datasets.load("thoro").y.dropped_out == (thoro["exitstat"] == 3)).all()
    assert (ss.datasets.load("aids2").y.dropped_out == ((aids["status"] == "A") & (aids["death"] < 11504))).all()


# Causes of events


def test_all_sets_with_causes_are_known():
    assert ss.datasets.names(causes=True) == list(BY_CAUSE) == list(CAUSES) == sorted(CAUSES)


@pytest.fixture(params=CAUSES)
def by_cause(request):
    return ss.datasets.load(installed(request.param), causes=True)


def test_the_counts_by_cause(by_cause):
    assert by_cause.y.n_by_cause == CAUSES[by_cause.name]
    assert by_cause.y.causes == tuple(CAUSES[by_cause.name])
    row = ss.datasets.describe().loc[by_cause.name]
    assert row["causes"] == ", ".join(f"{cause} ({n})" for cause, n in CAUSES[by_cause.name].items())
    listed = ", ".join(f"{n} {cause}" for cause, n in CAUSES[by_cause.name].items())
    assert f" events ({listed}), none lost" in str(by_cause) or by_cause.name == "thoro"


@pytest.mark.parametrize("name", [name for name in CAUSES if name != "dmlate"])
def test_causes_change_nothing_else(name):
    plain, by_cause = ss.datasets.load(installed(name)), ss.datasets.load(name, causes=True)
    assert same(plain, by_cause)
    np.testing.assert_array_equal(plain.y.censoring_time, by_cause.y.censoring_time)
    np.testing.assert_array_equal(plain.y.event, by_cause.y.cause > 0)
    assert plain.y.causes == ()


def test_insulin_before_death_counts_and_insulin_at_the_start_is_left_out():
    table = table_of("dmlate")
    table = table[table["doins"].isna() | (table["doins"] > table["dodm"])].reset_index(drop=True)
    data = ss.datasets.load("dmlate", causes=True)
    started, died = table["doins"].notna(), table["dodth"].notna()
    assert not (table["doins"] > table["dox"]).any()
    np.testing.assert_array_equal(data.y.cause, np.where(started, 1, np.where(died, 2, 0)))
    ends = table["doins"].where(started, table["dodth"].where(died, table["dox"]))
    np.testing.assert_allclose(data.y.time, ends - table["dodm"], atol=2 / 365.25)
    assert data.X.columns.tolist() == ["sex", "age", "tablets"]
    assert data.n_lost == 0
    assert data.closing_date == "2009-12-31"


def test_a_set_without_causes_is_refused_with_those_that_have_some():
    with pytest.raises(InputError) as error:
        ss.datasets.load("cdnow", causes=True)
    assert str(error.value) == (
        "causes: 'cdnow' has events of one kind; those with causes are dmlate, senators, sibr, sire, thoro"
    )


def test_a_table_with_another_cause_is_refused(tmp_path):
    table = pd.read_csv(RECIPES[installed("senators")].origin.find())
    for other, message in [
        ({"Resignation": "Promotion"}, "is not the table of 'senators' that is known: cause must be one of 'Death'"),
        ({"Resignation": "Retirement"}, "831 events (494, 0, 337 by cause) and 0 lost, not 930"),
    ]:
        path = written(tmp_path, table.replace({"reason": other}))
        with pytest.raises(InputError) as error:
            ss.datasets.load("senators", causes=True, path=path)
        assert message in str(error.value)
        assert "\n" not in str(error.value)
        assert ss.datasets.load("senators", path=path).n_events == 831


# Where they are


def test_packages_are_not_imported():
    names = [name for name in ("senators", "cdnow") if RECIPES[name].origin.find()]
    code = f"""
import sys, survscore as ss
for name in {names}: ss.datasets.load(name)
print(sorted({{"lifelines", "lifetimes", "rdata", "torch"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.fixture
def nothing_installed(monkeypatch):
    monkeypatch.setattr(origins, "find_spec", lambda name: None)
    monkeypatch.setattr(origins, "r_libraries", lambda: iter(()))


@pytest.mark.usefixtures("nothing_installed")
def test_a_missing_package_is_told_with_how_to_get_it():
    assert ss.datasets.available() == []
    with pytest.raises(InputError) as error:
        ss.datasets.load("cdnow")
    assert str(error.value) == "name: 'cdnow' is in the package lifetimes: pip install Lifetimes"
    with pytest.raises(InputError) as error:
        ss.datasets.load("dmlate")
    assert str(error.value) == (
        "name: 'dmlate' is in the package Epi: "
        'install.packages("Epi") in R, or apt-get install r-cran-epi, or path= a copy of the package'
    )


@pytest.mark.usefixtures("nothing_installed")
def test_r_libraries_are_found_where_r_finds_them(tmp_path, monkeypatch):
    monkeypatch.undo()
    for name in origins.LIBRARY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(origins, "HOMES", (str(tmp_path / "R-*"),))
    monkeypatch.setattr(origins, "PERSONAL", ("~/R/*-library/*",))
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    monkeypatch.setenv("R_HOME", str(tmp_path / "home"))
    for folder in ("R-4.2", "R-4.5", "me/R/x86_64-library/4.5"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.setenv("R_LIBS_USER", "%V/library")
    monkeypatch.setenv("R_LIBS", f"{tmp_path / 'a'}{origins.os.pathsep}{tmp_path / 'b'}")
    found = [str(folder.relative_to(tmp_path)) for folder in origins.r_libraries() if tmp_path in folder.parents]
    assert found == [
        "a", "b", "me/R/x86_64-library/4.5", "home/site-library", "home/library",
        "R-4.5/site-library", "R-4.5/library", "R-4.2/site-library", "R-4.2/library",
    ]  # fmt: skip


def same(one, other):
    pd.testing.assert_frame_equal(one.X, other.X)
    np.testing.assert_array_equal(one.y.time, other.y.time)
    np.testing.assert_array_equal(one.y.event, other.y.event)
    return True


@pytest.mark.parametrize("name", KNOWN)
def test_a_path_is_read(name, tmp_path, monkeypatch):
    file = RECIPES[installed(name)].origin.find()
    expected = ss.datasets.load(name)
    package = tmp_path / "library" / RECIPES[name].origin.package
    copied = shutil.copy(file, tmp_path)
    if file.suffix == ".rdb":
        shutil.copy(file.with_suffix(".rdx"), tmp_path)
    monkeypatch.setattr(origins, "find_spec", lambda name: None)
    monkeypatch.setattr(origins, "r_libraries", lambda: iter(()))
    assert same(ss.datasets.load(name, path=str(copied)), expected)
    if isinstance(RECIPES[name].origin, origins.RFrame):
        shutil.copytree(file.parent, package / "data")
        for folder in (tmp_path, package, package / "data", package.parent):
            assert same(ss.datasets.load(name, path=folder), expected)


def written(folder, table, name="table.csv"):
    path = folder / name
    table.to_csv(path, index=False)
    return path


def test_another_version_of_a_table_is_refused(tmp_path):
    table = pd.read_csv(RECIPES[installed("senators")].origin.find())
    for other, message in [
        (table[1:], "it has 929 individuals, 830 events and 0 lost, not 930 individuals, 831 events and 0 lost"),
        (table.drop(columns="reason"), "has no column 'reason', so it is not the table of 'senators'"),
        (table.assign(start_date="soon"), "is not the table of 'senators' that is known: "),
        (table.replace({"Province / Territory": {"Quebec": "Québec"}}), "region has missing values"),
    ]:
        path = written(tmp_path, other)
        with pytest.raises(InputError) as error:
            ss.datasets.load("senators", path=path)
        assert str(error.value).startswith(str(path))
        assert message in str(error.value)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "file", "content", "message"),
    [
        ("dd", "dd.csv", b"\xff\xfe\x00", "can't be read as a table"),
        ("dd", "dd.csv", b"", "can't be read as a table: No columns to parse from file"),
        ("dd", "dd.csv", b'a,b\n"1', "can't be read as a table"),
        ("dd", "no.csv", None, "there is no file"),
        ("thoro", "no.rda", None, "there is no file or folder"),
        ("thoro", "thoro.csv", b"a", "must end with .rda, .RData or .rdb, or be a folder with an R package"),
        ("thoro", ".", None, "is no R library, package or folder of data with thoro in it"),
        ("thoro", "thoro.rda", b"a", "is no .rda file"),
        ("aids2", "Rdata.rdb", b"a", "can't be read without Rdata.rdx beside it"),
    ],
)
def test_a_path_that_leads_nowhere_is_told_in_a_line(tmp_path, name, file, content, message):
    if content is not None:
        (tmp_path / file).write_bytes(content)
    with pytest.raises(InputError) as error:
        ss.datasets.load(name, path=tmp_path / file)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_set_prints_what_it_is():
    data = ss.datasets.load(installed("senators"))
    assert str(data).startswith(
        "Dataset(senators: 930 individuals, 831 events, none lost, follow-up ends on 2013-10-01)\n"
    )
    lost = replace(data, y=ss.Outcomes.from_dates(["2000-01-01"], [None], "2001-01-01", last_seen=["2000-06-01"]))
    assert str(lost).startswith("Dataset(senators: 1 individuals, 0 events, 1 lost, follow-up ends on 2001-01-01)\n")
