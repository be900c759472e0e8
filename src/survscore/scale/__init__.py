"""Scores of predictions that do not fit into memory."""
