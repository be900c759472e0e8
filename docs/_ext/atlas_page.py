"""What the page on real data shows of the files of one run, made when the pages are built: tables, plots, sentences."""

from pathlib import Path

from survscore._utils.dates import plural_word
from survscore.paper.atlas.models import FAMILIES, RECIPES, listed
from survscore.paper.atlas.page import as_table, closing_table, family_table, forest, records, set_table
from survscore.paper.atlas.results import ALL, NEITHER, SCORES, Atlas, halves_of, percent, three_shares
from survscore.paper.atlas.scores import ADMINISTRATIVE, KAPLAN_MEIER, PROJECTED
from survscore.plots import COLUMN

#: Sets with fewer individuals on each day have halves of few dozens.
FEWEST = 100
#: Choices that are worse than the best by more than this are costly.
COSTLY = 0.05
#: What is said of the models that treat the censored so.
TREATED = {
    "modelled": "part of the likelihood, or of the risk sets",
    "dropped": "dropped, though those with an earlier event stay: this leaks C*",
    "event-free": "treated as event-free",
    "outside": "left out, as all whose C* is before the horizon",
}


def about_table(atlas):
    """Return what the sets are."""
    return as_table(
        {
            "set": row["set"],
            "event, since": f"{row['event']}, since {row['start']}",
            **({"causes": row["causes"]} if atlas.by_cause else {}),
            "individuals": str(row["n"]) if row["n"] == row["n_all"] else f"{row['n']} of {row['n_all']}",
            **({} if atlas.by_cause else {"events": row["n_events"]}),
            "lost": row["n_lost"],
            **({} if atlas.by_cause else _dates(row)),
        }
        for row in records(atlas.about)
    )


def _dates(row):
    return {
        "data cut-off": row["closing_date"],
        "horizons": f"{row['horizons']} {plural_word(row['unit'])}",
        "licence": row["licence"],
    }


def hidden_table(atlas):
    """Return how often two scores contradict each other significantly, by the share of statuses that are hidden."""
    rows = atlas.hidden
    return as_table(
        {
            "status hidden": f"{100 * row['from']:.0f} to {100 * row['to']:.0f} %",
            "sets": row["sets"],
            "horizons": row["horizons"],
            "pairs": row["n_pairs"],
            "that differ": percent(row["differ"]) if row["n_pairs"] else "",
            "significant and opposite": percent(row["opposite_and_sure"]) if row["n_pairs"] else "",
        }
        for row in records(rows[rows["against"] == KAPLAN_MEIER])
    )


def model_table(atlas):
    """Return what scores said of each model on earlier days beside the truth, means over sets; the best first."""
    means = atlas.models.groupby(["model", "score"], sort=False)[["said", "truth"]].mean()
    by_model = {}
    for row in records(means.reset_index()):
        by_model.setdefault(row["model"], {"in truth": row["truth"]})[row["score"]] = row["said"]
    return as_table(
        {"model": name}
        | {f"{score} said": f"{100 * one[score]:+.0f} %" for score in SCORES}
        | {"in truth": f"{100 * one['in truth']:+.0f} %"}
        for name, one in sorted(by_model.items(), key=lambda item: item[1]["in truth"])
    )


def recommendation_table(atlas):
    """Return how often the recommendation decided between two models, and how often wrongly, by family of models."""
    of = {"all": "all", "halves": "one half, judged by the other"}
    return as_table(
        {
            "models": row["family"],
            "individuals": of[row["individuals"]],
            "pairs": row["n_pairs"],
            "decided": percent(row["decided"]),
            "of these in the true order": f"{100 * row['ordered']:.1f} %",
            "significant in truth, too": row["n_settled"],
            "of these in the other order": f"{row['n_wrong']} ({percent(row['wrong'])})",
        }
        for row in records(atlas.recommended)
    )


def recipe_table(atlas):
    """Return the list of models, without those whose package was not there."""
    return as_table(
        {"model": one.name, "those censored before the horizon": TREATED[one.censored]}
        for one in RECIPES
        if one.name in atlas.settings["models"]
    )


# Sentences


def small_sets(atlas):
    """How many pairs are in order on halves without the smallest sets."""
    largest = atlas.backtests.groupby("set")["n"].max()
    small = list(largest.index[largest < FEWEST])
    halves = halves_of(atlas.backtests[~atlas.backtests["set"].isin(small)])
    everyone = three_shares(lambda score: halves[ALL, score]["half_ordered"])
    strict = three_shares(lambda score: halves[NEITHER, score]["half_ordered"])
    return (
        f"Without {', '.join(small)}, where halves have fewer than {FEWEST // 2} individuals, {everyone} of pairs are "
        f"in order among all models, and {strict} among those that neither drop the censored nor use the date of entry."
    )


def significant(atlas):
    """How often differences are significant both by a score and in truth, and how often these contradict."""
    runs = atlas.backtests[atlas.backtests["family"] == ALL]
    sums = runs.groupby("score")[["n_pairs", "n_settled", "n_wrong"]].sum()
    settled, wrong = sums["n_settled"] / sums["n_pairs"], sums["n_wrong"] / sums["n_settled"]
    return (
        f"Of {int(sums['n_pairs'][PROJECTED])} pairs of models on all days and horizons, the difference by the "
        "projected, the administrative and the IPCW score is significant, and that in truth too, for "
        f"{three_shares(settled.get)}; of these, {three_shares(wrong.get)} have opposite signs."
    )


def leaks(atlas):
    """What the scores said of the models that leak most, and what they were worth."""
    names = [one.name for one in listed(by_cause=atlas.by_cause) if one.entry and one.recipe.censored == "dropped"]
    some = atlas.models[atlas.models["model"].isin(names)]
    said, null = some.groupby("score")["said"].mean(), "Aalen-Johansen" if atlas.by_cause else "Kaplan-Meier"
    told = {name: f"{percent(abs(share))} {'worse' if share > 0 else 'better'} than" for name, share in said.items()}
    truth = some["truth"].mean()
    return (
        f"Models that drop the censored and use the date of entry were {told[PROJECTED]} {null} by the projected "
        f"score, {told[ADMINISTRATIVE]} it by the administrative score, {told[KAPLAN_MEIER]} it by IPCW, and "
        f"{percent(abs(truth))} {'worse' if truth > 0 else 'better'} than it in truth (Brier scores, means over sets "
        f"and {some['model'].nunique()} models)."
    )


def costly(atlas):
    """For how many causes the choices of each score are costly."""
    runs = atlas.backtests[atlas.backtests["family"] == ALL]
    regret = runs.groupby(["set", "cause", "score"])["relative_regret"].mean()
    above = (regret > COSTLY).groupby("score").sum()
    return (
        "Among all models, the choices of the projected, the administrative and the IPCW score are on average more "
        f"than {percent(COSTLY)} worse than the best for {above[PROJECTED]}, {above[ADMINISTRATIVE]} and "
        f"{above[KAPLAN_MEIER]} of {len(regret) // len(SCORES)} causes."
    )


def ahead(atlas, family):
    """Return in which sets, or causes, other scores ordered more pairs of models as in truth than the projected one."""
    runs = atlas.backtests[atlas.backtests["family"] == family]
    by, of = (["set", "cause"], "causes") if atlas.by_cause else (["set"], "sets")
    ordered = runs.groupby([*by, "score"])["ordered"].mean().unstack()
    parts = []
    for score in (ADMINISTRATIVE, KAPLAN_MEIER):
        more = ordered.index[ordered[score] > ordered[PROJECTED]]
        names = [f"{one[1]} in {one[0]}" if atlas.by_cause else one for one in more]
        parts.append(f"{score} for {len(more)} of {len(ordered)} {of}" + f" ({', '.join(names)})" * bool(names))
    return f"More pairs in order than by the projected score: {'; '.join(parts)}."


def ipcw_ahead(atlas, family):
    """Return in which sets IPCW ordered more pairs of models as in truth than the administrative score."""
    rows = atlas.sets[(atlas.sets["family"] == family) & (atlas.sets["score"] == KAPLAN_MEIER)]
    fewer, clear = rows[rows["gain"] < 0], rows[rows["gain_upper"] < 0]
    names = f": {', '.join(fewer['set'])}" if len(fewer) else ""
    clearly = f"significantly in {', '.join(clear['set']) if len(clear) else 'none'}"
    return (
        f"IPCW put more pairs in order than the administrative score in {len(fewer)} of {len(rows)} sets{names}, "
        f"{clearly}."
    )


def _listed(sentence, atlas):
    return "\n".join(f"- Models: {family}. {sentence(atlas, family)}" for family in FAMILIES)


def _lines(atlas):
    return "\n".join(f"| {sentence}" for sentence in atlas.sentences)


#: What the page shows, by file: of the run, and of that by cause.
TABLES = {
    "about": about_table,
    "closing": closing_table,
    "hidden": hidden_table,
    "families": family_table,
    "models": model_table,
    "recipes": recipe_table,
    "recommendations": recommendation_table,
    "sets-all": set_table,
    "sets-neither": lambda atlas: set_table(atlas, NEITHER),
}
CAUSE_TABLES = {
    "causes-about": about_table,
    "causes-families": family_table,
    "causes-models": model_table,
    "causes-sets": set_table,
}
WORDS = {
    "ahead": lambda atlas: _listed(ahead, atlas),
    "ipcw-ahead": lambda atlas: _listed(ipcw_ahead, atlas),
    "leaks": leaks,
    "significant": significant,
    "small-sets": small_sets,
}
CAUSE_WORDS = {
    "causes-ahead": lambda atlas: f"{ahead(atlas, ALL)} {costly(atlas)}",
    "causes-leaks": leaks,
    "causes-sentences": _lines,
}


def write_page(source, target):
    """Write the tables, the plots and the sentences of the page, from the files of a run, and of one by cause."""
    target.mkdir(parents=True, exist_ok=True)
    atlas, causes = Atlas.read(source), Atlas.read(source, by_cause=True)
    for found, tables, words in ((atlas, TABLES, WORDS), (causes, CAUSE_TABLES, CAUSE_WORDS)):
        for name, table in tables.items():
            table(found).to_csv(target / f"{name}.csv", index=False)
        for name, sentence in words.items():
            (target / f"{name}.inc").write_text(sentence(found) + "\n", encoding="utf-8")
    forest(atlas, target / "forest.svg")
    forest(atlas, target / "forest-narrow.svg", width=COLUMN)


def _write(app):
    source = Path(app.srcdir)
    write_page(source / "atlas", source / "atlas_page")


def setup(app):
    """Make them before the pages are read."""
    app.connect("builder-inited", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
