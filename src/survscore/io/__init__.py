"""Outcomes and predictions in files: CSV, Parquet and Arrow, read, joined by id, checked and written."""

from survscore.io.forms import Form
from survscore.io.outcomes import ObservedFile, read_outcomes
from survscore.io.predictions import PredictedFile, read_predictions
from survscore.io.study import Study, read_study
from survscore.io.writing import write_frame, write_outcomes, write_predictions, write_study

__all__ = [
    "Form",
    "ObservedFile",
    "PredictedFile",
    "Study",
    "read_outcomes",
    "read_predictions",
    "read_study",
    "write_frame",
    "write_outcomes",
    "write_predictions",
    "write_study",
]
