"""
A report to show
================

Decision makers will not read Python. ``ss.report`` makes one page of the comparison: the
verdict in words, charts, tables, and whether to rely on the result. It is a single
file that works offline; ``survscore report`` writes the same from files.

The data are machines under a maintenance contract. The contracts began at different times,
follow-up of all ends on the same day, and the serial number encodes when a contract began.
"""

# %%
import numpy as np

import survscore as ss

rng = np.random.default_rng(3)
n = 2_000
load = rng.uniform(0.5, 2.0, n)
contract_days = rng.uniform(100, 1000, n)  # C*: from the start to the data cut-off
failure = rng.exponential(900 / load)
y = ss.Outcomes(np.minimum(failure, contract_days), failure <= contract_days, contract_days)
y

# %%
# Two predictions. One uses the load. The other was made by classifiers that leave out
# machines whose status they do not know; from the serial number they have learnt that no
# machine is observed running after the cut-off, and so they predict that all of them fail then.
# Here they are written down by formula.

times = np.arange(20.0, 901.0, 20.0)
by_load = ss.SurvivalCurves(np.exp(-load[:, None] * times / 900), times)
seen = contract_days[:, None] > times
by_serial_number = ss.SurvivalCurves(np.exp(-0.95 * load[:, None] * times / 900) * seen, times)

# %%
# The report
# ----------
#
# In a notebook the last line of a cell shows it, as here. The first screen says what
# matters: by the projected score the one by serial number is worse for all machines, while
# the administrative score hardly differs, since it counts only machines observed up to t, and
# IPCW prefers the one that is wrong after C*. *Diagnosis* has the fall at C*,
# *Single curves* the same for six machines.

# sphinx_gallery_thumbnail_path = "_static/report.png"
report = ss.report(
    y,
    {"by load": by_load, "by serial number": by_serial_number},
    weighting=["administrative", "projected", "ipcw"],
    times=times[1:-2],
    horizons=[200, 500],
    title="Which machines will fail?",
)
report

# %%
# ``report.save("report.html")`` writes it. What it says is also there as plain data:

print(report.summary["answer"]["brier"]["sentence"])

# %%
# Does a model encode C*?
# -----------------------
#
# Nothing happens to a machine on the day of the data cut-off. ``ss.diagnose`` measures how
# steeply predictions fall right after each machine's own C*, against other machines of the same
# age and against earlier dates, and whether IPCW rates them better than the administrative
# score does.

diagnosis = ss.diagnose(
    y,
    {"by load": by_load, "by serial number": by_serial_number},
    X=np.column_stack([load, contract_days]),
    times=times[1:-2],
)
diagnosis

# %%
# The same as numbers, and in a figure: the mean prediction around C*, and dotted how it would
# go on if it did not encode C*.

diagnosis.models[
    ["model", "verdict", "fall_after", "fall_elsewhere", "ratio", "ratio_lower", "ratio_upper"]
].round(2)

# %%
diagnosis.plot()
