"""What was done, in the words of a paper's methods section, with references: made from what was really done."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from survscore._validation import plural, several
from survscore._version import __version__
from survscore.engine.inputs import NULL_INCIDENCE, Null
from survscore.metrics import controls_note, survival_label
from survscore.outcomes import Outcomes
from survscore.reports.comparing import WHOLE, plain, share
from survscore.reports.section import Section
from survscore.results.rounding import short
from survscore.weighting import IPCW, Administrative, Projected, Uncensored, Weighting

if TYPE_CHECKING:
    from survscore.reports.study import Study

REFERENCES = {
    "administrative": "Kvamme H, Borgan Ø (2023). The Brier Score under Administrative Censoring: Problems and "
    "Solutions. Journal of Machine Learning Research 24(2), 1-26.",
    "ipcw": "Graf E, Schmoor C, Sauerbrei W, Schumacher M (1999). Assessment and comparison of prognostic "
    "classification schemes for survival data. Statistics in Medicine 18(17-18), 2529-2545.",
    "auc": "Blanche P, Dartigues J-F, Jacqmin-Gadda H (2013). Estimating and comparing time-dependent areas under "
    "receiver operating characteristic curves for censored event times with competing risks. Statistics in Medicine "
    "32(30), 5381-5397.",
    "kaplan-meier": "Kaplan EL, Meier P (1958). Nonparametric estimation from incomplete observations. Journal of the "
    "American Statistical Association 53(282), 457-481.",
    "aalen-johansen": "Aalen OO, Johansen S (1978). An empirical transition matrix for non-homogeneous Markov chains "
    "based on censored observations. Scandinavian Journal of Statistics 5(3), 141-150.",
    "ici": "Austin PC, Harrell FE, van Klaveren D (2020). Graphical calibration curves and the integrated calibration "
    "index (ICI) for survival models. Statistics in Medicine 39(21), 2714-2742.",
    "holm": "Holm S (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of "
    "Statistics 6(2), 65-70.",
    "benjamini-hochberg": "Benjamini Y, Hochberg Y (1995). Controlling the false discovery rate: a practical and "
    "powerful approach to multiple testing. Journal of the Royal Statistical Society B 57(1), 289-300.",
}

FORMS = {"linear": "linearly", "constant-hazard": "with a constant hazard", "step": "as steps"}


class _Cited:
    """References in the order in which they are cited."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    def __call__(self, *keys: str) -> str:
        for key in keys:
            if key not in self.keys:
                self.keys.append(key)
        return f" [{', '.join(str(self.keys.index(key) + 1) for key in keys)}]"


def methods(summary: dict[str, Any], weightings: Sequence[Weighting], null: Null, n_times: int) -> dict[str, list[str]]:
    """Return the paragraphs of a methods section and its references, by the summary of the report so far."""
    cite = _Cited()
    paragraphs = [
        _data(summary),
        f"{_scores(summary, weightings, null, n_times, cite)} {_interpolation(summary)}".strip(),
        _errors(summary, weightings, cite),
        " ".join(part for part in (_calibration(summary, cite), _diagnosis(summary), _backtest(summary)) if part),
        f"All was computed with survscore {summary['survscore']}.",
    ]
    return {
        "paragraphs": [paragraph for paragraph in paragraphs if paragraph],
        "references": [REFERENCES[key] for key in cite.keys],
    }


class MethodsSection(Section):
    """How it was made: settings and versions, and a methods section for a paper."""

    @classmethod
    def data(cls, study: Study, before: dict[str, Any]) -> dict[str, Any]:
        options, comparison = study.options, study.comparison
        segments = {} if study.segments is None else {"by": study.segments.by, "correction": options.correction}
        epsilons = {metric.name: getattr(metric, "epsilon", 0.0) for metric in study.metrics}
        settings = {
            **(options.settings or {}),
            "survscore": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "metrics": {name: {"epsilon": epsilon} if epsilon else {} for name, epsilon in epsilons.items()},
            "weightings": comparison.weightings,
            "times": _extent(comparison.times),
            "time range": "all times" if options.time_range == WHOLE else [plain(end) for end in options.time_range],
            "reference": comparison.reference,
            "null": "Kaplan-Meier of other outcomes" if isinstance(options.null, Outcomes) else options.null,
            "horizons": study.horizons,
            "level": float(comparison.level),
            "groups": options.groups is not None,
            **segments,
            "curves": {
                name: f"{_extent(one.times)}, between them {one.interpolation}, beyond them {one.extrapolation}"
                for name, one in study.models.items()
            },
        }
        interpolation = {name: str(curves.interpolation) for name, curves in study.models.items()}
        summary = {**before, "interpolation": interpolation}
        written = methods(summary, study.weightings, options.null, comparison.times.size)
        return {"settings": settings, "interpolation": interpolation, "methods": written}


def _extent(times: NDArray[np.float64]) -> str:
    return f"{plural(times.size, 'time')} from {short(float(times[0]))} to {short(float(times[-1]))}"


def _in_unit(summary: dict[str, Any]) -> str:
    return f" {summary['unit']}" if summary["unit"] else ""


def _data(summary: dict[str, Any]) -> str:
    data, models = summary["data"], [name for name in summary["models"] if name != summary["null_model"]]
    had = f"of whom {_with_share(data['events'], data)} had the event"
    if data["causes"]["cause"]:
        by_cause = zip(data["causes"]["cause"], data["causes"]["events"], strict=True)
        counts = [f"{_with_share(count, data)} had an event of cause {name}" for name, count in by_cause]
        had = f"of whom {several(counts)}"
    sentences = [
        f"Predictions of {plural(len(models), 'model')} ({several(models)}) were evaluated on {data['n']:,} "
        f"individuals, {had}."
    ]
    if "clock" in data:
        sentences.append(
            "Individuals came under observation after the start of the clock (delayed entry). Time is counted from "
            "entry, and predictions are those for individuals who are event-free then."
        )
    sample = data["sample_weights"]
    if sample is not None and sample["kind"] == "frequency":
        sentences.append(f"They were {sample['rows']:,} rows with frequency weights.")
    elif sample is not None:
        sentences.append(
            f"Individuals had {sample['kind']} weights, with an effective sample size of {sample['n_effective']:,.0f}; "
            "scores and everything estimated for them are weighted."
        )
    if summary["cause"] is not None:
        sentences.append(
            f"Scores are of {summary['cause']}, with the other events as competing risks: these do not censor, since "
            f"from then on it is known that {summary['cause']} did not happen."
        )
    if data["events"] == data["n"]:
        sentences.append("No individual was censored.")
    elif not data["censoring_times_known"]:
        sentences.append("Censoring times were known only of those who were censored.")
    else:
        sentences.append(
            "Censoring was administrative: the censoring time C* of each individual, from entry to the data cut-off, "
            "was known, also of those who had the event."
        )
        lost = data["dropped_out"]
        sentences.append(f"Before it, {share(lost, data['n'])} dropped out." if lost else "None dropped out before it.")
    return " ".join(sentences)


def _with_share(count: int, data: dict[str, Any]) -> str:
    return f"{count:,} ({100 * count / data['n']:.1f} %)"


def _scores(summary: dict[str, Any], weightings: Sequence[Weighting], null: Null, n_times: int, cite: _Cited) -> str:
    metrics = several([f"{one['label']} ({one['direction']} is better)" for one in summary["metrics"].values()])
    auc = cite("auc") if "auc" in summary["metrics"] else ""
    sentences = [f"The measures were {metrics}{auc}, computed at {plural(n_times, 'time')}."]
    sentences += [f"{note}." for note in controls_note(summary["metrics"], summary["cause"] or "")]
    ranges = {tuple(ends) for ends in summary["time_ranges"].values()}
    if len(ranges) == 1:
        (low, high) = ranges.pop()
        sentences.append(
            f"Means over time are from {short(low)} to {short(high)}{_in_unit(summary)}, by the trapezoidal rule."
        )
    headline = weightings[summary["weightings"].index(summary["headline"])]
    sentences.append(f"Conclusions are based on {_weighting(headline, summary, cite)}.")
    others = [weighting for weighting in weightings if weighting is not headline]
    if others:
        sentences.append(
            f"For comparison, we report {'; and '.join(_weighting(one, summary, cite) for one in others)}."
        )
    sentences += _assumptions(weightings)
    if summary["null_model"]:
        source = {True: "of the same outcomes", "counted": "of those counted"}.get(
            null if not isinstance(null, Outcomes) else "", "of other outcomes"
        )
        estimate = "aalen-johansen" if summary["null_model"] == NULL_INCIDENCE else "kaplan-meier"
        what = "event-free proportion" if null == "counted" else f"{estimate.title()} estimate"
        cited = "" if null == "counted" else cite(estimate)
        sentences.append(
            f"As null model, the {what} {source}{cited} predicts the same for all individuals; skill is 1 - score / "
            "score of the null model."
        )
    sentences.append(f"Differences are to {summary['reference']}." if len(summary["models"]) > 1 else "")
    return " ".join(part for part in sentences if part)


def _weighting(weighting: Weighting, summary: dict[str, Any], cite: _Cited) -> str:
    """Return what a score under a weighting is, and what the weighting is called."""
    name = f'(weighting "{weighting.named(somebody_left=bool(summary["data"]["dropped_out"]))}")'
    match weighting:
        case Uncensored():
            return f"the score of all individuals, whose status was known at all these times {name}"
        case Projected():
            cited = cite("kaplan-meier" if summary["cause"] is None else "aalen-johansen")
            return (
                f"the projected score {name}, to which all individuals contribute: those whose status at t is hidden, "
                f"since C* < t or by drop-out, with their probability of being event-free{cited}"
            )
        case Administrative():
            description = (
                f"the administrative score{cite('administrative')} {name}, which at time t counts those with C* of at "
                "least t, whose status is then known"
            )
            if summary["data"]["dropped_out"]:
                cited = cite("kaplan-meier") if weighting.estimated else ""
                given = "the covariates" if weighting.dropout_strata != "own-ranks" else "predicted risk"
                strata = ", estimated by strata of predicted risk" if weighting.dropout_strata == "own-ranks" else ""
                description += (
                    f", with weights by the inverse of the probability of not having dropped out{strata}{cited}, "
                )
                description += f"which assumes that drop-out is independent of the time of the event given {given}"
            return description
        case IPCW():
            cited = cite("ipcw", "kaplan-meier") if weighting.estimated else cite("ipcw")
            return f"the score with inverse probability of censoring weights{cited} {name}"
        case _:
            return f"a score {name}"


def _assumptions(weightings: Sequence[Weighting]) -> list[str]:
    """Return what has to hold for scores to be those of all individuals."""
    sentences = []
    if any(isinstance(one, Administrative | IPCW) for one in weightings):
        sentences.append(
            "For all individuals, and not only those who are counted, such scores hold if C* is independent of the "
            "time of the event given the covariates."
        )
    sentences += [
        f"Individuals with hidden status are assumed to have, from the end of their follow-up on, {one.hazards}."
        for one in weightings
        if isinstance(one, Projected)
    ]
    return sentences


def _interpolation(summary: dict[str, Any]) -> str:
    """Return how predictions were read between their times."""
    by_form: dict[str, list[str]] = {}
    for model, form in summary["interpolation"].items():
        by_form.setdefault(form, []).append(model)
    forms = [f"{FORMS.get(form, form)} ({several(models)})" for form, models in by_form.items()]
    if len(forms) == 1:
        forms = [forms[0].partition(" (")[0]]
    return f"Between predicted times, curves were read {several(forms)}." if forms else ""


def _errors(summary: dict[str, Any], weightings: Sequence[Weighting], cite: _Cited) -> str:
    estimated = any(getattr(one, "estimated", False) for one in weightings)
    sentences = [
        f"Intervals are {100 * summary['level']:g} % confidence intervals from influence functions"
        + (", which include the estimation of weights" if estimated else "")
        + "; differences are paired, on the same individuals."
    ]
    if summary["data"]["groups"]:
        sentences.append(f"They allow for dependence within {summary['data']['groups']:,} groups.")
    sentences.append("P-values are two-sided and not adjusted for the number of comparisons.")
    if summary["segments"] is not None:
        by, correction = several(summary["segments"]["by"]), summary["segments"]["correction"]
        authors = {"holm": "Holm's", "benjamini-hochberg": "Benjamini and Hochberg's"}
        adjusted = "not adjusted" if correction == "none" else f"adjusted by {authors[correction]} method"
        cited = cite(correction) if correction in REFERENCES else ""
        sentences.append(
            f"Segments by {by} were scored each by itself, with p-values {adjusted} for their number{cited}."
        )
    if any(one["bounded"] for one in summary["metrics"].values()):
        sentences.append(
            "Bounds say between which values a score or difference of these data lies, whatever happened to those who "
            "dropped out."
        )
    return " ".join(sentences)


def _calibration(summary: dict[str, Any], cite: _Cited) -> str:
    horizons = list(dict.fromkeys(summary["calibration"]["numbers"].get("horizon", [])))
    if not horizons:
        return ""
    return (
        f"At {several([short(one) for one in horizons])}{_in_unit(summary)}, calibration was judged under the "
        f'weighting "{summary["calibration"]["weighting"]}" by the ratio of observed to expected events, the '
        "calibration slope, "
        f"smooth curves with their integrated calibration index{cite('ici')}, and mean squared miscalibration, "
        "corrected for chance."
        + (f" There we report AUC{cite('auc')} as well." if "auc" in summary["horizons"].get("metric", []) else "")
    )


def _diagnosis(summary: dict[str, Any]) -> str:
    around = summary["around_censoring"]
    if around["missing"]:
        return ""
    return (
        "Whether predictions encode C* was examined by how much of the predicted "
        f"{survival_label(summary['cause'] or '')} is lost over {short(around['width'])}{_in_unit(summary)} "
        "right after each individual's C*, against other individuals of "
        "the same age and against earlier dates, and by how IPCW rates them against the administrative score."
    )


def _backtest(summary: dict[str, Any]) -> str:
    backtest = summary["backtest"]
    if backtest is None:
        return ""
    return (
        f"In a backtest, scores were computed as of {several(backtest['days'])}, and judged by the administrative "
        "score of the same individuals by the later follow-up; its intervals are from resampled individuals "
        f"({plural(backtest['n_draws'], 'draw')})."
    )
