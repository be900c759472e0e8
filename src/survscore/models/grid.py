"""Time grids, and which binary outcomes an individual's follow-up shows on them.

Both methods of the paper are binary classifiers with one output per grid time. They differ in the question
asked at each of them, and so in the labels: 1 for yes, -1 for no, 0 where the follow-up doesn't tell. Under competing
risks the yes of Logistic-Hazard is the number of the cause.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError, as_times, check_choice, check_rule, check_whole
from survscore.censoring.product_limit import ProductLimit

SPACINGS = ("equidistant", "quantiles")
Keep = Literal["known", "administrative"]
KEEPS = ("known", "administrative")
#: Whether each individual had the event, or the number of its cause, 0 without event.
Status = NDArray[np.bool_] | NDArray[np.int8]
#: How much of the last interval may lie after the follow-up, or where fewer than so many are followed.
MOST_CUT = 0.5
FEWEST_FOLLOWED = 20


def time_grid(
    time: NDArray[np.float64],
    event: NDArray[np.bool_],
    *,
    times: Any,
    n_times: int,
    spacing: str,
    events_first: bool = True,
) -> NDArray[np.float64]:
    """Return the times t_1 < ... < t_m at which a model learns; t_0 = 0 is understood.

    `times` is the grid itself, of which a leading 0 is left out, since S(0) = 1 need not be learnt. Without it there
    are `n_times`, the last at the last observed time: at equal distances, or so that the Kaplan-Meier curve falls by
    about the same between them; where it falls in few steps, there are fewer.
    """
    check_choice("spacing", spacing, SPACINGS)
    end = float(time.max())
    if end <= 0:
        raise InputError("y: all times are 0, so there is no follow-up to learn from")
    if times is None:
        check_whole("n_times", n_times, 1)
        equidistant = np.linspace(0.0, end, int(n_times) + 1)[1:]
        if spacing == "equidistant":
            return equidistant
        curve = ProductLimit.of(time, event, others_first=not events_first)
        grid = curve.times[equal_steps(curve.survival, int(n_times))]
        grid[-1] = end
        return grid[grid > 0]
    grid = as_times(times)
    grid = grid[1:] if grid[0] == 0 else grid
    if grid.size == 0:
        raise InputError("times must hold a time after 0")
    # no individual can be seen to survive an interval that ends later, and its hazard would be learnt as one; a round
    # number just after the last follow-up will do
    lengths = np.diff(grid, prepend=0.0)
    rule = f"within the follow-up, which ends at {end:g}: survival after it can't be learnt"
    check_rule("times", rule, grid - MOST_CUT * lengths > end, grid)
    return grid


def learnt_grid(
    grid: NDArray[np.float64], followed: NDArray[np.float64], *, administrative: bool
) -> NDArray[np.float64]:
    """Return the grid as labels are made on it: its last time is cut, by half of its interval at most.

    Only those who are followed to the end of an interval can be seen to survive it. The last of them ends where hardly
    anybody is followed, and one individual would decide about its hazard. With `administrative` labels, which are the
    status at each time of those with C* at that time or later, it is cut to where some are; otherwise to the end of
    the follow-up, where a round number is just after it.
    """
    last = grid[-1] - MOST_CUT * (grid[-1] - (grid[-2] if grid.size > 1 else 0.0))
    rank = min(FEWEST_FOLLOWED, followed.size) if administrative else 1
    enough = float(np.partition(followed, -rank)[-rank])
    return np.append(grid[:-1], min(max(enough, last), grid[-1]))


def equal_steps(survival: NDArray[np.float64], n: int) -> NDArray[np.intp]:
    """Return the positions of at most n jumps of a curve between which it falls by about the same."""
    levels = np.linspace(1.0, survival[-1], n + 1)[1:]
    reached = np.searchsorted(-survival, -levels - 1e-12)  # the first jump at or below each level
    return np.unique(np.minimum(reached, survival.size - 1))


def hazard_labels(
    time: NDArray[np.float64],
    event: Status,
    grid: NDArray[np.float64],
    *,
    events_first: bool = True,
    whole: bool = True,
) -> NDArray[np.int8]:
    r"""Return whether the event came in each interval, for those at risk there: Logistic-Hazard's labels.

    Interval j is :math:`(t_{j-1}, t_j]`, the first one with 0. An event moves up to the right end of its interval:
    1 there (or the number of its cause), -1 before. Censoring moves down to the left end: an individual only counts as
    having survived an interval that it was observed to survive `whole`; or else to the nearer end. `event` may be
    numbers of causes, 0 without event.

    `events_first` says whether an event at the time of the censoring would have been seen, so that a censoring at
    :math:`t_j` shows interval j survived. It would, but for the censoring distribution roles are turned round: an event
    at :math:`t_j` only shows that censoring came at :math:`t_j` or later.

    Where only whole intervals count as survived, events of those who are then censored in the same interval still
    count, so the hazard is too high: by little in short intervals, but near one in the last, which all who have no
    event are censored in. With those censored in its second half as survivors it is right, to first order in the
    lengths.
    """
    columns = np.arange(grid.size)
    containing = np.searchsorted(grid, time, side="left")
    seen = grid if whole else grid - np.diff(grid, prepend=0.0) / 2.0
    survived = np.where(event, containing, np.searchsorted(seen, time, side="right" if events_first else "left"))
    labels = np.where(columns < survived[:, None], np.int8(-1), np.int8(0))
    hit = np.flatnonzero((event != 0) & (containing < grid.size))  # an event after the grid is one more survivor of it
    labels[hit, containing[hit]] = event[hit]
    return labels


def survival_labels(time: NDArray[np.float64], event: Status, grid: NDArray[np.float64]) -> NDArray[np.int8]:
    r"""Return whether an individual is event-free at each time: the BCE method's labels (eq:bce_loss_t).

    1 where :math:`T_i > \tau_j`; -1 where :math:`T_i \le \tau_j` and :math:`D_i = 1`; 0 where the individual was
    censored at or before :math:`\tau_j`, and is dropped.
    """
    free = time[:, None] > grid
    return np.where(free, np.int8(1), np.where(event[:, None], np.int8(-1), np.int8(0)))


def counted_labels(
    labels: NDArray[np.int8], censoring_time: NDArray[np.float64], grid: NDArray[np.float64]
) -> NDArray[np.int8]:
    r"""Return the labels of those whom the administrative score counts: at :math:`t_j`, all with :math:`C^*_i \ge t_j`.

    Whether an individual is kept at a time then says nothing about the outcome. Otherwise, in the interval that holds
    :math:`C^*_i`, Logistic-Hazard would see events up to :math:`C^*_i` and no survivors; and BCE would see events
    of individuals whose survival it would not.
    """
    return np.where(censoring_time[:, None] >= grid, labels, np.int8(0))
