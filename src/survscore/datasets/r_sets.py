"""Sets out of R packages: patients."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from survscore.datasets.origins import RFrame
from survscore.datasets.recipe import Counts, Made, Recipe

if TYPE_CHECKING:
    import pandas as pd

DAYS_OF_A_YEAR = 365.25
JULIAN_ORIGIN = "1960-01-01"  # of S, from which MASS has its dates
CANCER = 2  # of the causes of death in Epi's gmortDK, 1 to 15; 47 deaths have 16, which it doesn't explain
TRANSMISSION = {
    "hs": "homosexual", "hsid": "homosexual and drugs", "id": "drugs", "het": "heterosexual", "haem": "haemophilia",
    "blood": "blood", "mother": "mother", "other": "other",
}  # fmt: skip


def _since(days: pd.Series[Any], origin: str) -> pd.Series[Any]:
    import pandas as pd

    # pandas leaves memory of missing days unset and then rounds it, which can overflow
    dates = pd.to_datetime(days.fillna(0), unit="D", origin=pd.Timestamp(origin))
    return dates.where(days.notna())


def _of_years(years: pd.Series[Any]) -> pd.Series[Any]:
    """Return dates that are written as Epi does: 1970 plus days since then over 365.25."""
    return _since(((years - 1970) * DAYS_OF_A_YEAR).round(), "1970-01-01")


def _years(start: pd.Series[Any], end: pd.Series[Any]) -> pd.Series[Any]:
    return (end - start).dt.days / DAYS_OF_A_YEAR


def _named(values: pd.Series[Any], names: dict[Any, str]) -> pd.Categorical[str]:
    import pandas as pd

    return pd.Categorical(values.map(names), list(dict.fromkeys(names.values())))


def aids(table: pd.DataFrame) -> Made:
    """Return the time from diagnosis to death."""
    import pandas as pd

    X = pd.DataFrame(
        {
            "state": table["state"],
            "sex": _named(table["sex"].astype(str), {"F": "female", "M": "male"}),
            "transmission": _named(table["T.categ"].astype(str), TRANSMISSION),
            "age": table["age"].astype(np.float64),
        }
    )
    end, died = _since(table["death"], JULIAN_ORIGIN), table["status"] == "D"
    return Made(X, _since(table["diag"], JULIAN_ORIGIN), end.where(died), "1991-07-01", end.where(~died))


def thorotrast(table: pd.DataFrame) -> Made:
    """Return the time from injection to death."""
    import pandas as pd

    X = pd.DataFrame(
        {
            "sex": _named(table["sex"], {1: "male", 2: "female"}),
            "contrast": _named(table["contrast"], {1: "Thorotrast", 2: "other"}),
            "volume": table["volume"],
            "age": _years(table["birthdat"], table["injecdat"]),
        }
    )
    end, status = table["exitdat"], table["exitstat"]
    cause = np.where(table["cause"] == CANCER, "cancer", "other")
    return Made(X, table["injecdat"], end.where(status == 1), "1992-02-20", end.where(status == 3), cause=cause)


def diabetes(table: pd.DataFrame) -> Made:
    """Return the time from inclusion in the register to death."""
    import pandas as pd

    X = pd.DataFrame(
        {
            "sex": _named(table["sex"].astype(str), {"F": "female", "M": "male"}),
            "age": table["dodm"] - table["dobth"],
            # what follows later is left out, as the future would be told
            "tablets": (table["dooad"] <= table["dodm"]).astype(np.int64),
            "insulin": (table["doins"] <= table["dodm"]).astype(np.int64),
        }
    )
    start, death, end = (_of_years(table[name]) for name in ("dodm", "dodth", "dox"))
    return Made(X, start, death, "2009-12-31", end.where(death.isna()))


def first_insulin(table: pd.DataFrame) -> Made:
    """Return the time from inclusion in the register to the start of insulin or death, of those without insulin."""
    without = table[~(table["doins"] <= table["dodm"])].reset_index(drop=True)
    made = diabetes(without)
    insulin, death = _of_years(without["doins"]), made.event_date
    started = insulin.notna() & ~(insulin > death)  # no comparison with a missing date is true
    return made._replace(
        X=made.X.drop(columns="insulin"), event_date=insulin.where(started, death),
        last_seen=made.last_seen.where(~started), cause=np.where(started, "insulin", "death"),
    )  # fmt: skip


def cancer(table: pd.DataFrame) -> Made:
    """Return the time from diagnosis to death, and its cause."""
    import pandas as pd

    X = pd.DataFrame({"age": table["dg_age"]})
    died = table["status"] > 0
    end = table["ex_date"]
    return Made(X, table["dg_date"], end.where(died), "2012-12-31", end.where(~died), cause=table["status"].to_numpy())


def transplants(table: pd.DataFrame) -> Made:
    """Return the time from acceptance to death."""
    import pandas as pd

    X = pd.DataFrame({"age": table["age"], "surgery": table["surgery"].astype(np.int64)})
    died = table["fustat"] == 1
    return Made(X, table["accept.dt"], table["fu.date"].where(died), "1974-04-01", table["fu.date"].where(~died))


AIDS2 = Recipe(
    name="aids2",
    origin=RFrame("MASS", "Aids2"),
    columns=("state", "sex", "diag", "death", "status", "T.categ", "age"),
    make=aids,
    counts=Counts(2843, 1761, 18),
    unit="M",
    horizons=(6, 12, 24),
    cutoffs=("1987-07-01", "1988-07-01", "1989-07-01"),
    event="death",
    start="diagnosis of AIDS, in Australia from 1982 on; 29 were diagnosed on the day of their death, or of their last "
    "sign of life",
    closing="in the data: 1064 of 1082 who are alive end on 1991-07-01; documented are diagnoses before that day",
    lost="18 who are alive and end earlier, most of them by days",
    licence="GPL-2 or GPL-3",
    source="R package MASS, Aids2; P. J. Solomon and the Australian National Centre in HIV Epidemiology",
    notes="Dates were slightly jittered before release, so some of the 18 may not be lost. Treatment came in 1987, and "
    "times drift: of those diagnosed in 1986, 65 % had died within a year, of those in 1988, 33 %.",
)

THORO = Recipe(
    name="thoro",
    origin=RFrame("Epi", "thoro"),
    columns=("sex", "birthdat", "contrast", "injecdat", "volume", "exitdat", "exitstat", "cause"),
    make=thorotrast,
    counts=Counts(2470, 1966, 40),
    unit="Y",
    horizons=(5, 10, 15),
    cutoffs=("1955-12-31", "1960-12-31", "1965-12-31"),
    event="death",
    start="injection of a contrast medium into the brain's arteries, Thorotrast or another, in Denmark 1935 to 1963",
    closing="documented: the study closed on 1992-02-20",
    lost="40 who are alive and end earlier, coded apart (exitstat 3)",
    licence="GPL-2",
    source="R package Epi, thoro; Andersson and others (1994, 1995)",
    notes="Thorotrast was given until 1947, and other media from 1946 on: contrast and volume show in which years "
    "a patient entered, so these covariates encode much of C*.",
)

THORO_BY_CAUSE = replace(
    THORO,
    counts=Counts(2470, 1966, 40, (559, 1407)),
    causes={"cancer": "cancer", "other causes": "other"},
    event="death; the cause is cancer, or another",
    notes=f"{THORO.notes} Other causes are all codes but cancer; of 47 deaths the code is not explained.",
)

DMLATE = Recipe(
    name="dmlate",
    origin=RFrame("Epi", "DMlate"),
    columns=("sex", "dobth", "dodm", "dodth", "dooad", "doins", "dox"),
    make=diabetes,
    counts=Counts(10000, 2503, 0),
    unit="Y",
    horizons=(1, 3, 5),
    cutoffs=("2000-12-31", "2002-12-31", "2004-12-31"),
    event="death",
    start="inclusion in the Danish National Diabetes Register, from 1995 on",
    closing="in the data: all 7497 who are alive end on 2009-12-31",
    lost="none in the data: emigration is not recorded",
    licence="GPL-2",
    source="R package Epi, DMlate; Danish National Board of Health, a random sample of 10 000",
    notes="Dates were jittered by up to a week before release. Tablets and insulin are those whose prescription led to "
    "inclusion; later ones are left out, as they are the future.",
)

DMLATE_BY_CAUSE = replace(
    DMLATE,
    make=first_insulin,
    counts=Counts(9903, 3746, 0, (1694, 2052)),
    causes={"insulin": "insulin", "death": "death"},
    event="start of insulin, or death without it",
    notes="Dates were jittered by up to a week before release. The 97 whose prescription of insulin led to inclusion "
    "are left out. Insulin starts with the second prescription, the only one whose date is recorded.",
)

SIRE = Recipe(
    name="sire",
    origin=RFrame("popEpi", "sire"),
    columns=("dg_date", "ex_date", "status", "dg_age"),
    make=cancer,
    counts=Counts(8243, 4595, 0),
    unit="Y",
    horizons=(1, 3, 5),
    cutoffs=("1998-12-31", "2002-12-31", "2006-12-31"),
    event="death of any cause (two causes are recorded: rectal cancer, and others)",
    start="diagnosis of rectal cancer, women in Finland 1993 to 2012",
    closing="documented: the closing date was 2012-12-31",
    lost="none",
    licence="GPL-3",
    source="R package popEpi, sire; Finnish Cancer Registry",
    notes="A simulated cohort, close to the register's, with masked dates. The only covariate is age.",
)

SIRE_BY_CAUSE = replace(
    SIRE,
    counts=Counts(8243, 4595, 0, (3090, 1505)),
    causes={"cancer": 1, "other causes": 2},
    event="death; the cause is rectal cancer, or another",
)

SIBR = Recipe(
    name="sibr",
    origin=RFrame("popEpi", "sibr"),
    columns=SIRE.columns,
    make=cancer,
    counts=Counts(10000, 2924, 0),
    unit="Y",
    horizons=(1, 3, 5),
    cutoffs=("1998-12-31", "2002-12-31", "2006-12-31"),
    event="death of any cause (two causes are recorded: breast cancer, and others)",
    start="diagnosis of breast cancer, women in Finland 1993 to 2012",
    closing="documented: the closing date was 2012-12-31",
    lost="none",
    licence="GPL-3",
    source="R package popEpi, sibr; Finnish Cancer Registry, a random sample of 10 000",
    notes="A simulated cohort, close to the register's, with masked dates. The only covariate is age.",
)

SIBR_BY_CAUSE = replace(
    SIBR,
    counts=Counts(10000, 2924, 0, (1540, 1384)),
    causes=SIRE_BY_CAUSE.causes,
    event="death; the cause is breast cancer, or another",
)

JASA = Recipe(
    name="jasa",
    origin=RFrame("survival", "jasa", file="heart"),
    columns=("accept.dt", "fu.date", "fustat", "surgery", "age"),
    make=transplants,
    counts=Counts(103, 75, 2),
    unit="D",
    horizons=(30, 90, 365),
    cutoffs=("1970-04-01", "1971-04-01", "1972-04-01"),
    event="death",
    start="acceptance into Stanford's heart transplant programme, 1967 to 1974",
    closing="in the data: 26 of 28 who are alive end on 1974-04-01, as in Crowley and Hu (1977)",
    lost="2 who are alive and end earlier",
    licence="LGPL-2 or later",
    source="R package survival, jasa; Crowley and Hu (1977)",
    notes="Small. Transplantation, and all that is known of the donor, comes after the start, and is left out.",
)
