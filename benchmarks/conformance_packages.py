"""How each package is asked: one small class for every Python package; those of R are in conformance_packages.R.

    python benchmarks/conformance_packages.py NAME < questions.json > answers.json

It runs in the environment that has the package, which may have neither survscore nor its NumPy.
"""

from __future__ import annotations

import json
import re
import sys
import warnings
from importlib.metadata import distribution, version
from pathlib import Path
from typing import Any

import numpy as np

from conformance_cases import Data, Question

Z = 1.959963984540054


class NotOffered(Exception):  # noqa: N818
    """The package has no such thing."""


class Package:
    """A package that may have an IPCW Brier score.

    Methods take `Data` and return a number for each of its times, as lists or arrays; what they do not override is not
    offered. `training` says whether outcomes to fit G on can be given: it is what the signature asks for.
    """

    name: str
    #: the call, as it is shown to readers
    call = ""
    training: str = "not taken"  # or "can be given", "must be given"
    #: what numbers can't tell, in words
    note = ""
    #: packages on whose versions the numbers may depend
    stands_on: tuple[str, ...] = ("numpy", "pandas")

    def brier(self, data: Data) -> Any:
        raise NotOffered

    def integrated(self, data: Data) -> Any:
        raise NotOffered

    def standard_errors(self, data: Data) -> Any:
        raise NotOffered

    def administrative(self, data: Data) -> Any:
        raise NotOffered

    def censoring(self, data: Data) -> Any:
        """Return G at the times."""
        raise NotOffered

    def mentions(self) -> list[str]:
        """Return functions and classes of the installed files that have brier in their name."""
        files = [Path(str(file.locate())) for file in distribution(self.name).files or [] if file.suffix == ".py"]
        written = "\n".join(path.read_text(errors="replace") for path in files if path.exists())
        return sorted(set(re.findall(r"^\s*(?:def|class) (\w*brier\w*)", written, flags=re.I | re.M)))


def _arrays(data: Data) -> tuple[Any, Any, Any, Any]:
    return (
        np.array(data.time),
        np.array(data.event, dtype=bool),
        np.array(data.survival),
        np.array(data.times, dtype=float),
    )


def _refuse_training(data: Data) -> None:
    if data.train_time is not None:
        raise NotOffered


class Survscore(Package):
    name = "survscore"
    call = 'brier_score(y, curves, weighting="ipcw", times=times)'
    training = "can be given"
    note = '``IPCW(normalize="n")`` divides by n, ``IPCW(max_weight=20)`` bounds weights.'
    stands_on = ("numpy", "numba")

    def _score(self, data: Data, weighting: Any) -> Any:
        import survscore as ss

        time, event, survival, times = _arrays(data)
        y = ss.Outcomes(time, event, data.censoring_time)
        return ss.brier_score(y, ss.SurvivalCurves(survival, times), weighting=weighting, times=times)

    def _ipcw(self, data: Data) -> Any:
        import survscore as ss

        own = data.train_time is None
        return self._score(data, "ipcw" if own else ss.IPCW(ss.Outcomes(data.train_time, data.train_event)))

    def brier(self, data: Data) -> Any:
        return self._ipcw(data).scores

    def integrated(self, data: Data) -> Any:
        return [self._ipcw(data).integrated().value]

    def standard_errors(self, data: Data) -> Any:
        return self._ipcw(data).se

    def administrative(self, data: Data) -> Any:
        return self._score(data, "administrative").scores


class Pycox(Package):
    name = "pycox"
    call = 'EvalSurv(survival, durations, events, censor_surv="km").brier_score(times)'
    training = "can be given"
    note = "``max_weight`` bounds weights. G of training data is given as curves, here of ``pycox.utils.kaplan_meier``."
    stands_on = ("numpy", "pandas", "numba", "scipy")

    def _evaluation(self, data: Data, **options: Any) -> Any:
        import pandas as pd
        from pycox.evaluation import EvalSurv

        time, event, survival, times = _arrays(data)
        return EvalSurv(pd.DataFrame(survival.T, index=times), time, event.astype(np.int64), **options)

    def _ipcw(self, data: Data) -> Any:
        import pandas as pd
        from pycox.utils import kaplan_meier

        if data.train_time is None:
            return self._evaluation(data, censor_surv="km")
        curve = kaplan_meier(np.array(data.train_time), 1 - np.array(data.train_event))
        everybody = np.repeat(curve.to_numpy()[:, None], len(data.time), axis=1)
        return self._evaluation(data, censor_surv=pd.DataFrame(everybody, index=curve.index))

    def brier(self, data: Data) -> Any:
        return self._ipcw(data).brier_score(np.array(data.times, dtype=float)).to_numpy()

    def integrated(self, data: Data) -> Any:
        return [self._ipcw(data).integrated_brier_score(np.array(data.times, dtype=float))]

    def administrative(self, data: Data) -> Any:
        evaluation = self._evaluation(data, censor_durations=np.array(data.censoring_time))
        return evaluation.brier_score_admin(np.array(data.times, dtype=float)).to_numpy()


class ScikitSurvival(Package):
    name = "scikit-survival"
    call = "brier_score(survival_train, survival_test, estimate, times)"
    training = "must be given"
    stands_on = ("numpy", "scikit-learn")

    def _arguments(self, data: Data) -> Any:
        from sksurv.util import Surv

        time, event, survival, times = _arrays(data)
        train_time, train_event = data.train
        train = Surv.from_arrays(np.array(train_event, dtype=bool), train_time)
        return train, Surv.from_arrays(event, time), survival, times

    def brier(self, data: Data) -> Any:
        from sksurv.metrics import brier_score

        return brier_score(*self._arguments(data))[1]

    def integrated(self, data: Data) -> Any:
        from sksurv.metrics import integrated_brier_score

        return [integrated_brier_score(*self._arguments(data))]


class Survivors(Package):
    name = "survivors"
    call = "metrics.ibs(survival_train, survival_test, estimate, times, axis=1)"
    training = "must be given"
    note = "Its other scores, ``ibs_WW`` and ``ibs_remain``, are unweighted."
    stands_on = ("numpy", "scikit-survival")

    def _ibs(self, data: Data, axis: int) -> Any:
        from survivors.metrics import ibs

        return ibs(*ScikitSurvival()._arguments(data), axis=axis)

    def brier(self, data: Data) -> Any:
        return self._ibs(data, axis=1)

    def integrated(self, data: Data) -> Any:
        return [self._ibs(data, axis=-1)]


class Hazardous(Package):
    name = "hazardous"
    call = "brier_score_survival(y_train, y_test, y_pred, times)"
    training = "must be given"
    stands_on = ("numpy", "lifelines", "scipy")

    def _arguments(self, data: Data) -> Any:
        import pandas as pd

        time, event, survival, times = _arrays(data)
        train_time, train_event = data.train
        train = pd.DataFrame({"event": train_event, "duration": train_time})
        return train, pd.DataFrame({"event": event.astype(np.int64), "duration": time}), survival, times

    def brier(self, data: Data) -> Any:
        from hazardous.metrics import brier_score_survival

        return brier_score_survival(*self._arguments(data))

    def integrated(self, data: Data) -> Any:
        from hazardous.metrics import integrated_brier_score_survival

        return [integrated_brier_score_survival(*self._arguments(data))]


class SurvivalEval(Package):
    name = "SurvivalEVAL"
    call = "SurvivalEvaluator(...).brier_score_multiple_points(target_times)"
    training = "must be given"
    stands_on = ("numpy", "scipy")

    def _evaluator(self, data: Data) -> Any:
        from SurvivalEVAL import SurvivalEvaluator

        time, event, survival, times = _arrays(data)
        train_time, train_event = np.array(data.train[0]), np.array(data.train[1])
        # curves begin with 1 at time 0
        with_start = np.column_stack((np.ones(len(time)), survival)), np.append(0.0, times)
        return SurvivalEvaluator(*with_start, time, event.astype(int), train_time, train_event)

    def brier(self, data: Data) -> Any:
        times = np.array(data.times, dtype=float)
        return self._evaluator(data).brier_score_multiple_points(times, IPCW_weighted=True)

    def integrated(self, data: Data) -> Any:
        times = np.array(data.times, dtype=float)
        return [self._evaluator(data).integrated_brier_score(target_times=times, IPCW_weighted=True)]


class Torchsurv(Package):
    name = "torchsurv"
    call = "BrierScore()(estimate, event, time, new_time, get_ipcw(event, time), get_ipcw(event, time, new_time))"
    training = "can be given"
    note = "Weights are handed over, here those of ``get_ipcw``; without any, nobody is weighted. Numbers are float32."
    stands_on = ("numpy", "torch")

    def _score(self, data: Data) -> Any:
        import torch
        from torchsurv.metrics.brier_score import BrierScore
        from torchsurv.stats.ipcw import get_ipcw

        time, event, survival, times = map(torch.from_numpy, _arrays(data))
        time, times, survival = time.float(), times.float(), survival.float()
        train_time, train_event = torch.tensor(data.train[0]).float(), torch.tensor(data.train[1]).bool()
        score = BrierScore()
        weights = get_ipcw(train_event, train_time, time), get_ipcw(train_event, train_time, times)
        return score, score(survival, event, time, times, *weights)

    def brier(self, data: Data) -> Any:
        return self._score(data)[1].numpy()

    def integrated(self, data: Data) -> Any:
        return [self._score(data)[0].integral().item()]

    def standard_errors(self, data: Data) -> Any:
        score, values = self._score(data)
        upper = score.confidence_interval()[1]  # the lower limit is cut at zero
        return ((upper - values) / Z).numpy()


class Xgbse(Package):
    name = "xgbse"
    call = "approx_brier_score(y_true, survival, aggregate=None)"
    note = "G is known at the columns of the predictions alone."
    stands_on = ("numpy", "pandas")

    def _score(self, data: Data, aggregate: str | None) -> Any:
        import pandas as pd
        from xgbse.converters import convert_to_structured
        from xgbse.metrics import approx_brier_score

        _refuse_training(data)
        time, event, survival, times = _arrays(data)
        outcomes = convert_to_structured(pd.Series(time), pd.Series(event))
        return approx_brier_score(outcomes, pd.DataFrame(survival, columns=times), aggregate=aggregate)

    def brier(self, data: Data) -> Any:
        return self._score(data, None)

    def integrated(self, data: Data) -> Any:
        return [self._score(data, "mean")]


class Pydts(Package):
    name = "pydts"
    call = "evaluation.event_specific_brier_score_at_t(pred_df, event, t)"
    note = "It scores predictions of an event at exactly t, of those at risk then: here one minus the predictions."
    stands_on = ("numpy", "pandas", "lifelines")

    def _frame(self, data: Data) -> Any:
        import pandas as pd

        _refuse_training(data)
        time, event, survival, times = _arrays(data)
        predicted = {f"prob_j1_at_t{t}": 1 - survival[:, j] for j, t in enumerate(times)}
        return pd.DataFrame({"X": time, "J": event.astype(int), **predicted})

    def brier(self, data: Data) -> Any:
        from pydts.evaluation import event_specific_brier_score_at_t

        frame = self._frame(data)
        return [event_specific_brier_score_at_t(frame, 1, t) for t in map(float, data.times)]

    def integrated(self, data: Data) -> Any:
        from pydts.evaluation import event_specific_integrated_brier_score

        # it wants a prediction for every observed time: the one for the time asked for that is next to it
        frame, asked = self._frame(data), np.array(data.times, dtype=float)
        for t in sorted(set(data.time)):
            nearest = asked[np.abs(asked - t).argmin()]
            frame[f"prob_j1_at_t{float(t)}"] = frame[f"prob_j1_at_t{nearest}"]
        return [event_specific_integrated_brier_score(frame, 1)]


class Lifelines(Package):
    name = "lifelines"
    call = "KaplanMeierFitter().fit(time, ~event)"
    stands_on = ("numpy", "pandas")

    def censoring(self, data: Data) -> Any:
        from lifelines import KaplanMeierFitter

        time, event, _, times = _arrays(data)
        return KaplanMeierFitter().fit(time, ~event).survival_function_at_times(times).to_numpy()


class Skpro(Package):
    name = "skpro"
    stands_on = ("numpy",)


PACKAGES: dict[str, Package] = {
    package.name: package
    for package in (
        Survscore(),
        Pycox(),
        ScikitSurvival(),
        Survivors(),
        Hazardous(),
        SurvivalEval(),
        Torchsurv(),
        Xgbse(),
        Pydts(),
        Lifelines(),
        Skpro(),
    )
}


def answer(package: Package, question: Question) -> dict[str, Any]:
    """Return the values, and whether there was a warning; or that it is not offered; or the error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            values = [float(value) for value in getattr(package, question.kind)(question.data)]
        except NotOffered:
            return {"not offered": True}
        except Exception as error:
            cause = error
            while cause.__cause__ is not None:  # what numba raises says less than what it was raised from
                cause = cause.__cause__
            said = str(cause).strip().splitlines()
            return {"error": type(cause).__name__ + (f": {said[0]}" if said else "")}
    return {"values": values, "warned": bool(caught)}


def report(name: str, questions: dict[str, Question]) -> dict[str, Any]:
    """Return all that the package has to say, with the versions of what it stands on."""
    package = PACKAGES[name]
    answer(package, next(iter(questions.values())))  # imports warn, too, and only once
    return {
        "version": version(name),
        "stands on": {other: version(other) for other in package.stands_on},
        "call": package.call,
        "training data": package.training,
        "note": package.note,
        "named brier": package.mentions(),
        "answers": {label: answer(package, question) for label, question in questions.items()},
    }


def main() -> None:
    """Answer the questions of standard input."""
    questions = {label: Question.from_dict(plain) for label, plain in json.load(sys.stdin).items()}
    json.dump(report(sys.argv[1], questions), sys.stdout)


if __name__ == "__main__":
    main()
