"""Put faults into a copy of the package, one after the other, and report which of them the tests find.

    python tools/mutations.py                 all faults, each with the tests named for it
    python tools/mutations.py -k administrative   those whose file or name holds the word
    python tools/mutations.py --check         only look whether each text is still there, once

A fault is one piece of text replaced by another. Tests that are named for it run first; where these pass, the fault is
reported as not found, and the exit code is 1. The tests themselves must pass without any fault, which is tried first.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("src", "tests", "docs", "examples", "conftest.py", "pyproject.toml", "README.md", "CHANGELOG.md")
LONGEST = 600  # seconds, for the tests of one fault
FAILED, NOT_IMPORTED = 1, 2  # exit codes of pytest

LOOP = "tests/test_common.py::test_agrees_with_the_literal_loop"
JACKKNIFE = "tests/test_inference.py::test_every_standard_error_agrees_with_the_jackknife"
RANKS = "tests/test_projected.py::test_strata_by_ranks_are_the_literal_ones"
DERIVATIVE = "tests/test_inference.py::test_standard_errors_are_those_of_the_derivative"


class Fault(NamedTuple):
    """A piece of a file below ``src/survscore``, what stands there instead, and the tests that should find it."""

    name: str
    path: str
    old: str
    new: str
    tests: str


FAULTS = [
    # formulas
    Fault("Brier: distance", "metrics/losses.py", "else values - event_free", "else values + event_free", LOOP),
    Fault("Brier: event-free", "metrics/losses.py", "= 1.0 - arrays.as_float64(survival)\n",
          "= 0.5 - arrays.as_float64(survival)\n", LOOP),
    Fault("log: status", "metrics/losses.py", "arrays.where(event_free, clipped, 1.0 - clipped)",
          "arrays.where(event_free, 1.0 - clipped, clipped)", LOOP),
    Fault("log: clipping", "metrics/losses.py", ".clip(self.epsilon, 1.0 - self.epsilon)",
          ".clip(self.epsilon, 1.0)", LOOP),
    Fault("log: slope", "metrics/losses.py", "inside / (1.0 - clipped)", "inside / clipped",
          "tests/test_null.py::test_exact_slopes_are_the_limits_of_differences"),
    Fault("null model: cause", "engine/loss_scores.py", "loss.of_event(survival) * weights[2]",
          "loss.of_event(survival) * weights[1]", "tests/test_null.py tests/test_comparison.py"),
    Fault("concordance: ties", "metrics/_pairs.py", "of_case + 0.5 * (controls", "of_case + (controls", LOOP
          + " tests/test_pooled.py tests/test_histories.py"),
    Fault("concordance: weight", "metrics/discrimination.py", "return [_Pairs(time, mass * case**2, control)]",
          "return [_Pairs(time, mass * case, control)]", "tests/test_histories.py"),
    Fault("CRPS: divisor", "metrics/whole_scores.py", "value = float(own.sum() / total)",
          "value = float(own.sum() / own.size)", "tests/test_histories.py"),
    Fault("ICI: unweighted", "metrics/calibration.py", "value = dot(curve.share, distance)\n",
          "value = float(distance.mean())\n", "tests/test_pooled.py tests/test_calibration.py"),
    Fault("E90: share", "metrics/calibration.py", "share: ClassVar[float] = 0.9", "share: ClassVar[float] = 0.8",
          "tests/test_pooled.py tests/test_calibration.py"),
    Fault("interpolation: linear", "interpolation.py", "return (1.0 - weight) * left + weight * right",
          "return weight * left + (1.0 - weight) * right", "tests/test_curves.py"),
    Fault("interpolation: constant hazard", "interpolation.py", "arrays.power(left, 1.0 - weight)",
          "arrays.power(left, 1.0 + weight)", "tests/test_curves.py"),
    Fault("curves given survival", "curves.py", "ratio: Any = around.later / around.at[:, None]",
          "ratio: Any = around.later", "tests/test_curves.py tests/test_landmarks.py"),
    # product limits
    Fault("product limit: ties", "censoring/product_limit.py", "order_of(time, leaves if others_first else ~leaves)",
          "order_of(time, ~leaves if others_first else leaves)", "tests/test_censoring.py"),
    Fault("Greenwood", "censoring/product_limit.py", "arrays.as_float64(self.at_risk) * rest",
          "arrays.as_float64(self.at_risk) * self.at_risk", DERIVATIVE),
    Fault("Aalen-Johansen: before the jump", "censoring/aalen_johansen.py",
          "self.event_free(self._before[some]) *", "self.event_free(self._before[some] + 1) *",
          "tests/test_incidence.py tests/test_cause_scores.py tests/test_causes.py"),
    # weightings
    Fault("censoring: G(T) for G(T-)", "weighting/base.py", "model.curve.before(index.ordered_time, codes)",
          "model.curve.at(index.ordered_time, codes)", LOOP),
    Fault("IPCW: the censored", "weighting/ipcw.py",
          "arrays.where(outcomes.event, index.to_the_end, index.before_time)",
          "arrays.where(outcomes.event, index.to_the_end, index.until_time)", LOOP),
    Fault("administrative: C* > t", "weighting/interval_weights.py",
          "count_times(self.times, self.outcomes.censoring_time, inclusive=True)",
          "count_times(self.times, self.outcomes.censoring_time, inclusive=False)", LOOP),
    Fault("administrative: fixed population", "weighting/administrative.py",
          "arrays.where(end >= start, eligible, np.int32(0))", "arrays.where(end > start, eligible, np.int32(0))",
          LOOP + " tests/test_weighting.py"),
    Fault("cap of weights", "weighting/interval_weights.py", "weights = weights.clip(max=max_weight)",
          "weights = weights.clip(max=2 * max_weight)", LOOP),
    Fault("drop-out: ties", "weighting/interval_weights.py", "rank = rank + arrays.as_int8(self.outcomes.dropped_out)",
          "rank = rank - arrays.as_int8(self.outcomes.dropped_out)", LOOP + " tests/test_dropouts.py"),
    Fault("projected: theta", "weighting/projected.py", "1.0 / arrays.where(event, 1.0, own) ** self.theta",
          "1.0 / arrays.where(event, 1.0, own)", LOOP),
    Fault("projected: too few", "weighting/projected.py", "scored = (followed >= min_followed)",
          "scored = (followed > min_followed)", "tests/test_projected.py::test_no_score_where_few_are_followed"),
    Fault("projected: causes", "censoring/aalen_johansen.py", "1.0 - share * self.later(position), share",
          "1.0 + share * self.later(position), share", LOOP),
    Fault("ranks: ties", "weighting/ranks.py", "np.repeat(passed[1:] + passed[:-1], np.diff(edges))",
          "np.repeat(2 * passed[1:], np.diff(edges))", RANKS),
    Fault("ranks: equal C*", "weighting/ranks.py",
          "np.where(before[first] < cuts, last, first)",
          "np.where(before[first] < cuts, first, first)", RANKS),
    # standard errors, intervals, p-values
    Fault("influence: who exits", "_utils/arrays.py", "table[places] -= rows", "table[places] += rows",
          JACKKNIFE + " tests/test_inference.py"),
    Fault("variance: n / (n - 1)", "inference/units.py", "np.where(n_units > 1, n_units - 1, 1)",
          "np.where(n_units > 1, n_units, 1)", "tests/test_inference.py"),
    Fault("variance: of a mean", "engine/moments.py", "weights * np.sqrt(self.inflation[p, columns])",
          "weights * self.inflation[p, columns]", "tests/test_inference.py"),
    Fault("variance: of training data", "engine/moments.py", "self.greenwood[p, columns] += step @ values**2",
          "self.greenwood[p, columns] += step**2 @ values**2", "tests/test_inference.py tests/test_null.py"),
    Fault("interval: level", "inference/intervals.py", "0.5 + level / 2", "level", "tests/test_inference.py"
          " tests/test_distribution.py tests/test_comparison.py"),
    Fault("interval: logarithm", "inference/intervals.py", "np.where(positive, value / factor, np.maximum(lower, 0.0))",
          "np.where(positive, value - half, np.maximum(lower, 0.0))", "tests/test_scores.py tests/test_pinned.py"),
    Fault("difference: degrees of freedom", "inference/support.py", "np.maximum(self.n_rarer - 1.0, 1.0)",
          "np.maximum(self.n_counted - 1.0, 1.0)", "tests/test_inference.py tests/test_pinned.py"),
    Fault("Holm", "inference/multiplicity.py", "np.maximum(asked - place, 1) * rising",
          "np.maximum(asked - place - 1, 1) * rising", "src/survscore/inference/multiplicity.py"),
    Fault("Rubin", "inference/estimate.py", "added = (1.0 + 1.0 / m) * between", "added = between",
          "tests/test_several_datasets.py"),
    # bounds
    Fault("bounds: upper", "engine/bounds.py", "upper[p] += both.max(axis=0).sum(axis=0)",
          "upper[p] += both.mean(axis=0).sum(axis=0)", "tests/test_bounds.py"),
    Fault("bounds: over a range", "engine/bounds.py", "event.sum(axis=1) + until.max(axis=1)",
          "event.sum(axis=1) + until[:, -1]", "tests/test_bounds.py"),
    Fault("bounds: other way round", "engine/bounds.py", "return known - self.upper[p], known - self.lower[p]",
          "return known + self.lower[p], known + self.upper[p]", "tests/test_bounds.py"),
    Fault("bounds: p-value", "results/estimates.py", "z = np.where(lower * upper > 0, z, 0.0)",
          "z = np.where(lower * upper > 0, z, 9.0)", "tests/test_bounds.py"),
    # reading of files
    Fault("flags: no", "io/flags.py", '"no": False, "n": False', '"no": True, "n": False', "tests/io/test_doors.py"),
    Fault("dates: decimal years", "io/dates.py", "* (following - begin).astype(np.float64)", "* 365.25",
          "tests/io/test_doors.py"),
    Fault("dates: event on the last day", "_utils/dates.py", "happened = np.asarray(events <= ends)",
          "happened = np.asarray(events < ends)", "tests/test_outcomes.py"),
    Fault("times: rounding", "io/outcomes.py", "changed = apart & (late | ~event) & (time != end)",
          "changed = apart & late", "tests/io/test_doors.py"),
    Fault("long form: order of rows", "io/layouts.py", "ordered[self.place] = values", "ordered[:] = values",
          "tests/io/test_long_form.py"),
    # the recommendation
    Fault("verdict: who wins", "results/recommendation.py", "winner, loser = self.names if point.difference < 0 else",
          "winner, loser = self.names if point.difference > 0 else", "tests/test_recommendation.py"),
    Fault("verdict: depends", "results/recommendation.py", "if self.hidden and not point.sign_holds:",
          "if self.hidden and point.sign_holds:", "tests/test_recommendation.py"),
    Fault("verdict: encodes the entry date", "results/recommendation.py",
          "return self.z > MUCH", "return self.z > 10 * MUCH",
          "tests/test_recommendation.py"),
    Fault("verdict: plausible hazards", "results/sensitivity.py",
          "self.tipping_lower < low and high < self.tipping_upper",
          "self.tipping_lower < low or high < self.tipping_upper", "tests/test_recommendation.py"),
]  # fmt: skip


def misplaced(faults: list[Fault]) -> list[str]:
    """Return of which faults the text is not there, or more than once."""
    messages = []
    for fault in faults:
        path = ROOT / "src" / "survscore" / fault.path
        n = path.read_text(encoding="utf-8").count(fault.old) if path.exists() else 0
        if n != 1:
            messages.append(f"{fault.name}: {fault.path} holds {fault.old!r} {n} times, not once")
    return messages


def exit_code(tree: Path, tests: str) -> int:
    """Return pytest's exit code for some tests in a copy of the tree."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n0", "-p", "no:cacheprovider", *tests.split()]
    try:
        run = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=LONGEST, check=False
        )
    except subprocess.TimeoutExpired:
        return FAILED  # a fault may make a loop endless
    if run.returncode not in (0, FAILED, NOT_IMPORTED):
        sys.exit(f"pytest ended with exit code {run.returncode}: {' '.join(command)}\n{run.stdout}{run.stderr}")
    return run.returncode


def copied(folder: Path) -> Path:
    """Copy the tree, with the machine code that is kept beside the sources, so that little is compiled anew."""
    for name in COPIED:
        source = ROOT / name
        copy = shutil.copytree if source.is_dir() else shutil.copy2
        copy(source, folder / name)
    return folder


def found(fault: Fault | None, tests: str) -> bool:
    """Return whether tests fail with a fault."""
    with tempfile.TemporaryDirectory() as folder:
        tree = copied(Path(folder))
        if fault is not None:
            path = tree / "src" / "survscore" / fault.path
            path.write_text(path.read_text(encoding="utf-8").replace(fault.old, fault.new), encoding="utf-8")
        return exit_code(tree, tests) != 0


def main() -> None:
    """Try the faults."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-k", default="", metavar="WORD", help="only faults whose name or file holds it")
    parser.add_argument("--check", action="store_true", help="only look whether each text is there once")
    parser.add_argument("--no-baseline", action="store_true", help="do not run the tests without a fault first")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="try so many faults at once")
    options = parser.parse_args()
    faults = [fault for fault in FAULTS if options.k in fault.name or options.k in fault.path]
    if messages := misplaced(faults):
        sys.exit("\n".join(messages))
    print(f"{len(faults)} faults, each text is there once")
    if options.check:
        return
    selected = " ".join(dict.fromkeys(test for fault in faults for test in fault.tests.split()))
    if not options.no_baseline and found(None, selected):
        sys.exit(f"these tests fail without any fault: {selected}")

    def tried(fault: Fault) -> bool:
        start = time.monotonic()
        ok = found(fault, fault.tests)
        print(f"{'found' if ok else 'NOT FOUND':9} {time.monotonic() - start:5.0f} s  {fault.name}", flush=True)
        return ok

    with ThreadPoolExecutor(options.jobs) as pool:
        missed = [fault.name for fault, ok in zip(faults, pool.map(tried, faults), strict=True) if not ok]
    print(f"{len(faults) - len(missed)} of {len(faults)} found")
    if missed:
        sys.exit(f"not found: {', '.join(missed)}")


if __name__ == "__main__":
    main()
