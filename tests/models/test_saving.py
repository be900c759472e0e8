"""Models in files: the same predictions afterwards, and nothing else than that."""

import json
import pickle
import struct

import numpy as np
import pytest
import safetensors.numpy
from torch import nn

import survscore as ss
from survscore.models import BCESurvival, LogisticHazard, load

QUICK = {"n_times": 6, "width": 4, "n_layers": 2, "epochs": 2, "random_state": 0, "device": "cpu"}
SAMPLE = ss.simulate.SineConstantAcceleratingStudy("simple").sample(300, seed=1)
X = SAMPLE.covariates.assign(city=np.where(SAMPLE.outcomes.time > 20, "late", "early"))
Y = SAMPLE.outcomes


def plain_net(n_inputs, n_outputs):
    return nn.Linear(n_inputs, n_outputs)


@pytest.fixture(scope="module")
def fitted():
    return LogisticHazard(**QUICK).fit(X, Y)


@pytest.fixture
def saved(tmp_path, fitted):
    path = tmp_path / "model.safetensors"
    fitted.save(path)
    return path


def rewrite(path, change):
    """Change the JSON of a model file, in place or to the text that is returned, keeping its weights."""
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    described = json.loads(header["__metadata__"]["survscore"])
    header["__metadata__"]["survscore"] = change(described) or json.dumps(described)
    raw = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(raw)) + raw + data[8 + size :])


@pytest.mark.parametrize(
    "model",
    [
        LogisticHazard(**QUICK | {"n_times": 50, "spacing": "quantiles", "interpolation": "constant-hazard"}),
        LogisticHazard(**QUICK | {"times": range(10, 60, 10), "batch_norm": False, "dropout": 0.0}),
        LogisticHazard(**QUICK | {"n_layers": 0, "random_state": np.random.RandomState(0), "preset": "paper"}),
        BCESurvival(**QUICK),
    ],
    ids=["quantiles", "explicit times", "linear", "bce"],
)
def test_predictions_are_the_same(tmp_path, model):
    path = tmp_path / "a model.safetensors"
    model.fit(X, Y).save(path)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    again = load(path)
    assert type(again) is type(model)
    expected, got = model.predict_curves(X), again.predict_curves(X)
    np.testing.assert_array_equal(got.probabilities, expected.probabilities)
    np.testing.assert_array_equal(got.times, expected.times)
    assert got.interpolation == expected.interpolation
    assert again.history_ == model.history_
    again.fit(X, Y)  # all parameters came along


def test_a_censoring_model_stays_one(tmp_path):
    path = tmp_path / "g"
    LogisticHazard(**QUICK).fit_censoring(X, Y).save(path)
    with pytest.raises(ss.InputError, match="censoring distribution"):
        load(path).score(X, Y)


def test_own_net_needs_its_factory(tmp_path):
    path = tmp_path / "own"
    model = LogisticHazard(**QUICK, net=plain_net).fit(X, Y)
    model.save(path)
    with pytest.raises(ss.InputError, match="give its factory as net="):
        load(path)
    np.testing.assert_array_equal(
        load(path, net=plain_net).predict_curves(X).probabilities, model.predict_curves(X).probabilities
    )
    with pytest.raises(ss.InputError, match="damaged: its contents do not fit together"):
        load(path, net=lambda a, b: nn.Linear(a, b, bias=False))


# Files that are not what they should be


class Boom:
    def __reduce__(self):
        return (pytest.fail, ("code in a file was run",))


@pytest.mark.parametrize(
    "contents",
    [b"", pickle.dumps(Boom()), bytes(1000), safetensors.numpy.save({"a": np.zeros(3)})],
    ids=["empty", "pickle", "zeros", "other weights"],
)
def test_foreign_files_are_refused_and_not_run(tmp_path, contents):
    path = tmp_path / "model"
    path.write_bytes(contents)
    with pytest.raises(ss.InputError, match=r"is no model file, or a damaged one|was not saved by survscore"):
        load(path)


@pytest.mark.parametrize("share", [0.01, 0.6, 0.999])
def test_truncated_files_are_refused(saved, share):
    data = saved.read_bytes()
    saved.write_bytes(data[: int(share * len(data))])
    with pytest.raises(ss.InputError, match="is no model file, or a damaged one"):
        load(saved)


UNREADABLE = [("params", [1]), ("model", ["LogisticHazard"]), ("learnt", "all")]
NOT_FITTING = [
    ("params.width", 9),
    ("params.width", 10**12),
    ("params.extra", 1),
    ("learnt.times", [3, 2, 1]),
    ("learnt.times", [1, 2]),
    ("learnt.target", "all"),
    ("learnt.features", None),
    ("learnt.features.names", ["a"]),
    ("learnt.features.columns.0.scale", -1),
    ("learnt.features.columns.0.mean", float("inf")),
    ("learnt.features.columns.-1.levels", ["a", "a"]),
    ("learnt.history", {"epochs": "abc"}),
    ("learnt.causes", [1, 2]),
    ("learnt.causes", ["a", "b"]),
]


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("model", "Pickle", "holds a 'Pickle', which this version does not know"),
        *((*change, "its settings can't be read") for change in UNREADABLE),
        *((*change, "do not fit together") for change in NOT_FITTING),
    ],
)
def test_settings_that_do_not_fit_are_refused(saved, place, value, message):
    def change(described):
        *path, last = [int(name) if name.lstrip("-").isdigit() else name for name in place.split(".")]
        for name in path:
            described = described[name]
        described[last] = value

    rewrite(saved, change)
    with pytest.raises(ss.InputError, match=message):
        load(saved)


def test_weights_that_are_not_numbers_are_refused(tmp_path):
    model = LogisticHazard(**QUICK).fit(X, Y)
    model.net_.body[0].weight.data[0, 0] = np.nan
    model.save(tmp_path / "model")
    with pytest.raises(ss.InputError, match=r"body\.0\.weight holds numbers that are not finite"):
        load(tmp_path / "model")


@pytest.mark.parametrize("dtype", [np.float64, np.int32])
def test_weights_of_another_type_are_refused(saved, dtype):
    with safetensors.safe_open(saved, framework="numpy") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        header = file.metadata()
    arrays["body.0.weight"] = arrays["body.0.weight"].astype(dtype)
    safetensors.numpy.save_file(arrays, saved, metadata=header)
    with pytest.raises(ss.InputError, match=r"body\.0\.weight is torch"):
        load(saved)


def test_deeply_nested_settings_are_refused(saved):
    rewrite(saved, lambda described: "[" * 100_000)
    with pytest.raises(ss.InputError, match="its settings can't be read"):
        load(saved)


def test_what_was_fitted_is_saved_whatever_was_set_since(tmp_path):
    model = LogisticHazard(**QUICK).fit(X, Y)
    expected = model.predict_curves(X).probabilities
    model.set_params(width=99, n_layers=7).save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_curves(X).probabilities, expected)
    assert again.width == 4


def test_another_class_is_refused(saved):
    with pytest.raises(ss.InputError, match="holds a LogisticHazard, not a BCESurvival"):
        BCESurvival.load(saved)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load(saved.parent / "absent")
