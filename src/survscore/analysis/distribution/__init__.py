"""Calibration of whole predicted distributions."""
