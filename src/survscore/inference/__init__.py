"""Statistics: intervals, tests, units of a variance, regressions."""
