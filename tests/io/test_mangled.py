"""Whatever a file holds, the command line answers in one line or with a result, and never leaves half a file."""

import numpy as np
import pytest

import mangling
from survscore import cli

TARGETS = {"score": ("--csv", "out.csv"), "compare": ("--json", "out.json"), "report": ("-o", "out.html")}
N_FILES = {"score": 150, "compare": 30, "report": 15}


def run(*arguments):
    try:
        cli.main([str(one) for one in arguments])
    except SystemExit as stop:
        return stop.code
    return 0


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("command", TARGETS)
def test_mangled_files_are_used_or_refused_in_one_line(capsys, tmp_path, kind, command):
    option, name = TARGETS[command]
    target = tmp_path / name
    codes = []
    for seed in range(N_FILES[command]):
        rng = np.random.default_rng([seed, kind == "csv"])
        files = mangling.write(tmp_path, kind, ids=bool(rng.integers(2)))
        spoilt = files[rng.integers(2)]
        spoilt.write_bytes(mangling.mangle(spoilt.read_bytes(), rng) if seed else spoilt.read_bytes())
        code = run(command, *files, "-w", "administrative", option, target)
        out, err = capsys.readouterr()
        if code:
            assert (code, out) == (2, ""), seed
            assert err.startswith("survscore: "), seed
            assert err.count("\n") == 1, seed
        assert target.exists() == (code == 0), seed
        target.unlink(missing_ok=True)
        assert sorted(tmp_path.iterdir()) == sorted(files), seed
        codes.append(code)
    assert codes[0] == 0  # this one was left as it was
    assert codes.count(2) > len(codes) // 2
