"""An example of rules, to begin with."""

EXAMPLE = """\
# Rules for "survscore check". Each [[check]] is one rule; it passes, fails, or is skipped.
# The exit code is 0 if all pass, 1 if one fails, and 2 if something is wrong with the rules or the data.

# The simplest: the upper limit of the mean Brier score's interval stays below a number, for all models.
[[check]]
name = "good enough"
metric = "brier"                  # brier, log, auc; a list, or "*"
value = "upper"                   # score, upper, lower; with a reference difference, difference-upper, ...
below = 0.25                      # or above = 0.7, or both

# Better than predicting the same for all individuals.
[[check]]
name = "better than nothing"
value = "skill"
above = 0.0
min_events = 20                   # with fewer, the check is skipped
severity = "warning"              # is shown, and does not change the exit code

# A new model against the old one, on the same individuals. Without a threshold, the new one must not be significantly
# worse: worse_by = 0.002 tolerates that much. It knows that a higher AUC is better. Where C* is known, that is by the
# projected score and the recommendation, unless a weighting is named.
# [[check]]
# name = "new model is not worse"
# model = "new"
# reference = "old"

# At one time, and over a range of time.
# [[check]]
# name = "good after a year"
# weighting = "administrative"    # the label of a weighting or its first word; by default the first,
#                                 # of differences between models the projected one
# at = 365
# below = 0.15
#
# [[check]]
# name = "good in the first year"
# range = [0, 365]
# below = 0.12

# Against the last run in the history (--history FILE). Their data must be independent.
# [[check]]
# name = "not worse than yesterday"
# range = [0, 365]                # the same for all runs
# reference = "last"              # or the id of a run, or its date
# worse_by = 0.005

# Where administrative and projected scores are computed: no model may encode the entry date, the recommendation must
# be for the new model, and the hazard of late starters must be about that of the others.
# [[check]]
# name = "no leak"
# value = "leak"
#
# [[check]]
# name = "recommended"
# value = "recommendation"
# model = "new"
# reference = "old"
# verdict = ["better", "undecided"]
#
# [[check]]
# name = "no drift"
# value = "hazard-ratio"          # with reference = "last": divided by that of the last run
# above = 0.8
# below = 1.25

# Under competing risks (--cause NAME): only scores of this cause; with those of another one the check is skipped.
# [[check]]
# name = "good for loans that default"
# cause = "default"
# below = 0.1

# In each segment, or in one: segment = {country = "DE"}.
# [[check]]
# name = "good everywhere"
# segment = "each"
# value = "lower"                 # fails where it is significantly too high
# below = 0.2
"""
