"""Helpers that know nothing of survival: arrays, files, dates, threads."""
