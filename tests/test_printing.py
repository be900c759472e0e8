"""Results as tables: what is printed, how it is rounded, that it fits a terminal, and that names do no harm."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import survscore as ss
from figure_cases import LONG, backtested, calibrated, compared, of, problem, scores, segmented
from survscore.results.latex import as_latex, escaped
from survscore.results.rounding import Number, decimals
from survscore.results.tables import Part, Tables, as_html, as_markdown, as_text

HOSTILE = "<script>alert(1)</script> & $x_i$ | `a` \\ \x1b[31m\n2"

RESULTS = {
    "score": lambda: scores()["truth"],
    "comparison": lambda: compared("administrative"),
    "several": lambda: compared("administrative", "ipcw", gloomy=LONG),
    "hostile": lambda: compared("administrative", gloomy=HOSTILE),
    "means": lambda: compared("administrative", "ipcw").integrated(4, 80),
    "calibration": lambda: calibrated("gloomy"),
    "distribution": lambda: ss.distribution_calibration(*of("gloomy")),
    "decisions": lambda: ss.decision_curve(*problem(), 48.0),
    "backtest": backtested,
    "table": lambda: ss.score_table(*problem(), horizons=[24, 48], weighting="administrative", metric=["brier", "oe"]),
    "segments": segmented,
    "segments' means": lambda: segmented().integrated(nan="stop"),
}


@pytest.fixture(params=RESULTS)
def result(request):
    return RESULTS[request.param]()


# All of them


def test_it_fits_a_terminal(result):
    for width in (60, 80, 120):
        lines = result.to_text(width).splitlines()
        assert len(lines) > 4
        assert max(map(len, lines)) <= width, max(lines, key=len)
    assert str(result) == result.to_text(80)
    assert "\x1b" not in str(result)


def test_it_is_html_latex_and_markdown(result):
    page, latex, markdown = result.to_html(), result.to_latex(), result.to_markdown()
    assert result._repr_html_() == page
    assert page.count("<tr>") == page.count("</tr>") > 2
    assert "<script" not in page
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") > 0
    body = re.findall(r"\\midrule\n(.*?)\n\\bottomrule", latex, flags=re.DOTALL)[0].splitlines()
    columns = re.findall(r"begin\{tabular\}\{@\{\}(\w+)@\{\}\}", latex)[0]
    cells = [line for line in body if "multicolumn" not in line]
    assert {len(re.findall(r"(?<!\\)&", line)) for line in cells} == {len(columns) - 1}
    assert all(not re.search(r"(?<![\\$])-\d", line) for line in body if "<script>" not in line)
    rows = [line for line in markdown.splitlines() if line.startswith("|")]
    assert all(line.endswith(" |") for line in rows)


# Numbers


@given(value=st.floats(-100, 100), se=st.floats(1e-4, 10), shift=st.floats(0, 5), sign=st.sampled_from(["", "+"]))
def test_a_number_is_what_it_says(value, se, shift, sign):
    places = decimals([se])
    number = Number(value, value - shift, value + shift, decimals=places, sign=sign)
    found = [float(part) for part in re.findall(r"-?[\d.]+", str(number))]
    np.testing.assert_allclose(found, [value, value - shift, value + shift], atol=0.5000001 * 10.0**-places)
    assert "-0.00 " not in f"{str(number).replace(',', ' ')} "
    assert abs(found[0] - value) <= 0.06 * se  # nothing that the error supports is lost


def test_what_is_printed_is_what_is_computed():
    result = compared("administrative")
    table = result.integrated(nan="stop").contrasts.set_index("model")
    line = next(line for line in str(result).splitlines() if "gloomy" in line)
    found = [float(part) for part in re.findall(r"[-+]?\d+\.\d+", line)]
    row = table.loc["gloomy"]
    np.testing.assert_allclose(found[3:6], row[["difference", "lower", "upper"]].astype(float), atol=6e-5)
    assert line.endswith(row["verdict"])
    score = scores()["truth"]
    told = re.search(r"mean over 2 to 96: ([\d.]+) \(([\d.]+), ([\d.]+)\)", str(score)).groups()
    mean = score.integrated()
    np.testing.assert_allclose([float(one) for one in told], [mean.value, mean.lower, mean.upper], atol=6e-5)
    first = next(line for line in str(score).splitlines() if line.strip().startswith("2 "))
    assert first.split()[-2:] == [f"{score.n_counted[0]:,.0f}", f"{score.n_events[0]:,.0f}"]


# What has nothing to show


def test_scores_that_are_nowhere_defined_or_have_no_error():
    y, curves = ss.Outcomes([1, 2, 3], [1, 0, 1], [4, 2, 5]), ss.SurvivalCurves([[0.9, 0.5]] * 3, [1, 2])
    with pytest.warns(ss.UndefinedScoreWarning):
        nothing = ss.brier_score(y, curves, weighting="administrative", times=[6, 7])
    assert "no score at 2 times" in str(nothing)
    few = ss.brier_score(y, curves, weighting="administrative", times=[1, 2])
    assert "? too few events for a reliable interval" in str(few)


# Tables of any cells


def test_names_are_escaped():
    part = Part(HOSTILE, ("", HOSTILE), [(HOSTILE, Number(-0.5, decimals=1))], (HOSTILE,), "lr")
    tables = Tables(HOSTILE, [part])
    page = as_html(tables)
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 5
    lexed(as_latex(tables))
    assert "$-$0.5" in as_latex(tables)
    assert not re.search(r"(?<!\\)[<`]script", as_markdown(tables).replace("| <script", ""))


#: What may stand in LaTeX: text of signs that OT1 and T1 have, commands, and signs of mathematics.
TEXT = re.compile(
    r"""(?: [A-Za-z0-9 \n.,:;!?'`()\[\]/*@+=~&-] | [{}] | [–—‘’“”†‡…] | (?![«»ÐÞðþĄąĐđĘęĦħĮįĸĿŀŉŊŋŦŧŲų])[¡-ž]
    | \\width[>] | \\[a-zA-Z]+ | \\[%#_&${}\\] | [%]\n | \$(?:[-<>|]|\\[A-Za-z]+)\$ )*""",
    re.VERBOSE,
)


def lexed(source):
    """Hold every character of LaTeX against those that both encodings have, and count braces and dollars."""
    match = TEXT.match(source)
    assert match.end() == len(source), source[max(match.end() - 20, 0) : match.end() + 20]
    bare = re.sub(r"\\[%#_&${}\\]", "", source)
    depth = 0
    for sign in re.findall("[{}]", bare):
        depth += 1 if sign == "{" else -1
        assert depth >= 0
    assert depth == 0
    assert bare.count("$") % 2 == 0
    assert not re.search(r"---?-|,,|<<|>>|[!?]`", bare.replace("$", "$ "))


@given(st.text(max_size=60))
def test_any_text_is_latex_of_signs_that_both_encodings_have(text):
    lexed(escaped(text))


def test_signs_that_mean_something_in_latex_are_written_as_they_are():
    assert escaped("p <0.001 | 50 % & $x_i$ {a} #1 ~^\\") == (
        r"p $<$0.001 $|$ 50 \% \& \$x\_i\$ \{a\} \#1 \textasciitilde{}\textasciicircum{}\textbackslash{}"
    )
    assert escaped("Łódź, Søn, naïve, ßα≥×−") == (r"Łódź, Søn, naïve, ß$\alpha$$\geq$×$-$")
    assert escaped('a--b ,, ?` "中') == "a-{}-b ,{}, ?{}` ''[U+4E2D]"
    assert escaped("one\ntwo\x1b") == "one two[U+001B]"


def test_latex_of_results_is_of_these_signs(result):
    lexed(result.to_latex(caption=HOSTILE, label="tab:a", notes=[HOSTILE]))
    assert r"\label{tab:a" in result.to_latex(label="tab:a")
    with pytest.raises(ss.InputError, match="label must be letters"):
        result.to_latex(label="}")


def rows_of_latex(latex):
    """Return the names and the numbers of rows."""
    lines = [line.removesuffix(r" \\").split(" & ") for line in latex.splitlines() if "addlinespace" in line]
    return {line[0].removeprefix(r"\addlinespace[2pt] "): line[1:] for line in lines}


def test_models_by_metrics_is_a_small_table_with_the_best_in_bold():
    table = ss.score_table(
        *problem(), horizons=[48], weighting="administrative", metric=["brier", "auc", "oe", "slope"]
    )
    latex = table.to_latex(layout="models x metrics", best=True, unit="M", caption="Scores", label="tab:s")
    lexed(latex)
    assert latex.count(r"\begin{tabular}") == 1
    assert r"\caption{Scores; at 48 months; administrative}" in latex
    assert "Bold: the best of each column and block." in latex
    rows = rows_of_latex(latex)
    assert list(rows) == ["truth", "gloomy", "leaking", "Kaplan-Meier"]
    frame = table.to_frame().pivot(index="model", columns="metric", values="estimate")
    best = {"brier": frame.brier.idxmin(), "auc": frame.auc.idxmax(), "oe": (frame.oe - 1).abs().idxmin()}
    for column, (metric, model) in enumerate(best.items()):
        assert rows[model][column].startswith(r"\textbf{"), metric
        value = float(rows[model][column].removeprefix(r"\textbf{").removesuffix("}"))
        assert value == pytest.approx(frame.loc[model, metric], abs=6e-3)
        others = [rows[name][column] for name in rows if name != model and rows[name][column] != rows[model][column]]
        assert others
        assert not any("textbf" in cell for cell in others)


def test_one_metric_without_a_mean_leaves_the_others():
    y, models = problem()
    asked = {"weighting": "administrative", "times": [0, 20, 40]}
    with pytest.warns(ss.UndefinedScoreWarning):
        result = ss.compare(y, models, metric=["brier", "auc"], **asked)
    for nan in ("raise", "stop"):
        with pytest.warns(ss.UndefinedScoreWarning, match="auc has no mean"):
            table = result.integrated(nan=nan).scores
        assert table.groupby("metric")["score"].count().to_dict() == {"auc": 0, "brier": len(result.models)}


@settings(max_examples=40)
@given(
    names=st.lists(st.text("abc de", min_size=1, max_size=60), min_size=1, max_size=4),
    values=st.lists(st.floats(-1e4, 1e4), min_size=4, max_size=4),
    places=st.integers(0, 6),
    width=st.integers(60, 140),
)
def test_any_table_fits_and_loses_no_number(names, values, places, width):
    rows = [
        (names[0] if k == 0 else "", name, *(Number(v, v, v, decimals=places) for v in values[:2]), "worse")
        for k, name in enumerate(names)
    ]
    part = Part("title", ("", "", "one", "other", ""), rows, (), "llrrl", split=3)
    text = as_text(Tables("", [part]), width)
    assert max(map(len, text.splitlines())) <= width
    for value in values[:2]:
        assert text.count(f"{value:z.{places}f}") >= len(rows)
