"""How often two equally good models are called different: python benchmarks/type_one_error.py (two minutes)."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor

import numpy as np

import survscore as ss

TIMES = np.array([3.0, 8.0])
DESIGNS = (("administrative", False), ("ipcw", False), ("administrative", True))


def rejected(weighting: str, drop_outs: bool, replicates: int, seed: int, n: int = 400) -> np.ndarray:
    """Return the share of p-values below 5 %, at each time; both models are the truth with noise of the same size."""
    rng = np.random.default_rng(seed)
    hits = np.zeros(TIMES.size)
    for _ in range(replicates):
        rate, end = rng.gamma(2, 0.06, n), rng.uniform(2, 15, n)
        event_time = rng.exponential(1 / rate)
        leaves = rng.exponential(40, n) if drop_outs else np.full(n, np.inf)
        seen = np.minimum(end, leaves)
        y = ss.Outcomes(np.minimum(event_time, seen), event_time <= seen, end)
        first, second = (
            ss.SurvivalCurves(np.exp(-rate[:, None] * np.exp(0.5 * rng.normal(size=(n, 1))) * TIMES), TIMES)
            for _ in range(2)
        )
        contrasts = ss.compare(
            y, {"a": first, "b": second}, weighting=weighting, times=TIMES, null=False
        ).contrasts  # fmt: skip
        hits += (contrasts["p_value"] < 0.05).to_numpy()
    return hits / replicates


def main() -> None:
    """Print the table."""
    jobs = [(*design, 4000, seed) for design in DESIGNS for seed in (1, 2)]
    with ProcessPoolExecutor() as pool:
        found = list(pool.map(rejected, *zip(*jobs, strict=True)))
    print("| weights | at the first time, % | at the second, % |\n| --- | ---: | ---: |")
    for k, (weighting, drop_outs) in enumerate(DESIGNS):
        share = 100 * (found[2 * k] + found[2 * k + 1]) / 2
        name = weighting + (" with drop-outs" if drop_outs else "")
        print(f"| {name} | {share[0]:.1f} | {share[1]:.1f} |")


if __name__ == "__main__":
    main()
