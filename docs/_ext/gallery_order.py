"""The order of the examples: from a user's first question to the last."""

from pathlib import Path

READING_ORDER = [
    "plot_churn_with_dates",
    "plot_the_leak",
    "plot_leaking_classifier",
    "plot_then_and_now",
    "plot_diabetes_register",
    "plot_competing_risks",
    "plot_report",
    "plot_clinical_trial",
    "plot_heart_transplants",
    "plot_delayed_entry",
    "plot_cross_validation",
    "plot_pycox_model",
    "plot_caps",
    "plot_add_a_weighting",
]


class ReadingOrder:
    """Sort examples as in the list above; new ones come last, by name."""

    def __init__(self, src_dir):
        self.src_dir = src_dir

    def __call__(self, filename):
        """Return what to sort by."""
        name = Path(filename).stem
        return (READING_ORDER.index(name) if name in READING_ORDER else len(READING_ORDER), name)

    def __repr__(self):
        return "<ReadingOrder>"  # the same in every build, or Sphinx would think that the settings had changed
