import numpy as np
import pytest

import survscore as ss

CURVES = ss.SurvivalCurves([[0.9, 0.5]] * 3, [1, 4])
ADMINISTRATIVE = ss.Outcomes([2, 3, 4], [1, 0, 1], [5, 3, 6])
DROPPED_OUT = ss.Outcomes([2, 3, 4], [1, 0, 1], [5, 9, 6])
UNKNOWN = ss.Outcomes([2, 3, 4], [1, 0, 1])


def score(y, weighting=None, times=(1, 4)):
    return ss.brier_score(y, CURVES, weighting=weighting, times=times)


@pytest.mark.parametrize(
    ("y", "weighting", "message"),
    [
        (ADMINISTRATIVE, None, "weighting must be given, .* 'administrative' counts those with .* `IPCW.* is possible"),
        (UNKNOWN, None, r"Without censoring_time the choice is `IPCW\(\)`; if follow-up ends on a known date"),
        (DROPPED_OUT, None, "t and weights for the 1 of 3 who dropped out, 'projected' counts all individuals; `IPCW"),
        (UNKNOWN, "administrative", r"'administrative' weighting needs outcomes with censoring_time .* `IPCW\(\)`"),
        (
            DROPPED_OUT,
            ss.Administrative(dropout="refuse"),
            r"1 individual of 3 dropped out before, the first at position 1 \(time 3, censoring_time 9\); `dropout='k",
        ),
        (
            ADMINISTRATIVE,
            "uncensored",
            r"status up to the last time, 4: 1 individual of 3 were censored before, .* position 1 \(time 3\). "
            "All censoring times are known: 'administrative' counts",
        ),
        (UNKNOWN, ss.IPCW("known"), r"'known' censoring needs outcomes with censoring_time .*IPCW\(max_weight=1\)"),
        (DROPPED_OUT, ss.IPCW("known"), "'known' censoring needs all individuals without event to be followed"),
        (UNKNOWN, "ipwc", "weighting must be one of 'uncensored', 'administrative', 'projected', 'ipcw', not 'ipwc'"),
        (UNKNOWN, 3, "weighting must be one of"),
        (UNKNOWN, ss.IPCW(CURVES[:2]), "censoring curves has length 2, but outcomes has length 3"),
    ],
)
def test_refusals_name_the_alternative(y, weighting, message):
    with pytest.raises(ss.InputError, match=message):
        score(y, weighting)


def test_which_weightings_fit_is_one_answer():
    """The one to trust first, for scores, command line and report."""
    assert ss.weightings_that_fit(ADMINISTRATIVE).names == ("administrative", "ipcw")
    assert ss.weightings_that_fit(DROPPED_OUT).names == ("administrative", "ipcw")
    assert "weights for the 1 of 3 who dropped out" in ss.weightings_that_fit(DROPPED_OUT).sentence
    unknown = ss.weightings_that_fit(UNKNOWN)
    assert unknown.names == ("ipcw",)
    assert unknown.misleading
    assert ss.weightings_that_fit(ss.Outcomes([1, 2], [1, 1])).names == ("uncensored",)


def test_without_censoring_no_weighting_is_needed():
    assert score(ss.Outcomes([2, 3, 4], [1, 1, 1])).weighting == "uncensored"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_weight": 0.5}, "`max_weight` must be a number, at least 1"),
        ({"max_weight": np.nan}, "`max_weight` must be a number, at least 1"),
        ({"max_weight": "10"}, "`max_weight` must be a number"),
        ({"censoring": np.array([0.5, 0.6])}, "censoring must be"),
        ({"variance": "naive"}, "variance must be one of 'exact', 'martingale'"),
        ({"censoring": UNKNOWN, "variance": "martingale"}, "variance matters only where"),
        ({"normalize": "sum"}, "normalize must be one of 'weights', 'n'"),
        ({"censoring": "cox"}, "censoring must be 'kaplan-meier', 'known', Outcomes .* not 'cox'"),
        ({"censoring": None}, "censoring must be"),
    ],
)
def test_ipcw_refuses_bad_settings_at_once(arguments, message):
    with pytest.raises(ss.InputError, match=message):
        ss.IPCW(**arguments)


def test_settings_are_told():
    told = [
        str(weighting)
        for weighting in (
            ss.Administrative(),
            ss.IPCW(),
            ss.IPCW(UNKNOWN, max_weight=100),
            ss.IPCW(CURVES, normalize="n"),
            ss.IPCW("known"),
            ss.IPCW(np.exp),
            ss.IPCW(variance="martingale"),
            ss.Administrative(dropout=DROPPED_OUT, population="fixed", max_weight=3),
            ss.Administrative(dropout=CURVES, population=CURVES),
            ss.Administrative(dropout=np.exp, population=12, normalize="n"),
            ss.Administrative(variance="martingale"),
        )
    ]
    assert told == [
        "administrative",
        "ipcw (Kaplan-Meier of the scored outcomes)",
        "ipcw (Kaplan-Meier of 3 given outcomes, max_weight=100)",
        "ipcw (individual censoring curves, divided by n)",
        "ipcw (known censoring times)",
        "ipcw (a given function)",
        "ipcw (Kaplan-Meier of the scored outcomes, martingale variance)",
        "administrative (drop-out by Kaplan-Meier of 3 given outcomes, fixed population, max_weight=3)",
        "administrative (drop-out by individual curves, for all individuals)",
        "administrative (drop-out by a given function, C* >= 12, divided by n)",
        "administrative (martingale variance)",
    ]


def test_administrative_counts_those_censored_at_exactly_t():
    # T = t = C* without event: event-free for the administrative score, unknown for IPCW
    y = ss.Outcomes([3.0, 3.0, 9.0], [0, 1, 0], [3, 3, 9])
    curves = ss.SurvivalCurves([[0.7]] * 3, [3.0])
    administrative = ss.brier_score(y, curves, weighting="administrative", times=[3])
    np.testing.assert_allclose(administrative.scores, (2 * 0.3**2 + 0.7**2) / 3)
    without_censored = ss.brier_score(y, curves, weighting=ss.IPCW("known"), times=[3])
    np.testing.assert_allclose(without_censored.scores, (0.3**2 + 0.7**2) / 2)
