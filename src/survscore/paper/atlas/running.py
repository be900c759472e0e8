"""Running the atlas: a file for each data set, written whole, so that an interrupted run goes on where it stopped."""

from __future__ import annotations

import json
import math
import os
import re
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from survscore._utils.jobs import Progress, silent
from survscore._validation import InputError, check_choice, check_whole
from survscore._version import __version__
from survscore.io.files import written_whole
from survscore.paper import runner
from survscore.paper.atlas.data import FEWEST_FOLLOWED, FEWEST_WITH_STATUS, Prepared, prepare, scoreable
from survscore.paper.atlas.judging import (
    LEAST_HIDDEN,
    LEAST_JUDGED,
    LEVEL,
    Row,
    at_closing,
    horizons_on,
    on_earlier_days,
)
from survscore.paper.atlas.models import FAMILIES, SIZES, AtlasSize, ListedModel, family, installed, listed
from survscore.paper.atlas.results import BY_CAUSE, TABLES, Atlas
from survscore.paper.atlas.scores import scores

PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn", "scikit-survival", "torch")
REMEDY = "remove it to have it computed anew, or choose another folder"


@dataclass(frozen=True)
class AtlasPlan:
    """What decides the numbers of a data set, and where they go."""

    size: AtlasSize
    seed: int
    models: tuple[str, ...]
    folder: Path
    by_cause: bool = False

    def path(self, name: str) -> Path:
        """Return where a set's results are kept."""
        return self.folder / ("causes" if self.by_cause else "sets") / f"{_file_name(name)}.json"

    def computed(self, data: Prepared, progress: Progress) -> dict[str, list[Row]]:
        """Compute the tables of a set."""
        entries = [entry for entry in listed(by_cause=self.by_cause) if entry.name in self.models]
        closing = {} if self.by_cause else at_closing(data, entries, self.size, self.seed)
        return closing | on_earlier_days(data, entries, self.size, self.seed, progress, by_cause=self.by_cause)

    def settings(self, data: Prepared) -> dict[str, Any]:
        """Return what kept results must agree with."""
        return {
            "survscore": __version__,
            "set": data.name,
            "data": data.digest(),
            "size": asdict(self.size),
            "seed": self.seed,
            "level": LEVEL,
            "models": list(self.models),
            "scores": list(scores(by_cause=self.by_cause)),
            "rules": {
                "fewest_followed": FEWEST_FOLLOWED,
                "fewest_with_status": FEWEST_WITH_STATUS,
                "least_judged": LEAST_JUDGED,
                "least_hidden": LEAST_HIDDEN,
            },
        }


def atlas(
    sets: Sequence[Any] | None = None,
    *,
    out: str | os.PathLike[str],
    by_cause: bool = False,
    size: str | AtlasSize = "full",
    seed: int = 1,
    n_jobs: int = 1,
    models: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Atlas:
    """Fit the same models to many data sets, and see which score would have chosen the right one.

    For each set, at its data cut-off: which model each score prefers, by predictions out of fold, and where the
    scores contradict each other significantly. Then on earlier days (`backtest`): in which order each score would have
    put the models, which it would have chosen, and how good that was by what happened since.

    Parameters
    ----------
    sets : sequence of str or Dataset, optional
        Names of data sets, or sets of your own with the attributes of `survscore.datasets.Dataset`; by default all
        that can be loaded here.
    out : path
        Folder for the results. Sets that are finished there, with the same settings, version and seed, are kept.
    by_cause : bool, default False
        Predictions of competing causes, on sets whose events have some, and scores of each cause on the earlier days.
    size : {"full", "quick"} or AtlasSize
        How much is computed; quick is to see that it works.
    seed : int, default 1
        Of samples, folds, models and draws. The same seed gives the same numbers.
    n_jobs : int, default 1
        Sets to compute at once, in processes.
    models : sequence of str, optional
        Names of the list's models; by default all whose packages are installed.
    progress : callable, optional
        Called with (done, total, what).

    Returns
    -------
    Atlas
        Also written to `out`, as CSV and JSON, with a forest plot.

    Examples
    --------
    >>> import tempfile
    >>> from survscore.paper.atlas import atlas
    >>> models = ["Kaplan-Meier", "Cox", "logistic regression, censored dropped"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = atlas(["senators"], out=folder, size="quick", models=models)
    >>> found.closing[["family", "against", "horizon", "n_pairs", "opposite_and_sure"]].head(3)
      family    against horizon  n_pairs  opposite_and_sure
    0    all  projected     5.0        3                  0
    1    all  projected    10.0        3                  0
    2    all  projected    15.0        3                  0
    """
    from survscore.plots.style import pyplot

    check_whole("seed", seed, 0)
    check_whole("n_jobs", n_jobs, 1)
    pyplot()  # if it is not there, that is better known now than after an hour
    if isinstance(size, str):
        check_choice("size", size, tuple(SIZES))
        size = SIZES[size]
    entries, missing = installed(_wanted(models, by_cause=by_cause))
    plan = AtlasPlan(size, seed, tuple(entry.name for entry in entries), Path(out), by_cause)
    chosen, unavailable = _loaded(sets, by_cause=by_cause)
    sets_of_run = [prepare(dataset, size.most, seed) for dataset in chosen]
    _check(sets_of_run, by_cause=by_cause)
    # the largest first, so that no process is left alone with it at the end
    ordered = sorted(sets_of_run, key=lambda data: -len(data.y) * (1 + len(data.cutoffs)))
    jobs = {data.name: (data, plan) for data in ordered}
    runner.run(_compute_one, jobs, kept=kept, n_jobs=n_jobs, progress=progress or silent)
    settings = plan.settings(sets_of_run[0]) | {"missing_packages": missing, "sets_not_available": unavailable}
    del settings["set"], settings["data"]
    results = {data.name: load(data, plan) for data in sets_of_run}
    if by_cause and not any(result["tables"]["backtests"] for result in results.values()):
        raise InputError(
            f"sets: none of {', '.join(results)} has an earlier closing date on which enough events of each cause "
            "were known, and enough was hidden"
        )
    result = Atlas.of(results, settings)
    result.save(plan.folder)
    return result


def _wanted(models: Sequence[str] | None, *, by_cause: bool = False) -> list[ListedModel]:
    """Return the models of the list that are wanted."""
    every = {entry.name: entry for entry in listed(by_cause=by_cause)}
    if models is None:
        return list(every.values())
    wanted = [models] if isinstance(models, str) else list(models)
    unknown = [name for name in wanted if name not in every]
    _refuse("models", "of the list", unknown, len(wanted), f"; they are {', '.join(every)}")
    some = [entry for name, entry in every.items() if name in wanted]
    for name in FAMILIES:
        n = len(family(name, some))
        if n < 2:
            raise InputError(
                f"models must have at least two of each family, to choose among: of {name!r} there are {n}"
            )
    return some


def _refuse(name: str, rule: str, unknown: Sequence[Any], n: int, more: str = "") -> None:
    if unknown:
        raise InputError(f"{name} must be {rule}: {len(unknown)} of {n} are not, the first {unknown[0]!r}{more}")


# Data sets


def _loaded(sets: Sequence[Any] | None, *, by_cause: bool = False) -> tuple[list[Any], list[str]]:
    """Return data sets, and the names of those that can't be loaded here if all were wanted."""
    from survscore import datasets

    names = list(datasets.names(causes=True) if by_cause else datasets.names())
    get = partial(datasets.load, causes=True) if by_cause else datasets.load
    if sets is None:
        here = [name for name in datasets.available() if name in names]
        if not here:
            raise InputError(
                f"sets: none of {len(names)} data sets can be loaded here; install a package that has some, such as "
                "lifetimes, or name sets of your own"
            )
        return [get(name) for name in here], [name for name in names if name not in here]
    wanted = [sets] if isinstance(sets, str) else list(sets)
    if not wanted:
        raise InputError("sets is empty: name at least one")
    unknown = [dataset for dataset in wanted if isinstance(dataset, str) and dataset not in names]
    _refuse("sets", f"among {', '.join(names)}", unknown, len(wanted))
    return [get(dataset) if isinstance(dataset, str) else dataset for dataset in wanted], []


def _check(sets: Sequence[Prepared], *, by_cause: bool) -> None:
    """Refuse sets whose results would have the same file, and those without causes where these are wanted."""
    seen = set()
    for data in sets:
        if _file_name(data.name) in seen:
            raise InputError(f"sets must have names of their own: {data.name!r} comes twice")
        seen.add(_file_name(data.name))
    without = [data.name for data in sets if by_cause and len(data.y.causes) < 2]
    if without:
        raise InputError(
            f"sets must have outcomes with causes: {len(without)} of {len(sets)} have none, the first {without[0]!r}"
        )


def _file_name(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


# Results of a set


def _compute_one(data: Prepared, plan: AtlasPlan, *, report: Callable[[str], None] = lambda what: None) -> None:
    """Compute a set's results, and write them whole."""
    began = time.perf_counter()
    report("on earlier days" if plan.by_cause else "as of the closing date")
    try:
        with runner.one_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fits that might go on, and of rare categories: models are examples
            tables = plan.computed(data, lambda part, of, what: report(what))
    except InputError as error:
        raise InputError(f"{data.name}: {error}") from error
    whole = {
        "settings": plan.settings(data),
        "about": described(data),
        "versions": runner.versions_of(PACKAGES),
        "seconds": time.perf_counter() - began,
        "tables": {
            name: [{key: _plain(value) for key, value in row.items()} for row in rows] for name, rows in tables.items()
        },
    }
    with written_whole(plan.path(data.name)) as temporary:
        temporary.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")


def _plain(value: Any) -> Any:
    """Return a value as JSON can hold it: numbers of Python, and None for what is none."""
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def described(data: Prepared) -> Row:
    """Return what a set is, and what of it is analysed."""
    y, dates = data.y, data.dates
    return {
        "n": len(y),
        "n_all": data.n_all,
        "n_events": int(y.event.sum()),
        "n_lost": int(y.n_dropped_out or 0),
        "first_entry": str(dates.start.min())[:10],
        "last_entry": str(dates.start.max())[:10],
        "closing_date": str(dates.cutoff.max())[:10],
        "unit": str(dates.unit),
        "horizons": data.horizons[scoreable(y, data.horizons)].tolist(),
        "cutoffs": {str(day)[:10]: horizons_on(data, day).tolist() for day in data.cutoffs},
        "n_covariates": data.X.shape[1] - 1,
        **({"causes": ", ".join(f"{cause} ({n})" for cause, n in y.n_by_cause.items())} if y.causes else {}),
        **data.about,
    }


def kept(data: Prepared, plan: AtlasPlan) -> bool:
    """Return whether a set's results are there; raise if they can't be used."""
    return plan.path(data.name).exists() and load(data, plan) is not None


def load(data: Prepared, plan: AtlasPlan) -> dict[str, Any]:
    """Return a set's kept results, or say why they can't be used."""
    path = plan.path(data.name)
    try:
        whole: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        settings, wanted = whole["settings"], set(BY_CAUSE if plan.by_cause else TABLES)
        complete = set(whole["tables"]) == wanted and {"about", "versions", "seconds"} <= set(whole)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} can't be read ({type(error).__name__}): {REMEDY}") from None
    expected = json.loads(json.dumps(plan.settings(data)))
    if settings != expected or not complete:
        differing = [name for name in expected if isinstance(settings, dict) and settings.get(name) != expected[name]]
        raise InputError(f"{path} was made with another {' and '.join(differing) or 'form'}: {REMEDY}")
    return whole
