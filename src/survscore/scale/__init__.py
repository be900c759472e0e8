"""Scores of data that do not fit in memory: the same results from files, streams and clusters."""

from survscore.scale.columns import ModelColumns, OutcomeColumns
from survscore.scale.evaluating import evaluate, evaluate_state
from survscore.scale.specification import Specification, specify
from survscore.scale.state import State

__all__ = ["ModelColumns", "OutcomeColumns", "Specification", "State", "evaluate", "evaluate_state", "specify"]
