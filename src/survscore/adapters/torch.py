"""Torch modules that have been trained elsewhere."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Never, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._utils.frames import as_frame, collected
from survscore._validation import InputError, as_times, check_choice, check_whole
from survscore.adapters.survival_model import SurvivalModel, check_within
from survscore.curves import InterpolationKind, Monotone, SurvivalCurves

Output = Literal["survival", "survival_logits", "hazards", "hazard_logits"]
OUTPUTS = get_args(Output)


@dataclass(eq=False, repr=False)
class TorchModule(SurvivalModel):
    r"""A trained torch module with one output per time, as an estimator that only predicts.

    It can be scored (`make_scorer`) and compared, not fitted: in a cross-validation a module that was trained before
    would be tested on what it has seen. To train a module of your own, give it to ``models.LogisticHazard(net=...)``.

    Parameters
    ----------
    module : torch.nn.Module
        Takes a float32 tensor of shape (n, covariates) and returns one of shape (n, len(times)).
    times : array_like
        What the outputs belong to.
    output : {"survival", "survival_logits", "hazards", "hazard_logits"}
        What they are: survival :math:`S(t_j)`; hazards :math:`h_j = P(T \le t_j \mid T > t_{j-1})`, whose curve is
        :math:`S(t_j) = \prod_{k \le j} (1 - h_k)`; or the logits of either.
    interpolation, monotone
        As for `SurvivalCurves`.
    batch_size : int, default 65536
        Rows at once.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> import survscore as ss
    >>> net = torch.nn.Linear(1, 3)
    >>> with torch.no_grad():
    ...     _ = net.weight.fill_(1.0), net.bias.fill_(0.0)
    >>> model = ss.adapters.TorchModule(net, times=[1, 2, 3], output="hazard_logits")
    >>> model.predict_curves(np.array([[0.0]])).probabilities
    array([[0.5  , 0.25 , 0.125]])
    """

    module: Any
    times: ArrayLike
    _: KW_ONLY
    output: Output = "survival"
    interpolation: InterpolationKind = "linear"
    monotone: Monotone = "check"
    batch_size: int = 65536

    def fit(self, X: Any, y: Any) -> Never:
        """Refuse: a module is taken as it was trained."""
        raise InputError(
            "a TorchModule is taken as it was trained, and can't be fitted; models.LogisticHazard(net=...) trains one"
        )

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict_curves(self, X: Any, times: ArrayLike | None = None) -> SurvivalCurves:
        """Return predicted survival.

        Parameters
        ----------
        X : array_like, data frame of numbers, or tensor
            Covariates.
        times : array_like, optional
            Where to read the curves; by default at the module's own times.

        Returns
        -------
        SurvivalCurves
        """
        check_choice("output", self.output, OUTPUTS)
        grid = as_times(self.times)
        curves = SurvivalCurves(self._survival(X), grid, interpolation=self.interpolation, monotone=self.monotone)
        if times is None:
            return curves
        asked = as_times(times)
        check_within(asked, grid)
        return SurvivalCurves(
            curves.at(asked), asked, interpolation=self.interpolation, monotone="keep"
        )  # checked already

    def _survival(self, X: Any) -> NDArray[np.float64]:
        import torch

        check_whole("batch_size", self.batch_size, 1)
        X = collected(X)
        frame = as_frame(X)
        rows = torch.as_tensor(X if frame is None else frame.to_numpy(), dtype=torch.float32)
        parameter = next(iter(self.module.parameters()), None)
        device = "cpu" if parameter is None else parameter.device
        training = self.module.training
        self.module.eval()
        try:
            with torch.no_grad():
                batches = [
                    self.module(rows[start : start + self.batch_size].to(device)).double().cpu()
                    for start in range(0, len(rows), self.batch_size)
                ]
        finally:
            self.module.train(training)
        outputs = torch.cat(batches)
        if self.output == "survival_logits":
            outputs = outputs.sigmoid()
        elif self.output == "hazards":
            outputs = (1.0 - outputs).cumprod(1)
        elif self.output == "hazard_logits":
            outputs = torch.nn.functional.logsigmoid(-outputs).cumsum(1).exp()
        return np.asarray(outputs.numpy())
