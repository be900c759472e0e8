"""What becomes of the tables of real data: covariates, and dates as for `Outcomes.from_dates`.

`sets.toml` says of each set which function of this module makes it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

# The Senate's own divisions. Eight senators of 1990 stood for a division as a whole, so that their province would tell
# when they came.
DIVISIONS = {
    "Ontario": ("Ontario", "Ontario (Division)"),
    "Quebec": ("Quebec", "Quebec (Division)"),
    "Maritimes": ("Nova Scotia", "New Brunswick", "Prince Edward Island", "Maritimes (Division)"),
    "West": ("Manitoba", "British Columbia", "Saskatchewan", "Alberta", "Western Provinces (Division)"),
    "Newfoundland and Labrador": ("Newfoundland and Labrador",),
    "Territories": ("Northwest Territories", "Yukon", "Nunavut"),
}
FIRST_CENSUS = 1946  # of the heads of government: when those began who are in it, is not known
DAYS_OF_A_YEAR = 365.25
JULIAN_ORIGIN = "1960-01-01"  # of S, from which MASS has its dates
CANCER = 2  # of the causes of death in Epi's gmortDK, 1 to 15; 47 deaths have 16, which it doesn't explain
TRANSMISSION = {
    "hs": "homosexual",
    "hsid": "homosexual and drugs",
    "id": "drugs",
    "het": "heterosexual",
    "haem": "haemophilia",
    "blood": "blood",
    "mother": "mother",
    "other": "other",
}


class Made(NamedTuple):
    """Covariates and dates of the individuals in a table."""

    X: pd.DataFrame
    start: Any
    event_date: Any
    cutoff: Any
    last_seen: Any = None
    groups: Any = None
    cause: Any = None


def senators(table: pd.DataFrame) -> Made:
    """Return the terms of those who took their seat."""
    served = table[table["reason"] != "Appointment declined"].reset_index(drop=True)
    party = served["Political Affiliation at Appointment"]
    # parties had several names each, which tell the time: "Conservative (1867-1942)"
    liberal, conservative = party.str.contains("Liberal"), party.str.contains("Conservative")
    family = np.select([conservative, liberal], ["Conservative", "Liberal"], "other")
    region = {province: division for division, provinces in DIVISIONS.items() for province in provinces}
    X = pd.DataFrame(
        {
            "party": pd.Categorical(family, ["Conservative", "Liberal", "other"]),
            "region": pd.Categorical(served["Province / Territory"].map(region), list(DIVISIONS)),
        }
    )
    start, end = (pd.to_datetime(served[name], format="ISO8601").dt.normalize() for name in ("start_date", "end_date"))
    left = served["observed"].astype(bool)
    return Made(
        X,
        start,
        end.where(left),
        "2013-10-01",
        end.where(~left),
        served["Name"].to_numpy(dtype=object),
        served["reason"].to_numpy(dtype=object),
    )


def heads_of_government(table: pd.DataFrame) -> Made:
    """Return the spells that began after the first census."""
    # one spell is in the table twice, with two codes for the same country
    spells = table[table["start_year"] > FIRST_CENSUS].drop_duplicates("leaderspellreg").reset_index(drop=True)
    names = {"un_continent_name": "continent", "un_region_name": "region", "regime": "regime"}
    X = pd.DataFrame({new: spells[old].astype("category") for old, new in names.items()})
    X["democracy"] = (spells["democracy"] == "Democracy").astype(np.int64)
    gone = spells["start_year"] + spells["duration"]
    return Made(
        X, _last_day(spells["start_year"]), _last_day(gone), "2008-12-31", None, spells["ctryname"].to_numpy(object)
    )


def _last_day(year: pd.Series[int]) -> pd.Series[pd.Timestamp]:
    return pd.to_datetime(year.astype(str) + "-12-31", format="%Y-%m-%d")


def purchases(table: pd.DataFrame) -> Made:
    """Return the time from the first day with purchases to the second."""
    day = pd.to_datetime(table["date"].astype(str), format="%Y%m%d")
    orders = table.assign(date=day).sort_values(["customer_id", "date"], kind="stable")
    first = orders.groupby("customer_id")["date"].transform("min")
    again = orders[orders["date"] > first].groupby("customer_id")["date"].min()
    on_first_day = orders[orders["date"] == first].groupby("customer_id")
    X = on_first_day.agg(
        orders=("date", "size"), cds=("number_of_cds", "sum"), dollars=("dollar_value", "sum")
    ).rename_axis(None)
    start = on_first_day["date"].min()
    return Made(X.reset_index(drop=True), start.to_numpy(), again.reindex(start.index).to_numpy(), "1998-06-30")


def _since(days: pd.Series[Any], origin: str) -> pd.Series[Any]:
    # pandas leaves memory of missing days unset and then rounds it, which can overflow
    dates = pd.to_datetime(days.fillna(0), unit="D", origin=pd.Timestamp(origin))
    return dates.where(days.notna())


def _of_years(years: pd.Series[Any]) -> pd.Series[Any]:
    """Return dates that are written as Epi does: 1970 plus days since then over 365.25."""
    return _since(((years - 1970) * DAYS_OF_A_YEAR).round(), "1970-01-01")


def _years(start: pd.Series[Any], end: pd.Series[Any]) -> pd.Series[Any]:
    return (end - start).dt.days / DAYS_OF_A_YEAR


def _named(values: pd.Series[Any], names: dict[Any, str]) -> pd.Categorical[str]:
    return pd.Categorical(values.map(names), list(dict.fromkeys(names.values())))


def aids(table: pd.DataFrame) -> Made:
    """Return the time from diagnosis to death."""
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
        X=made.X.drop(columns="insulin"),
        event_date=insulin.where(started, death),
        last_seen=made.last_seen.where(~started),
        cause=np.where(started, "insulin", "death"),
    )


def cancer(table: pd.DataFrame) -> Made:
    """Return the time from diagnosis to death, and its cause."""
    X = pd.DataFrame({"age": table["dg_age"]})
    died = table["status"] > 0
    end = table["ex_date"]
    return Made(X, table["dg_date"], end.where(died), "2012-12-31", end.where(~died), cause=table["status"].to_numpy())


def transplants(table: pd.DataFrame) -> Made:
    """Return the time from acceptance to death."""
    X = pd.DataFrame({"age": table["age"], "surgery": table["surgery"].astype(np.int64)})
    died = table["fustat"] == 1
    return Made(X, table["accept.dt"], table["fu.date"].where(died), "1974-04-01", table["fu.date"].where(~died))
