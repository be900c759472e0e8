"""Rules: what they mean by default, and that nothing but InputError comes of wrong ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import survscore as ss
from combinations import examples
from survscore.checks import example, parse_rules, read_rules
from survscore.checks.rules import KEYS, VALUES


def rule(**keys):
    return parse_rules({"check": [keys]})[0]


def test_defaults():
    found = rule(below=0.2)
    assert (found.value, found.model, found.metric, found.segment) == ("score", None, None, "total")
    assert (found.severity, found.label) == ("error", "check 1")
    assert rule(reference="old", below=0).value == "difference"
    assert rule(reference="old").worse_by == 0
    assert rule(reference="old", worse_by=0.1).value == "difference-lower"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"belw": 1}, "unknown key 'belw'; did you mean 'below'?"),
        ({"below": "1"}, "below must be a number"),
        ({"below": float("nan")}, "below must be a number, not nan"),
        ({"below": 10**400}, "below must be a number"),
        ({"below": 0, "above": 1}, "above must be smaller than below"),
        ({"below": 1, "worse_by": 1, "reference": "old"}, "excludes below and above"),
        ({"value": "leak", "below": 1}, "takes no below"),
        ({"value": "leak", "reference": "old"}, "has no use for a reference"),
        ({"value": "recommendation"}, "needs a reference"),
        ({"value": "hazard-ratio"}, "says no threshold"),
        ({}, "says no threshold"),
        ({"below": 1, "value": "median"}, "value must be one of"),
        ({"worse_by": 1}, "'difference-lower' needs a reference"),
        ({"worse_by": -1, "reference": "old"}, "worse_by must be a number, zero or larger"),
        ({"below": 1, "value": "upper", "reference": "old"}, "value = 'upper' has no use for a reference"),
        ({"below": 1, "at": 3, "range": [0, 5]}, "at and range exclude each other"),
        ({"below": 1, "at": -3}, "at must be a number, zero or larger"),
        ({"below": 1, "range": [5, 0]}, "must go up"),
        ({"below": 1, "severity": "fatal"}, "severity must be one of 'error', 'warning'"),
        ({"below": 1, "model": []}, "model must be a text, or a list of texts, that is not empty"),
        (
            {"value": "recommendation", "reference": "last"},
            "is compared with a model of the results, with nothing else",
        ),
        (
            {"value": "hazard-ratio", "reference": "old", "below": 2},
            "is compared with the 'last' run, with nothing else",
        ),
        ({"below": 1, "model": [3]}, "model must be a text"),
        ({"below": 1, "segment": "all"}, "segment must be one of 'total', 'each'"),
        ({"reference": {"model": "old"}}, "reference must be a text"),
        ({"below": 1, "name": 3}, "name must be a text"),
    ],
)
def test_wrong_rules_are_refused_in_one_line(keys, message):
    with pytest.raises(ss.InputError) as caught:
        parse_rules({"check": [{"below": 1.0}, keys]})
    assert str(caught.value).startswith("check 2")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_message_names_the_check_and_the_file(tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text('[[check]]\nname = "not\\nworse"\nbelo = 3\n')
    with pytest.raises(ss.InputError, match=r"rules.toml: check 1 \('not\\\\nworse'\): unknown key 'belo'"):
        read_rules(path)
    for text, message in (
        ("[[check]\n", "is not TOML"),
        ("", "at least one"),
        ("check = 3", "at least one"),
        ("a = " + "[" * 5000, "not TOML"),
        ("a = " + "9" * 5000, "not TOML"),
        ("[[checks]]\nbelow = 1", "unknown key 'checks'"),
    ):
        path.write_text(text)
        with pytest.raises(ss.InputError, match=message):
            read_rules(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ss.InputError, match="is not TOML"):
        read_rules(path)
    with pytest.raises(ss.InputError, match="--init"):
        read_rules(tmp_path / "absent.toml")
    with pytest.raises(ss.InputError, match="is a folder"):
        read_rules(tmp_path)


def test_the_example_is_right_also_where_it_is_commented_out(tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text(example())
    assert len(read_rules(path)) == 2
    keys = ("# [[", *(f"# {key} =" for key in KEYS))
    lines = [line[2:] if line.startswith(keys) else line for line in example().splitlines()]
    path.write_text("\n".join(lines))
    assert len(read_rules(path)) == 11


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.dates(), st.datetimes(), st.times(),
    st.sampled_from([10**400, "last", "total", "each", "error", *VALUES]),
)  # fmt: skip
ANYTHING = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)
TABLES = st.dictionaries(st.sampled_from([*KEYS, "other"]), ANYTHING, max_size=6)
LIKELY = st.fixed_dictionaries(
    {"below": st.floats(0, 1)}, optional={key: ANYTHING for key in KEYS if key not in ("below", "above")}
)


@examples(150)
@given(
    st.one_of(
        st.fixed_dictionaries({"check": st.lists(TABLES | LIKELY | ANYTHING, max_size=3)}),
        st.dictionaries(st.sampled_from(["check", "x"]), ANYTHING),
    )
)
def test_whatever_rules_say_only_input_errors_come_of_it(data):
    message = ""
    try:
        rules = parse_rules(data)
    except ss.InputError as error:
        message = str(error)
        rules = ()
    assert bool(message) != bool(rules)
    assert "\n" not in message
    assert [one.number for one in rules] == list(range(1, len(rules) + 1))
