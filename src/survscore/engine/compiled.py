"""Compiled."""


def knows(losses, weights):
    return False
