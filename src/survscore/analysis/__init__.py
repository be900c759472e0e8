"""What is computed of scores: comparisons in segments, tables, calibration, diagnoses, backtests."""
