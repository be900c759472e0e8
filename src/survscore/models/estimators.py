"""The two methods of the paper as scikit-learn estimators: Logistic-Hazard and BCE networks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError
from survscore.curves import Monotone
from survscore.models.grid import Keep, Status, hazard_labels, survival_labels
from survscore.models.losses import survival_from_hazards, survival_from_probabilities
from survscore.models.network_model import CENSORING, EVENT, NetworkModel
from survscore.models.training import Preset
from survscore.outcomes import Outcomes

Model = TypeVar("Model")

_PARAMETERS = """
    Parameters
    ----------
    n_times : int, default 50
        Number of grid times, the last of them at the last observed time.
    preset : {"default", "paper"}
        The recipe: what these parameters are where they are left at None.

        ===============  ===================  ===================
        ..               ``"default"``        ``"paper"``
        ===============  ===================  ===================
        `dropout`        0.2                  0.1
        `batch_size`     by the rows, to 256  256
        `learning_rate`  0.02                 0.01
        `schedule`       ``"constant"``       ``"warm-restarts"``
        `weight_decay`   0.02                 0
        `averaging`      0.2                  0
        ===============  ===================  ===================

    times : array_like, optional
        The grid itself, in place of `n_times` and `spacing`. It must end within the follow-up, or after it by half of
        its last interval at most.
    spacing : {"equidistant", "quantiles"}
        Of the grid: at equal distances, or at equal steps of the Kaplan-Meier curve.
    keep : {"known", "administrative"}, optional
        Whom a grid time t learns from: all whose outcome there is known, or of these only those with :math:`C^*` at t
        or later, whom the administrative score counts. <keep>
    interpolation : {"linear", "constant-hazard", "step"}
        How predicted curves are read between grid times; see `SurvivalCurves`.
    n_layers, width : int, default 4 and 32
        Of the net: blocks of linear layer, ReLU, batch norm, dropout. No layers make a (generalised) linear model.
    dropout : float, optional
        Share of units left out in training.
    batch_norm : bool, default True
        Whether to have it.
    net : callable, optional
        Makes a torch module of your own from its numbers of inputs and outputs, in place of the four above. It gets
        standardised numbers and embedded categories side by side.
    missing : {"error", "indicator"}
        What to do with missing numbers: refuse them, or put the mean there and, in columns where training has any,
        tell so in a column of its own. Missing categories go, with those not seen in training, to an entry for the
        unknown.
    batch_size : int, optional
        Rows per step; what is left over makes a last, smaller batch. By default a sixteenth of the rows, but 32 to
        256, in batches of equal sizes.
    learning_rate : float, optional
        Of Adam; with cycles, at the top of the first.
    schedule : {"constant", "warm-restarts"}, optional
        Always the same rate, or cosine annealing in cycles.
    cycle_epochs, cycle_growth, cycle_decay : default 1, 2, 0.8
        Epochs of the first cycle; what each next one is longer by, and its top rate lower by.
    weight_decay : float, optional
        Decoupled from the gradients, and multiplied by the rate.
    averaging : float, optional
        The net gets the mean of its weights over about the last so much of all steps so far: at 0.2, over the last
        fifth. After step k the mean moves by 1 / (1 + 0.2 k) of the way to the weights. At 0 it is their last values.
    epochs : int, default 511
        At most; by default so many as end the ninth cycle of warm restarts.
    patience : int, optional
        Training stops once this many cycles in a row brought no better validation loss. By default 1, or 20 for
        a constant rate, where each epoch is a cycle.
    validation_share : float, default 0.2
        Of the rows, drawn at random among events and others, unless `fit` is given validation data. At 0, all are
        trained on, for all epochs.
    device : str, default "auto"
        ``"cpu"``, ``"cuda"``, ``"cuda:1"``; ``"auto"`` takes a GPU if there is one.
    random_state : int, RandomState or None
        The same number gives the same result on the same machine.
    progress : bool, optional
        Whether to show a progress bar; by default on a terminal.
    optimizer : callable, optional
        In place of AdamW: called with the weights and ``lr=``, such as ``torch.optim.RMSprop`` or
        ``functools.partial(torch.optim.SGD, momentum=0.9)``. The rate of each step is set by `learning_rate` and
        `schedule`.
    stopping_score : ValidationScore, optional
        A score of the validation data that decides, in place of the loss, which weights are best and when to stop. It
        is recorded in `history_`.
    callbacks : list of callable, optional
        Each is called after every epoch with the history so far and the net, with the weights that would be kept; if
        one returns something true, training ends.

    Attributes
    ----------
    times_ : ndarray
        The grid.
    net_ : torch.nn.Module
        The trained net.
    causes_ : tuple of str
        The causes that predictions are of; empty where they are survival.
    history_ : TrainingHistory
        Losses by epoch: prints as a table, and gives a frame and a plot.
    features_ : Features
        How columns are encoded.
"""


def _with_parameters(keep: str) -> Callable[[type[Model]], type[Model]]:
    """Put the description of the parameters, nearly the same for both methods, into a class's docstring."""

    def described(model: type[Model]) -> type[Model]:
        parameters = _PARAMETERS.replace("<keep>", keep)
        model.__doc__ = (model.__doc__ or "").replace("\n    <parameters>\n", parameters)
        return model

    return described


@_with_parameters(
    """By default the latter where :math:`C^*` is known, but with ``preset="paper"``
        the former: then, in the interval that holds :math:`C^*`, events count and no individual is seen to survive,
        and a net that encodes :math:`C^*` learns a hazard of 1 there."""
)
class LogisticHazard(NetworkModel):
    r"""A net for the discrete hazards, fitted by maximum likelihood to right-censored times.

    Output j is the logit of the hazard on the grid interval :math:`(t_{j-1}, t_j]`:

    .. math::

        h_j(x) = \frac{1}{1 + e^{-z_j(x)}}, \qquad S(t_j \mid x) = \prod_{k \le j} [1 - h_k(x)]

    and the loss minus the log-likelihood: an event contributes :math:`\log h_j` of its interval and
    :math:`\log(1 - h_k)` of those before, a censored individual those of the intervals it was seen to survive whole
    (where :math:`C^*` is unknown, but not with ``preset="paper"``: to their middle at least).

    Under competing risks there is one output per cause and interval, and a softmax over "no event, cause 1, ..., cause
    K" in place of the logistic function:

    .. math::

        p_{jk}(x) = \frac{e^{z_{jk}(x)}}{1 + \sum_l e^{z_{jl}(x)}}, \qquad
        F_k(t_j \mid x) = \sum_{l \le j} p_{lk} \prod_{i < l} \Big[1 - \sum_{k'} p_{ik'}\Big]

    An event contributes :math:`\log p_{jk}` of its cause in its interval, and ends the follow-up for all causes.

    <parameters>

    Examples
    --------
    >>> import survscore as ss
    >>> sample = ss.simulate.ConstantHazardStudy().sample(2000, seed=1)
    >>> model = ss.models.LogisticHazard(n_times=10, epochs=3, random_state=0)
    >>> model = model.fit(sample.covariates, sample.outcomes)
    >>> model.predict_curves(sample.covariates[:3], times=[25, 50])
    SurvivalCurves(3 individuals, 2 times from 25 to 50, interpolation='linear', extrapolation='nan', float32)
    """

    _learns_causes: ClassVar[bool] = True

    def fit_censoring(self, X: Any, y: Any, *, validation: tuple[Any, Any] | None = None) -> Self:
        """Train the network for the censoring distribution G, for use in `IPCW`.

        Censorings take the part of events, and the other way round, also at ties: an individual with an event at t only
        shows that its censoring came at t or later. Events of all causes are alike here.

        Parameters
        ----------
        X, y, validation
            As for `fit`.

        Returns
        -------
        self
            Its `predict_curves` gives curves of G.

        Examples
        --------
        >>> import survscore as ss
        >>> sample = ss.simulate.ConstantHazardStudy().sample(2000, seed=1)
        >>> censoring = ss.models.LogisticHazard(n_times=10, epochs=3, random_state=0)
        >>> censoring = censoring.fit_censoring(sample.covariates, sample.outcomes)
        >>> print(ss.IPCW(censoring.predict_curves(sample.covariates), max_weight=100))
        ipcw (individual censoring curves, max_weight=100)
        """
        return self._fit(X, y, validation, CENSORING)

    @staticmethod
    def _labels(
        time: NDArray[np.float64], event: Status, grid: NDArray[np.float64], target: str, *, whole: bool
    ) -> NDArray[np.int8]:
        return hazard_labels(time, event, grid, events_first=target == EVENT, whole=whole)

    _survival = staticmethod(survival_from_hazards)


@_with_parameters(
    """By default the former, which is the method and its bias; the latter
        has none, and is refused where individuals dropped out."""
)
class BCESurvival(NetworkModel):
    r"""A net of binary classifiers, one per grid time, that drops the censored: biased, as the paper shows.

    Output j is the logit of the survival probability :math:`\pi(\tau_j)`, and the loss eq:bce_loss_full:

    .. math::

        -\sum_j \sum_i \left(1\{T_i > \tau_j\} \log \pi_i(\tau_j)
            + 1\{T_i \le \tau_j, D_i = 1\} \log[1 - \pi_i(\tau_j)]\right)

    It is minimised by :math:`\pi = S G / (S G + \int_0^t G(u-) f(u)\,du) \le S` (eq:bce_minimizer), and by
    :math:`S_i(t) 1\{C^*_i > t\}` where the covariates determine :math:`C^*`. Use it to see that, not to predict.
    The curves may rise with time, and are kept as they are.

    <parameters>

    Examples
    --------
    >>> import survscore as ss
    >>> sample = ss.simulate.ConstantHazardStudy().sample(2000, seed=1)
    >>> model = ss.models.BCESurvival(n_times=10, epochs=3, random_state=0)
    >>> model.fit(sample.covariates, sample.outcomes).predict_curves(sample.covariates).shape
    (2000, 10)
    """

    _monotone: ClassVar[Monotone] = "keep"
    _keep_by_default: ClassVar[Mapping[Preset, Keep]] = {
        "default": "known",
        "paper": "known",
    }  # it is about what that does

    def _kept_labels(self, y: Outcomes, grid: NDArray[np.float64], target: str) -> NDArray[np.int8]:
        if self.keep == "administrative" and y.n_dropped_out:
            raise InputError(
                f"keep='administrative' can't weight for the {y.n_dropped_out} who dropped out before their censoring "
                "time; HorizonClassifiers can"
            )
        labels = super()._kept_labels(y, grid, target)
        if self.keep == "administrative" and y.censoring_time is not None:
            labels[(labels == 0) & (y.censoring_time[:, None] >= grid)] = 1  # censored at t, and event-free there
        return labels

    @staticmethod
    def _labels(
        time: NDArray[np.float64], event: Status, grid: NDArray[np.float64], target: str, *, whole: bool
    ) -> NDArray[np.int8]:
        return survival_labels(time, event, grid)

    _survival = staticmethod(survival_from_probabilities)
