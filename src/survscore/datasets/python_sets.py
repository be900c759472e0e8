"""Sets out of Python packages, two of them our own: people in office, and customers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from survscore.datasets.origins import TextFile
from survscore.datasets.recipe import Counts, Made, Recipe

if TYPE_CHECKING:
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


def senators(table: pd.DataFrame) -> Made:
    """Return the terms of those who took their seat."""
    import pandas as pd

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
        X, start, end.where(left), "2013-10-01", end.where(~left), served["Name"].to_numpy(dtype=object),
        served["reason"].to_numpy(dtype=object),
    )  # fmt: skip


def heads_of_government(table: pd.DataFrame) -> Made:
    """Return the spells that began after the first census."""
    import pandas as pd

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
    import pandas as pd

    return pd.to_datetime(year.astype(str) + "-12-31", format="%Y-%m-%d")


def purchases(table: pd.DataFrame) -> Made:
    """Return the time from the first day with purchases to the second."""
    import pandas as pd

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


SENATORS = Recipe(
    name="senators",
    origin=TextFile("survscore", "survscore", "datasets/tables/senators.csv"),
    columns=(
        "Name", "Political Affiliation at Appointment", "Province / Territory", "start_date", "end_date", "reason",
        "observed",
    ),
    make=senators,
    counts=Counts(930, 831, 0),
    unit="Y",
    horizons=(5, 10, 15),
    cutoffs=("1980-12-31", "1990-12-31", "2000-12-31"),
    event="leaves the Senate of Canada, by death, resignation or retirement",
    start="appointment",
    closing="the 99 who still sit end on 2013-10-01, the day on which the list was taken",
    lost="none: membership is public",
    licence="MIT",
    source="lifelines, canadian_senators; from the list of the Parliament of Canada",
    notes="Three who declined their appointment are left out. So is the prime minister who advised it, who would tell "
    "the date; parties and provinces are joined into families and divisions, as some of their names would. Who was "
    "appointed before June 1965 sat for life, others until they are 75, so times drift. Groups are names, since a few "
    "senators were appointed again.",
)  # fmt: skip

SENATORS_BY_CAUSE = replace(
    SENATORS,
    counts=Counts(930, 831, 0, (494, 201, 136)),
    causes={"death": "Death", "resignation": "Resignation", "retirement": "Retirement"},
    event="leaves the Senate of Canada; the cause is death, resignation or retirement",
)

DD = Recipe(
    name="dd",
    origin=TextFile("survscore", "survscore", "datasets/tables/dd.csv"),
    columns=(
        "ctryname", "un_region_name", "un_continent_name", "leaderspellreg", "democracy", "regime", "start_year",
        "duration",
    ),
    make=heads_of_government,
    counts=Counts(1737, 1545, 0),
    unit="Y",
    horizons=(1, 3, 5),
    cutoffs=("1980-12-31", "1990-12-31", "2000-12-31"),
    event="another head of government, or another kind of regime",
    start="the first end of a year at which the head of government was in office under this kind of regime",
    closing="documented: the data cover 1946 to 2008",
    lost="none: 150 spells that the table marks as censored before 2008 ended by death in office or with their "
    "country, in a year that is known, and count as ended",
    licence="MIT",
    source="lifelines, dd; Cheibub, Gandhi and Vreeland (2010), Democracy and Dictatorship",
    notes="Dates are years; they are read as 31 December, so that times are whole years. 70 spells of 1946 are left "
    "out, since their beginning is not known, and one that is listed twice. Two that ended in 2009 had not by the "
    "closing date. Spells of a country follow each other, so groups are countries.",
)  # fmt: skip

CDNOW = Recipe(
    name="cdnow",
    origin=TextFile("lifetimes", "Lifetimes", "datasets/CDNOW_master.txt", r"\s+", ("customer_id",)),
    columns=("customer_id", "date", "number_of_cds", "dollar_value"),
    make=purchases,
    counts=Counts(23570, 11516, 0),
    unit="D",
    horizons=(30, 60, 90),
    cutoffs=("1997-04-15", "1997-04-30", "1997-05-31"),
    event="buys again, on a later day",
    start="first purchase, in the first quarter of 1997",
    closing="documented by those who collected the data: all purchases up to the end of June 1998",
    lost="none: a customer who does not return is not known to have left",
    licence="MIT",
    source="Lifetimes, CDNOW_master; Fader and Hardie (2001), customers of an online shop",
    notes="All individuals start within twelve weeks, so C* is 462 to 545 days. Purchases of one day count as one, and "
    "what was bought on the first day is the sum.",
)
