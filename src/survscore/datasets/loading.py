"""Real data with a known end, out of packages that are installed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from survscore._validation import InputError, check_choice
from survscore.datasets import python_sets, r_sets
from survscore.datasets.dataset import Dataset

if TYPE_CHECKING:
    import pandas as pd

RECIPES = {
    recipe.name: recipe
    for recipe in (
        r_sets.AIDS2,
        python_sets.CDNOW,
        python_sets.DD,
        r_sets.DMLATE,
        r_sets.JASA,
        python_sets.SENATORS,
        r_sets.SIBR,
        r_sets.SIRE,
        r_sets.THORO,
    )
}
#: The same tables with the causes of events, where they are recorded.
BY_CAUSE = {
    recipe.name: recipe
    for recipe in (
        r_sets.DMLATE_BY_CAUSE,
        python_sets.SENATORS_BY_CAUSE,
        r_sets.SIBR_BY_CAUSE,
        r_sets.SIRE_BY_CAUSE,
        r_sets.THORO_BY_CAUSE,
    )
}


def names(*, causes: bool = False) -> list[str]:
    """Return the names of all sets that `load` knows, whether their packages are installed or not.

    Parameters
    ----------
    causes : bool, default False
        Only those whose events have causes.

    Returns
    -------
    list of str

    Examples
    --------
    >>> import survscore as ss
    >>> ss.datasets.names()
    ['aids2', 'cdnow', 'dd', 'dmlate', 'jasa', 'senators', 'sibr', 'sire', 'thoro']
    >>> ss.datasets.names(causes=True)
    ['dmlate', 'senators', 'sibr', 'sire', 'thoro']
    """
    return list(BY_CAUSE if causes else RECIPES)


def load(name: str, *, causes: bool = False, path: str | os.PathLike[str] | None = None) -> Dataset:
    r"""Load real data with a known data cut-off, and so with :math:`C^*` of each individual.

    Two small tables come with this library; others are read from packages that are installed, of Python or of R, and
    neither these nor R are run.

    Parameters
    ----------
    name : str
        One of `names`.
    causes : bool, default False
        Whether `y` distinguishes the causes of events, as competing risks. Without, an event is one of any cause. With
        it, ``"dmlate"`` has two events, the start of insulin and death without it, and leaves out those who had insulin
        from the start.
    path : path, optional
        Where the data are, if not where packages are usually installed. For sets out of R packages an ``.rda``,
        ``.RData`` or ``.rdb`` file, or a folder: an R library, a package, or its data. For others the table's own file.

    Returns
    -------
    Dataset

    Raises
    ------
    InputError
        If the package is not there, with how to get it; or if the data are not those that this was written for, since
        what is said of them may not hold then.

    Examples
    --------
    >>> import survscore as ss
    >>> data = ss.datasets.load("dd")
    >>> data.y
    Outcomes(1737 individuals, 1545 events (88.9 %), time 0 to 47, censoring_time known (0 to 61), no drop-outs)
    >>> data.closing
    'documented: the data cover 1946 to 2008'

    With the causes of events:

    >>> ss.datasets.load("senators", causes=True).y.n_by_cause
    {'death': 494, 'resignation': 201, 'retirement': 136}
    """
    check_choice("name", name, tuple(RECIPES))
    if causes and name not in BY_CAUSE:
        raise InputError(f"causes: {name!r} has events of one kind; those with causes are {', '.join(BY_CAUSE)}")
    recipe = BY_CAUSE[name] if causes else RECIPES[name]
    found = recipe.origin.find() if path is None else Path(path)
    if found is None:
        raise InputError(f"name: {name!r} is in the package {recipe.origin.package}: {recipe.origin.how_to_get}")
    return recipe.dataset(recipe.origin.read(found), str(found))


def available() -> list[str]:
    """Return the names of the sets whose packages are installed here; `describe` says how to get the others.

    Returns
    -------
    list of str

    Examples
    --------
    >>> import survscore as ss
    >>> set(ss.datasets.available()) <= set(ss.datasets.names())
    True
    """
    return [name for name, recipe in RECIPES.items() if recipe.origin.find() is not None]


def describe() -> pd.DataFrame:
    """Return what is known of all sets, whether their packages are installed or not.

    Returns
    -------
    pandas.DataFrame
        Of each set, by its name: how many ``individuals``, ``events`` and ``lost``, the ``unit``, and in words what the
        ``event`` and the ``start`` are, the ``causes`` with their numbers of events where these are recorded, how the
        ``closing`` date is known, who is lost (``who_is_lost``), ``licence``, ``source``, ``notes``, the ``package``
        and ``how_to_get`` it.

    Examples
    --------
    >>> import survscore as ss
    >>> ss.datasets.describe().loc["thoro", ["individuals", "events", "lost", "closing"]]
    individuals                                                 2470
    events                                                      1966
    lost                                                          40
    closing        documented: the study closed on 1992-02-20
    Name: thoro, dtype: object
    """
    import pandas as pd

    rows = [
        {
            "name": name, "individuals": recipe.counts.individuals, "events": recipe.counts.events,
            "lost": recipe.counts.lost, "unit": recipe.unit, "event": recipe.event,
            "causes": BY_CAUSE[name].counted_causes if name in BY_CAUSE else "", "start": recipe.start,
            "closing": recipe.closing, "who_is_lost": recipe.lost, "licence": recipe.licence, "source": recipe.source,
            "notes": recipe.notes, "package": recipe.origin.package, "how_to_get": recipe.origin.how_to_get,
        }
        for name, recipe in RECIPES.items()
    ]  # fmt: skip
    return pd.DataFrame(rows).set_index("name")
