"""Running the command line within a test."""

import re

from survscore import cli


def run(capsys, *arguments):
    """Run a command; return exit code, standard output, standard error."""
    try:
        cli.main([str(one) for one in arguments])
        code = 0
    except SystemExit as stop:
        code = stop.code
    return code, *capsys.readouterr()


def printed(out, *values, sign=""):
    """Whether numbers stand in a line of a table, each rounded to as many digits as its column has."""
    forms = ["|".join({re.escape(f"{value:{sign}z.{digits}f}") for digits in range(2, 7)}) for value in values]
    return re.search(r"[ (]" + r"[ (,]+".join(f"(?:{form})" for form in forms) + r"(?!\d)", out) is not None


def refused(capsys, *arguments):
    """Run a command that must be refused in one line; return the line."""
    code, out, err = run(capsys, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("survscore: ")
    assert err[:-1].isprintable()
    return err
