"""Outcomes in a table of their own, where both are frames on a cluster: joined by that cluster, and checked there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from survscore._validation import InputError, plural
from survscore.scale.joining import Ids, check_matched, check_unique, joined_columns
from survscore.scale.sources import Source, open_source


def joined_frames(
    predictions: Any, outcomes: Any, *, id: str, columns: Sequence[str] | None = None, allow_extra: bool = False
) -> Any:
    """Return predictions with the outcomes of the same ids, both on a cluster.

    Every id in the predictions needs exactly one outcome; an id may have several predictions. The engine of the frames
    counts what breaks this before it joins, so the columns of ids are read twice; only counts come here.

    Parameters
    ----------
    predictions, outcomes : Dask frames, or Spark frames
        With a column of ids of the same name.
    id : str
        That column.
    columns : sequence of str, optional
        Columns to take from the outcomes, by default all but `id`.
    allow_extra : bool
        Let outcomes without prediction pass.

    Returns
    -------
    Dask frame, or Spark frame
    """
    libraries = [type(one).__module__.split(".", 1)[0] for one in (predictions, outcomes)]
    known = {"dask": ("Dask frame", _dask), "pyspark": ("Spark frame", _spark)}
    if libraries[0] != libraries[1] or libraries[0] not in known:
        raise InputError(
            "predictions and outcomes must both be Dask frames, or both Spark frames, not "
            f"{type(predictions).__name__} of {libraries[0]} and {type(outcomes).__name__} of {libraries[1]}"
        )
    name, join = known[libraries[0]]
    both = open_source(predictions, name=name), open_source(outcomes, name=name)
    return join(predictions, outcomes, both, id, joined_columns(*both, id, columns), allow_extra)


# Dask


def _dask(
    predictions: Any, outcomes: Any, both: tuple[Source, Source], id: str, taken: list[str], allow_extra: bool
) -> Any:
    import dask

    left, right = predictions[[id]], outcomes[[id]]
    nulls = dask.compute(left[id].isnull().sum(), right[id].isnull().sum())
    _check_nulls(both, id, nulls)
    # rows of an id are in one partition, so that each partition can count by itself
    counted = right.shuffle(on=id).map_partitions(_repeats_of, id, meta=_REPEATS).compute()
    first, times = _least(counted.loc[counted["times"] > 1, ["first", "times"]].values.tolist())
    check_unique(both[1], id, int(counted["rows"].sum()), int(counted["different"].sum()), first, times)
    sides = left.merge(right, on=id, how="outer", indicator=True)
    found = sides.map_partitions(_sides_of, id, meta=_SIDES).compute()
    alone = []
    for side in ("left_only", "right_only"):
        of_side = found[(found["side"] == side) & (found["count"] > 0)]
        alone.append(Ids(int(of_side["count"].sum()), _least(of_side[["first"]].values.tolist())[0]))
    total = int(found.loc[found["side"] != "right_only", "count"].sum())
    check_matched(both[0], both[1], id, total, alone[0], alone[1], allow_extra)
    return predictions.merge(outcomes[[id, *taken]], on=id, how="inner")


_REPEATS = {"rows": "i8", "different": "i8", "first": "O", "times": "i8"}
_SIDES = {"side": "O", "count": "i8", "first": "O"}


def _repeats_of(rows: Any, id: str) -> Any:
    import pandas as pd

    counts = rows[id].value_counts()
    several = counts[counts > 1]
    first = several.index.min() if len(several) else None
    times = int(several[first]) if len(several) else 0
    told = {"rows": [len(rows)], "different": [len(counts)], "first": [_plain(first)], "times": [times]}
    return pd.DataFrame(told).astype({"first": object})


def _sides_of(rows: Any, id: str) -> Any:
    import pandas as pd

    told = []
    for side in ("both", "left_only", "right_only"):
        ids = rows.loc[rows["_merge"] == side, id]
        told.append([side, len(ids), _plain(ids.min()) if len(ids) else None])
    return pd.DataFrame(told, columns=list(_SIDES)).astype({"side": object, "first": object, "count": "i8"})


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _least(rows: list[list[Any]]) -> tuple[Any, Any]:
    """Return the row with the least id: the first offender is the same however rows are cut into partitions."""
    if not rows:
        return None, None
    least = min(rows, key=lambda row: row[0])
    return least[0], least[-1]


# Spark


def _spark(
    predictions: Any, outcomes: Any, both: tuple[Source, Source], id: str, taken: list[str], allow_extra: bool
) -> Any:
    from pyspark.sql import functions as sql

    left, right = (frame.select(sql.col(quoted(id)).alias("id")) for frame in (predictions, outcomes))
    count = sql.count(sql.lit(1))
    missing = sql.count_if(sql.col("id").isNull())
    total, *nulls = left.agg(count, missing).collect()[0]
    nulls += [right.agg(missing).collect()[0][0]]
    _check_nulls(both, id, nulls)
    times = right.groupBy("id").agg(count.alias("times"))
    several = sql.when(sql.col("times") > 1, sql.struct("id", "times"))
    rows, different, first = times.agg(sql.sum("times"), count, sql.min(several)).collect()[0]
    check_unique(both[1], id, rows or 0, different, *(first or (None, None)))
    alone = []
    for one, other in ((left, right), (right, left)):
        without = one.join(other.distinct(), "id", "left_anti")
        alone.append(Ids(*without.agg(count, sql.min("id")).collect()[0]))
    check_matched(both[0], both[1], id, total, alone[0], alone[1], allow_extra)
    return predictions.join(outcomes.select(*map(quoted, [id, *taken])), id, "inner")


def quoted(name: str) -> str:
    """Return a name of a column as Spark takes it whole: dots would look into it."""
    return "`" + name.replace("`", "``") + "`"


def _check_nulls(both: tuple[Source, Source], id: str, nulls: Sequence[Any]) -> None:
    for source, role, count in zip(both, ("predictions", "outcomes"), nulls, strict=True):
        if count:
            raise InputError(f"{role} ({source.name}): column {id!r} has {plural(int(count), 'missing value')}")
