"""Running the studies behind figures, in parallel and resumable, and writing what came out."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from survscore._utils.jobs import Progress
from survscore._utils.parallel import cached_property
from survscore._validation import InputError
from survscore._version import __version__
from survscore.datasets.kkbox import prepared
from survscore.io.files import written_whole
from survscore.paper import runner
from survscore.paper.claims import check
from survscore.paper.figures import FIGURES, Figure, rows_of
from survscore.paper.studies import CHURN, CHURN_SIZES, COLUMNS, INTEGRATED, STUDIES, Seeds, Size, churn
from survscore.plots import save_figure
from survscore.plots.style import pyplot

if TYPE_CHECKING:
    import pandas as pd

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
    churn_size: Size = CHURN_SIZES["paper"]
    data: Path | None = None

    def size_of(self, study: str) -> Size:
        """Return how large a study's replicates are."""
        return self.churn_size if study == CHURN else self.size

    def path(self, study: str, replicate: int) -> Path:
        """Return where a replicate is kept."""
        # "synthetic", or how the identity of the data begins: replicates of other data can lie beside these
        about = f"{study}-{self.data_identity[:9]}" if study == CHURN else study
        name = f"{about}-{self.size_of(study).name}-seed-{self.seed}-{replicate}.parquet"
        return self.folder / "replicates" / name

    @cached_property
    def data_identity(self) -> str:
        """What identifies the data of the churn study; computed before they are used, and carried along."""
        if self.data is None:
            return SYNTHETIC
        prepared.check(self.data)
        return prepared.digest(self.data)

    def settings(self, study: str, replicate: int) -> dict[str, Any]:
        """Return what a kept replicate must agree with."""
        size = asdict(self.size_of(study))
        settings = {"survscore": __version__, "study": study, "size": size, "seed": self.seed, "replicate": replicate}
        if study != CHURN:
            return settings
        import torch

        return settings | {"data": self.data_identity, "device": "cuda" if torch.cuda.is_available() else "cpu"}


@dataclass(frozen=True)
class Result:
    """What was written for a figure, and what became of its claims."""

    claims: pd.DataFrame
    folder: Path


def reproduce(names: Sequence[str], run: Run, progress: Progress) -> dict[str, Result]:
    """Run the studies of these figures, as far as that was not done before, and write the figures."""
    figures = [FIGURES[name] for name in names]
    studies = list(dict.fromkeys(figure.study for figure in figures))
    needed = {study for figure in figures for claim in figure.claims for study in claim.studies} - set(studies)
    replicates = range(run.n_replicates)
    complete = [study for study in needed if sum(kept(study, k, run) for k in replicates) == run.n_replicates]
    compute(studies, run, progress)
    tables = {study: [load(study, k, run) for k in replicates] for study in (*studies, *complete)}
    return {figure.name: _write(figure, tables, run) for figure in figures}


# Replicates


def compute(studies: Sequence[str], run: Run, progress: Progress) -> None:
    """Compute the replicates that are not there yet; each is kept as soon as it is done."""
    jobs = {f"{study} {k}": (study, k, run) for study in studies for k in range(run.n_replicates)}
    runner.run(_compute_one, jobs, kept=kept, n_jobs=run.n_jobs, progress=progress)


def _compute_one(study: str, replicate: int, run: Run, *, report: Callable[[str], None] = lambda what: None) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    seeds, size = Seeds.of(run.seed, replicate), run.size_of(study)
    if study == CHURN:  # large nets, which gain from all threads
        frame = churn(size, seeds, report, run.data)
    else:
        with runner.one_thread():
            frame = STUDIES[study](size, seeds, report)
    described = {"survscore": json.dumps(run.settings(study, replicate))}
    path = run.path(study, replicate)
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as temporary:
        pq.write_table(pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(described), temporary)


def kept(study: str, replicate: int, run: Run) -> bool:
    """Return whether a replicate is there; raise if it can't be used."""
    return run.path(study, replicate).exists() and load(study, replicate, run) is not None


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


# Results


def _write(figure: Figure, tables: dict[str, list[pd.DataFrame]], run: Run) -> Result:
    folder = run.folder / figure.name
    folder.mkdir(parents=True, exist_ok=True)
    numbers = rows_of(figure.kind, tables[figure.study])
    integrated = rows_of(INTEGRATED, tables[figure.study])
    claims = check(figure.claims, [{study: of[k] for study, of in tables.items()} for k in range(run.n_replicates)])
    about = ""
    settings: dict[str, Any] = {
        "figure": figure.name,
        "study": figure.study,
        "size": asdict(run.size_of(figure.study)),
        "seed": run.seed,
        "data": None,
        "replicates": run.n_replicates,
        "versions": {"survscore": __version__, **runner.versions_of(PACKAGES)},
    }
    if figure.study == CHURN:
        if run.data is None:
            settings["data"], about = SYNTHETIC, "synthetic data"
        else:
            settings["data"] = {"file": run.data.name, "sha256": run.data_identity}
    texts = {
        "numbers.csv": numbers.to_csv(index=False),
        "integrated.csv": integrated.to_csv(index=False),
        "claims.csv": claims.to_csv(index=False),
        "settings.json": json.dumps(settings, indent=2) + "\n",
    }
    with written_whole(folder / "numbers.parquet") as temporary:
        numbers.to_parquet(temporary, index=False)
    for name, text in texts.items():
        with written_whole(folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
    for loss in figure.losses:
        drawn = figure.draw(numbers, loss, about=about)
        for kind in ("png", "svg"):
            save_figure(drawn, folder / f"{figure.name}{'-log' * (loss == 'log')}.{kind}", dpi=150)
        pyplot().close(drawn)
    return Result(claims, folder)
