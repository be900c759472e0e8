"""Scores of a data set in files, streams or clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from inspect import signature
from operator import add as plus
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from survscore._utils.jobs import Progress, silent
from survscore._validation import InputError, plural, warn
from survscore.analysis.diagnose import leak_warnings
from survscore.causes import takes_cause
from survscore.engine.averaging import Ranges, check_ranges
from survscore.io.files import check_regular
from survscore.io.forms import Form
from survscore.metrics import FollowUpMetric
from survscore.results.comparison import Comparison
from survscore.results.printing import warn_about
from survscore.results.segments import SegmentedComparison
from survscore.scale.columns import OutcomeColumns
from survscore.scale.files import counted_twice
from survscore.scale.finishing import finish
from survscore.scale.joining import MEMORY, joined, pivoted
from survscore.scale.memory import as_bytes
from survscore.scale.running import Run
from survscore.scale.sources import identified, open_source
from survscore.scale.specification import RANK_ROWS, BinsNeededError, Specification, as_metrics, check_sums, specify
from survscore.scale.state import State, differences
from survscore.scale.work import Gathered
from survscore.weighting import Administrative, Projected, Weighting


@takes_cause
def evaluate(
    source: Any,
    *,
    weighting: Any = None,
    models: Any = None,
    metric: Any = "brier",
    times: ArrayLike | None = None,
    outcomes: OutcomeColumns | Mapping[str, Any] | None = None,
    outcomes_from: Any = None,
    cause: str | int | None = None,
    form: Form | None = None,
    id: str = "id",
    by: str | Sequence[str] = (),
    groups: str | None = None,
    weights: str | None = None,
    weight_kind: str = "probability",
    entry: str | None = None,
    reference: str | None = None,
    ranges: Ranges = None,
    strata: str | None = None,
    rank_rows: int = RANK_ROWS,
    level: float = 0.95,
    engine: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    format: str | None = None,
    manifest: Any = None,
    skip_bad_files: bool = False,
    checksums: bool = False,
    state: str | Path | None = None,
    add: Any = (),
    memory_limit: int | str | None = None,
    progress: Progress | None = None,
) -> Comparison | SegmentedComparison:
    """Score and compare models on data that need not fit in memory.

    The result is what `compare` returns, from sums over the rows that do not depend, within rounding (1e-12), on how
    the rows are cut into files and batches, in which order they come, and on how many machines.

    Parameters
    ----------
    source : path, pattern, address, list of these, table, frame, relation or iterator of record batches
        A folder of Parquet, CSV or Arrow files, also on object storage (``s3://``, ``gs://``, ``abfs://``), where names
        of folders such as ``country=DE`` are columns too; a pyarrow Dataset, Table or reader; a Polars LazyFrame; a
        DuckDB relation; a Dask or Spark frame; a function that returns record batches, or an iterator of them.
    weighting : str, Weighting, or several
        ``"administrative"``, ``"projected"``, ``"ipcw"`` or ``"uncensored"``, or instances of their classes whose
        weights are estimated from the data. By default, where :math:`C^*` is known, ``"administrative"`` and
        ``"projected"``, as by `compare`, with its recommendation; ``"administrative"`` alone where sums are kept or
        added (`state`, `add`, `evaluate_state`).
    models : optional
        Where predictions are. None: columns named by time, with the model before a colon, ``net:30``. A pattern such as
        ``"{model}_{time}"``. A list of names, which picks among these. A mapping of names to patterns with ``{time}``,
        or to `ModelColumns`.
    metric : str or Metric, or several
        What to compute, as for `compare`. ``"brier"`` and ``"log"`` are sums over individuals. Others, such as
        ``"auc"``, need all predictions at once: then the columns that are needed are gathered and must fit in
        memory, four times over; those of some horizons do where all do not.
    times : array_like, optional
        The evaluation times; by default those of the columns that all models have.
    outcomes : OutcomeColumns or mapping, optional
        Where outcomes are: ``time``, ``event`` and ``censoring_time``, or with a ``cutoff`` dates ``start``,
        ``event_date`` and ``last_seen``; by default columns of these names.
    outcomes_from : optional
        A table of its own that has the outcomes, and perhaps segments and groups: anything that `source` may be. It is
        joined by id, by DuckDB. Frames of Dask and Spark are joined there first, by their own `merge` or `join`.
    cause : str or int, optional
        Under competing risks the cause of events that scores are of. The column of events has the causes 1, 2, ..., or
        their names, which `outcomes` gives in order: ``outcomes={"causes": ["churn", "fraud"]}``. Columns of
        predictions have the cause in their names, ``net:churn@30`` or by a pattern with ``{cause}``; or else they are
        of this cause.
    form : Form, optional
        What predictions look like, if they are not survival: probabilities of the event (``predicts="event"``),
        percentages, in another unit of time (``unit="month"``, with the ``unit`` of `outcomes`); and how they are read
        (``interpolation``, ``extrapolation``, ``monotone``); and ``long=True``, with `outcomes_from`, for a row per
        individual and time. Files in transposed form are refused.
    id : str, default "id"
        The column of ids in both; every prediction needs one outcome.
    by : str or sequence of str
        Columns whose values make segments: each is scored as if it were alone.
    groups : str, optional
        The column of labels of individuals that depend on each other. Up to 4 096 groups are used as they are; more are
        put into as many random buckets, which the settings of the result record.
    weights : str, optional
        The column of sample weights, known when observation began.
    weight_kind : {"probability", "importance", "frequency"}, default "probability"
        What weights are; see `Outcomes.weighted`.
    entry : str, optional
        With delayed entry, the column of when each individual came under observation: a time, or a date where outcomes
        have a ``cutoff``. Scores count time from there, and predictions are taken given that the individual was
        event-free then.
    reference : str, optional
        The model that the others are compared with; by default the first.
    ranges : optional
        ``"any"``, or pairs of times: means over time have standard errors. It takes about as long again.
    strata : str, optional
        The column of the strata in which ``"projected"`` shares statuses; by default strata are by ranks, see
        `Projected`.
    rank_rows : int, default 100 000
        Up to so many rows, what takes two passes is computed in memory. Of more, as many are drawn at random in a first
        pass: strata by ranks come from these, and standard errors of projected scores from their preliminary estimates.
        The settings of the result have this number.
    level : float, default 0.95
        Of all confidence intervals.
    engine : optional
        What does the work: by default threads of this machine over files; a Dask client, or a Spark session.
    storage_options, format, manifest
        How to reach remote storage: what pyarrow's file systems of S3, GCS and Azure take, or for other addresses
        fsspec; ``"parquet"``, ``"csv"`` or ``"arrow"``, by default what the endings say; and the names of all files
        that there must be, relative to the folder, or a text file of these.
    skip_bad_files : bool, default False
        Leave out files that can't be read; `State.skipped`, a warning and the settings name them.
    checksums : bool, default False
        Verify the checksums of Parquet pages, if they have any.
    state : path, optional
        A folder where the sums of finished files are kept: interrupted, the same call goes on where it was.
    add : State or path, or several
        Sums of other rows, such as those of earlier days that `evaluate_state` made, to be added.
    memory_limit : int or str, optional
        In bytes, or such as ``"1GB"``: fewer rows are read at a time, and by fewer threads, and sums that would not fit
        are refused. By default a thread takes some 300 MB for 50 columns, and sums up to half of the machine's memory.
    progress : callable, optional
        Called with how many files, of how many, are done, and how fast.

    Returns
    -------
    Comparison or SegmentedComparison

    Raises
    ------
    InputError
        If an argument is invalid; the message names it, the rule, and the first value that violates it.
    UnfitError
        If a metric is not defined for these predictions, or under this weighting.
    BadFileError
        If a file cannot be read, unless `skip_bad_files`.
    MemoryLimitError
        If the sums, or the columns of a metric that needs all predictions, would take more than `memory_limit`.

    Notes
    -----
    Weights that are estimated, by Kaplan-Meier of all rows together, need one pass over data whose times are whole
    units, such as days; otherwise the outcomes are looked at first. Projected statuses, groups, sample weights, and
    means over time under estimated weights take two passes, or three with groups, sample weights, or segments of
    projected scores. Beyond 16 384 distinct times of leaving, times are rounded up to as many quantiles, which changes
    weights by about one part in 16 384.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import survscore as ss
    >>> rows = pa.table({
    ...     "time": [1.0, 3.0, 4.0], "event": [1, 0, 1], "censoring_time": [4.0, 3.0, 6.0],
    ...     "net:2": [0.5, 0.9, 0.8], "net:4": [0.2, 0.7, 0.6],
    ... })
    >>> ss.evaluate(rows, weighting="administrative").scores["score"].round(4).tolist()
    [0.1, 0.2]
    """
    options = dict(locals())  # all arguments, by name
    total, result = sums_and_result(**options)
    warn_about_all(total, result)
    return result


#: What says what is computed.
ASKED = (
    "weighting", "models", "metric", "times", "by", "groups", "level", "form", "strata", "rank_rows",
)  # fmt: skip
#: What those arguments of `evaluate` are that a caller leaves out.
DEFAULTS = {
    name: None if one.default is one.empty else one.default
    for name, one in signature(evaluate).parameters.items()
    if name != "source"
}


def sums_and_result(
    source: Any, *, lasting: bool = False, **options: Any
) -> tuple[State | Gathered, Comparison | SegmentedComparison]:
    """Return the sums of all rows, or these, and what comes of them; see `evaluate` and `evaluate_state`."""
    run, what, stored = _prepared(source, options, one_pass=lasting)
    reference = options.get("reference")
    if not what.metrics:
        metrics = as_metrics(options.get("metric", DEFAULTS["metric"]))
        if stored or lasting:
            check_sums(metrics, "sums that are added to those of other days")
        rows = run.rows(what)
        return rows, rows.compared(metrics, options.get("ranges"), reference)
    total = _added(run, what, stored) if stored else run.sums(what, lasting=lasting)
    if isinstance(total, Gathered):
        return total, total.compared(what.metrics, options.get("ranges"), reference)
    result = _with_leaks(finish(total), total)
    return total, result if reference is None else result.against(reference)


def _with_leaks(result: Comparison | SegmentedComparison, total: State) -> Comparison | SegmentedComparison:
    """Return a result that names models that encode C*, found in the sample of ranks, where no recommendation does."""
    compared = result.total if isinstance(result, SegmentedComparison) else result
    if total.projected is None or (compared.has_recommendation and compared is result):
        return result
    sample = total.projected.strata.sample
    if sample is None:
        return result
    y, models = sample
    found = replace(compared, leak_warnings=leak_warnings(y, models, total.specification.weightings))
    return replace(result, total=found) if isinstance(result, SegmentedComparison) else found


def evaluate_state(source: Any, *, lasting: bool = True, **options: Any) -> State:
    """Return the sums that `evaluate` makes results of: to be stored, and added to those of other days.

    Where weights are estimated, times in whole units, such as days, make sums that add up. For other times, bins are
    made from the data, and sums of other data can only be added if they were made with ``add=`` these.

    Parameters
    ----------
    source, **options
        As for `evaluate`; `reference` is only checked.
    lasting : bool, default True
        Whether sums of other days are to be added: weights are then looked into though nobody may leave today. Without,
        it is as fast as `evaluate`.

    Returns
    -------
    State
        With `State.to_bytes` and `State.result`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from survscore.scale import evaluate_state
    >>> rows = pa.table({
    ...     "time": [1.0, 3.0, 4.0], "event": [1, 0, 1], "censoring_time": [4.0, 3.0, 6.0],
    ...     "net:2": [0.5, 0.9, 0.8], "net:4": [0.2, 0.7, 0.6],
    ... })
    >>> monday = evaluate_state(rows[:1], weighting="administrative")
    >>> both = evaluate_state(rows[1:], weighting="administrative", add=monday)
    >>> both.result().scores["score"].round(4).tolist()
    [0.1, 0.2]
    """
    check_sums(as_metrics(options.get("metric", DEFAULTS["metric"])), "sums")
    run, what, stored = _prepared(source, options, one_pass=True)
    for name, asked in (("groups", what.groups), ("sample weights", what.outcomes.weights)):
        if asked is not None:
            raise InputError(
                f"{name} take a second pass over the data, and sums of one pass are no result: use evaluate"
            )
    total = _added(run, what, stored) if stored else run.state(what, lasting=lasting)
    warn_about_skipped(total)
    return total


def _prepared(
    source: Any, options: Mapping[str, Any], *, one_pass: bool = False
) -> tuple[Run, Specification, list[State]]:
    """Return what goes over the rows, what is computed, and sums that were stored; see `evaluate`."""
    unknown = sorted(set(options) - set(DEFAULTS))
    if unknown:
        raise TypeError(f"unexpected argument {unknown[0]!r}")
    given: dict[str, Any] = {**DEFAULTS, **options}
    check_ranges(given["ranges"])
    add, storage_options, outcomes_from = given["add"], given["storage_options"], given["outcomes_from"]
    memory = as_bytes(given["memory_limit"])
    stored = [_stored(one, memory) for one in (add if isinstance(add, list | tuple) else [add])]
    opened = identified(
        open_source(source, storage_options=storage_options, format=given["format"], manifest=given["manifest"])
    )
    columns = _columns(given)
    if given["cause"] is not None:
        columns = (columns or OutcomeColumns()).of_cause(given["cause"])
    form: Form | None = given["form"]
    long = form is not None and (form.long or form.time_column is not None)
    share = MEMORY if memory is None else memory // (3 if long else 2)
    if form is not None and long:
        if outcomes_from is None:
            raise InputError(
                "long form, a row for each individual and time, needs outcomes in a table of their own: `outcomes_from`"
            )
        opened = pivoted(opened, id=given["id"], time_column=form.time_column, memory_limit=share)
        given["form"] = replace(form, long=False, time_column=None)
        memory = None if memory is None else memory - share
    if outcomes_from is not None:
        nullable = (columns or OutcomeColumns()).nullable()
        remote = storage_options if isinstance(outcomes_from, str) and "://" in outcomes_from else None
        memory = None if memory is None else memory - share
        opened = joined(
            opened, outcomes_from, id=given["id"], nullable=nullable, storage_options=remote, memory_limit=share
        )
    run = Run(
        opened, given["engine"], given["skip_bad_files"], given["checksums"], given["state"], memory,
        given["progress"] or silent,
    )  # fmt: skip
    asked = {name: given[name] for name in ASKED}
    _check_unit(given["form"], given["outcomes"])
    asked["weighting"] = _weightings(given, run.schema(), columns, one_pass=one_pass or bool(stored))
    what = specify(run.schema(), outcomes=columns, over_time=given["ranges"] is not None, **asked)
    run = replace(run, naming=_naming(given), models=what.names if isinstance(given["models"], list | tuple) else ())
    reference = given["reference"]
    if reference is not None and reference not in what.names:
        raise InputError(f"reference must be one of the models {list(what.names)}, not {reference!r}")
    return run, what, stored


def _weightings(given: Mapping[str, Any], schema: Any, columns: OutcomeColumns | None, *, one_pass: bool) -> Any:
    """Return the weightings that were asked for, or those that compare has by default, as far as they are available."""
    asked, observed = given["weighting"], columns or OutcomeColumns()
    one_pass = one_pass or given["state"] is not None
    if asked is not None:
        several = [asked] if isinstance(asked, str | Weighting) else list(asked)
        if one_pass and any(one == Projected.name or isinstance(one, Projected) for one in several):
            raise InputError(
                "projected scores take several passes over all rows, so there are no sums of them to keep or to add: "
                "name `weighting` 'administrative' for these"
            )
        return asked
    if not observed.dated and observed.censoring_time not in schema.names:
        return None
    whole = any(isinstance(one, FollowUpMetric) for one in as_metrics(given["metric"]))
    alone = one_pass or whole
    return [Administrative.name] if alone else [Administrative.name, Projected.name]


def _naming(given: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return by which patterns columns of predictions were found; None where they were named one by one."""
    models = given["models"] if given["form"] is None or given["form"].columns is None else given["form"].columns
    if isinstance(models, Mapping):
        return tuple(one for one in models.values() if isinstance(one, str)) or None
    return (models,) if isinstance(models, str) else ("",)


def _added(run: Run, what: Specification, stored: Sequence[State]) -> State:
    """Return the sums of all rows and of those that were stored."""
    for name, asked in (("groups", what.groups), ("sample weights", what.outcomes.weights)):
        if asked is not None:
            raise InputError(f"stored sums can't be added with {name}, which take a second pass over all the data")
    before = _sum(stored, what, {part.id for part in run.source.parts or ()})
    if before.specification.two_passes:
        raise InputError("stored sums can't be added for means over time with estimated weights: that takes two passes")
    try:
        return run.state_of(before.specification) + before
    except BinsNeededError as error:
        raise InputError(f"the stored sums do not fit these rows: {error}") from None


def _sum(stored: Sequence[State], what: Specification, files: set[str]) -> State:
    """Return the sums of what was stored; raise if they are not of this, or of the same files."""
    wanted = replace(what, bins=stored[0].specification.bins)
    for one in stored:
        if one.specification.digest != wanted.digest:
            told = differences(one.specification, wanted)
            raise InputError(f"stored sums of another specification can't be added: {told}")
        twice = counted_twice(files, one.files)
        if twice:
            raise InputError(twice)
    return reduce(plus, stored)


def _stored(one: Any, memory: int | None) -> State:
    if isinstance(one, State):
        return one
    check_regular(Path(one))
    try:
        return State.from_bytes(Path(one).read_bytes(), memory)
    except InputError as error:
        raise InputError(f"{one}: {error}") from None
    except OSError as error:
        raise InputError(f"{one}: can't be read: {error.strerror}") from None


def warn_about_all(total: State | Gathered, result: Comparison | SegmentedComparison) -> None:
    """Warn about files that were left out, times without score, and standard errors from few groups."""
    warn_about_skipped(total)
    if isinstance(total, Gathered):  # compare has warned
        return
    total_of_all = result.total if isinstance(result, SegmentedComparison) else result
    warn_about(total_of_all.scored)


def warn_about_skipped(total: State | Gathered) -> None:
    """Warn if files were left out."""
    if total.skipped:
        warn(
            f"{plural(len(total.skipped), 'file')} of {len(total.files)} could not be read and "
            f"{'was' if len(total.skipped) == 1 else 'were'} left out, the first {total.skipped[0]}",
        )


def _check_unit(form: Form | None, outcomes: Any) -> None:
    """Raise if predictions have a unit, and nobody said that of the outcomes: days are not meant unless they are."""
    if form is None or form.unit is None or isinstance(outcomes, OutcomeColumns):
        return
    if not {"unit", "cutoff"} & set(outcomes or ()):
        raise InputError("`predictions_unit` needs `unit`, that of the outcomes' times, to convert predictions to")


def _columns(given: Mapping[str, Any]) -> OutcomeColumns | None:
    """Return where outcomes are, with delayed entry and sample weights, which have arguments of their own."""
    outcomes = given["outcomes"]
    try:
        columns = outcomes if isinstance(outcomes, OutcomeColumns) else OutcomeColumns(**dict(outcomes or {}))
    except TypeError as error:
        raise InputError(f"outcomes must name columns of OutcomeColumns: {error}") from None
    more = {"entry_date" if columns.dated else "entry": given["entry"], "weights": given["weights"]}
    more = {name: column for name, column in more.items() if column is not None}
    if "weights" in more:
        more["weight_kind"] = given["weight_kind"]
    return None if outcomes is None and not more else replace(columns, **more)
