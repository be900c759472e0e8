"""Weightings: whom a score counts at time t, and how much."""
