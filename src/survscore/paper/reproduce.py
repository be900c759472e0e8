"""Running the studies behind figures, in parallel and resumable, and writing what came out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from survscore._utils.jobs import Progress
from survscore._utils.parallel import cached_property
from survscore._validation import InputError
from survscore._version import __version__
from survscore.datasets.kkbox import prepared
from survscore.io.files import written_whole
from survscore.paper import churn, runner
from survscore.paper.claims import check
from survscore.paper.figures import FIGURES, Figure, rows_of
from survscore.paper.studies import COLUMNS, INTEGRATED, STUDIES, Seeds, Size
from survscore.plots import save_figure
from survscore.plots.style import pyplot

if TYPE_CHECKING:
    import pandas as pd

#: Called with how many replicates are done, of how many, and what is being done.
SYNTHETIC = "synthetic"
PACKAGES = ("numpy", "numba", "pandas", "torch", "scikit-learn", "matplotlib")


@dataclass(frozen=True)
class Run:
    """What decides the numbers: the size, the seed, how many replicates; and where they go."""

    size: Size
    seed: int
    n_replicates: int
    folder: Path
    n_jobs: int = 1
    #: Of the churn study, and its prepared data; without them, synthetic ones.
    churn_size: Size = churn.SIZES["paper"]
    data: Path | None = None

    def size_of(self, study: str) -> Size:
        """Return how large a study's replicates are."""
        return self.churn_size if study == churn.STUDY else self.size

    def path(self, study: str, replicate: int) -> Path:
        """Return where a replicate is kept."""
        # "synthetic", or how the identity of the data begins: replicates of other data can lie beside these
        about = f"{study}-{self.data_identity[:9]}" if study == churn.STUDY else study
        name = f"{about}-{self.size_of(study).name}-seed-{self.seed}-{replicate}.parquet"
        return self.folder / "replicates" / name

    @cached_property
    def data_identity(self) -> str:
        """What identifies the data of the churn study; found out before they are used, and carried along."""
        if self.data is None:
            return SYNTHETIC
        prepared.check(self.data)
        return prepared.digest(self.data)

    def settings(self, study: str, replicate: int) -> dict[str, Any]:
        """Return what a kept replicate must agree with."""
        settings = {
            "survscore": __version__, "study": study, "size": asdict(self.size_of(study)), "seed": self.seed,
            "replicate": replicate,
        }  # fmt: skip
        if study != churn.STUDY:
            return settings
        import torch

        return settings | {"data": self.data_identity, "device": "cuda" if torch.cuda.is_available() else "cpu"}


def reproduce(names: Sequence[str], run: Run, progress: Progress) -> dict[str, Result]:
    """Run the studies of some figures, as far as that was not done before, and write these figures.

    Parameters
    ----------
    names : sequence of str
        Of figures.
    run : Run
        How.
    progress : callable
        Called with the progress.

    Returns
    -------
    dict of str to Result
    """
    figures = [FIGURES[name] for name in names]
    studies = list(dict.fromkeys(figure.study for figure in figures))
    needed = {study for figure in figures for claim in figure.claims for study in claim.studies} - set(studies)
    for study in (*studies, *needed):  # an unreadable leftover is better known now than after hours
        for k in range(run.n_replicates):
            if run.path(study, k).exists():
                load(study, k, run)
    compute(studies, run, progress)
    tables = {study: load_all(study, run) for study in (*studies, *needed)}
    return {figure.name: _write(figure, tables, run) for figure in figures}


@dataclass(frozen=True)
class Result:
    """What was written for a figure, and what became of its claims."""

    claims: pd.DataFrame
    folder: Path


# Replicates


def compute(studies: Sequence[str], run: Run, progress: Progress) -> None:
    """Compute the replicates that are not there yet; each is kept as soon as it is done."""
    wanted = [(study, k) for study in studies for k in range(run.n_replicates)]
    missing = [job for job in wanted if not run.path(*job).exists()]
    jobs = {f"{study} {k}": (study, k, run) for study, k in missing}
    runner.run(_compute_one, jobs, n_done=len(wanted) - len(missing), n_jobs=run.n_jobs, progress=progress)


def _compute_one(study: str, replicate: int, run: Run, *, report: Callable[[str], None] = lambda what: None) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    seeds, size = Seeds.of(run.seed, replicate), run.size_of(study)
    if study == churn.STUDY:  # large nets, which gain from all threads
        frame = churn.run(size, seeds, report, run.data)
    else:
        with runner.one_thread():
            frame = STUDIES[study](size, seeds, report)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    described = json.dumps(run.settings(study, replicate))
    path = run.path(study, replicate)
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as temporary:
        pq.write_table(table.replace_schema_metadata({"survscore": described}), temporary)


def load(study: str, replicate: int, run: Run) -> pd.DataFrame:
    """Return a kept replicate, or say why it can't be used."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = run.path(study, replicate)
    remedy = "remove it to have it computed anew, or choose another --out"
    try:
        table = pq.read_table(path, partitioning=None)
        described = json.loads((table.schema.metadata or {})[b"survscore"])
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise InputError(f"{path} can't be read ({str(error).splitlines()[0]}): {remedy}") from None
    if described != run.settings(study, replicate) or table.column_names != COLUMNS:
        raise InputError(f"{path} was made with other settings or another version: {remedy}")
    frame: pd.DataFrame = table.to_pandas()
    return frame


def load_all(study: str, run: Run) -> list[pd.DataFrame]:
    """Return all kept replicates of a study that this run is about, in order; none, if one is missing."""
    if not all(run.path(study, k).exists() for k in range(run.n_replicates)):
        return []
    return [load(study, k, run) for k in range(run.n_replicates)]


# Results


def _write(figure: Figure, tables: dict[str, list[pd.DataFrame]], run: Run) -> Result:
    folder = run.folder / figure.name
    folder.mkdir(parents=True, exist_ok=True)
    numbers = figure.numbers(tables[figure.study])
    integrated = rows_of(INTEGRATED, tables[figure.study])
    replicates = [{study: some[k] for study, some in tables.items() if some} for k in range(run.n_replicates)]
    claims = check(figure.claims, replicates)
    settings = {
        "figure": figure.name, "study": figure.study, "size": asdict(run.size_of(figure.study)), "seed": run.seed,
        "data": _described_data(run) if figure.study == churn.STUDY else None,
        "replicates": run.n_replicates, "versions": {"survscore": __version__, **runner.versions_of(PACKAGES)},
    }  # fmt: skip
    writers: dict[str, Callable[[Path], Any]] = {
        "numbers.parquet": lambda path: numbers.to_parquet(path, index=False),
        "numbers.csv": lambda path: numbers.to_csv(path, index=False),
        "integrated.csv": lambda path: integrated.to_csv(path, index=False),
        "claims.csv": lambda path: claims.to_csv(path, index=False),
        "settings.json": lambda path: path.write_text(json.dumps(settings, indent=2) + "\n"),
    }
    for name, write in writers.items():
        with written_whole(folder / name) as temporary:
            write(temporary)
    for loss in figure.losses:
        drawn = figure.draw(numbers, loss, about="synthetic data" if settings["data"] == SYNTHETIC else "")
        for path in _picture_paths(folder, figure.name, loss):
            save_figure(drawn, path, dpi=150)
        pyplot().close(drawn)
    return Result(claims, folder)


def _described_data(run: Run) -> Any:
    return SYNTHETIC if run.data is None else {"file": run.data.name, "sha256": run.data_identity}


def _picture_paths(folder: Path, name: str, loss: str) -> Iterator[Path]:
    suffix = "-log" if loss == "log" else ""
    for kind in ("png", "svg"):
        yield folder / f"{name}{suffix}.{kind}"
