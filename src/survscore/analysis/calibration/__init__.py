"""Calibration at a time: curves and measures."""
