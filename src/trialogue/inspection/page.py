"""HTML pages of an inspection, and of a comparison of several inspections.

Equal records yield byte-identical pages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from trialogue.display.figures import render_figure
from trialogue.display.html import embed_svg, make_environment, text_to_html
from trialogue.display.numbers import ABSENT
from trialogue.display.terminal import console, grid
from trialogue.inspection.conclusions import (
    CHANGE_RULE,
    CONTROL,
    describe_change,
    describe_conclusion,
    format_point,
    main_quantity,
)
from trialogue.inspection.measures.measure import CONTROL_MODELS
from trialogue.inspection.measures.quantities import Quantity
from trialogue.inspection.picture import Series, curve_figures, step_figure

if TYPE_CHECKING:
    import matplotlib.figure


def render_inspection(record: Mapping[str, Any]) -> str:
    """Render the HTML page of one inspection.

    Args:
        record: Content of `inspection.json`.

    Returns:
        A complete HTML document.
    """
    sections = []
    for name, measure in record["measures"].items():
        control = read_series({CONTROL: measure["control"]}, quiet=True) if measure["control"] else []
        series = read_series({_heading(record, one): one["quantities"] for one in measure["checkpoints"]})
        shown = series if len(series) == 1 else [series[0], series[-1]]
        figures = _svgs(f"{name}-curves", curve_figures([*shown, *control], measure["logarithmic"]))
        found = [(step, quantity) for step, quantity in _main_by_step(name, measure, series) if quantity]
        if len(found) > 1:
            steps, quantities = zip(*found, strict=True)
            other = main_quantity(name, control[0]) if control else None
            figures = _svgs(f"{name}-steps", [step_figure(steps, quantities, other)]) + figures
        tokens, seconds = (sum(one[key] for one in measure["checkpoints"]) for key in ("tokens", "seconds"))
        section = _section(
            name, measure, [*shown, *control], figures, f"{seconds:.0f} s, about {tokens:,} tokens (estimate)"
        )
        by_step = make_step_table(name, [*series, *control]) if len(series) > 1 else None
        section["all_headings"], section["rows"] = make_table([*series, *control])
        sections.append(section | {"summary": describe_measure(name, series, control), "by_step": by_step})
    facts = {"model": model_name(record), "kind": record["kind"], **_facts(record)}
    return _render(f"What {facts['model']} has learned", facts, sections, record["refused"])


def _main_by_step(
    name: str, measure: Mapping[str, Any], series: Sequence[Series]
) -> Iterable[tuple[int, Quantity | None]]:
    """Return the step and the most important quantity of each checkpoint."""
    steps = (one["step"] for one in measure["checkpoints"])
    return zip(steps, (main_quantity(name, one) for one in series), strict=True)


def describe_measure(name: str, series: Sequence[Series], control: Sequence[Series]) -> list[str]:
    """Return the conclusions about a measure: one about the last checkpoint, and one about the change if there is any.

    Args:
        name: Name of the measure.
        series: Results of the model, one per checkpoint.
        control: Results for random weights. Empty if there are none.
    """
    last = describe_conclusion(name, series[-1], control[0] if control else None).split("\n")
    if len(series) == 1:
        return last
    change = describe_change(name, series, is_training=True)
    return [change, *(f"At {series[-1].name}: {sentences}" for sentences in last)]


def make_step_table(name: str, columns: Sequence[Series]) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Return the headings and rows of a table of the most important quantity, with one row per checkpoint.

    Args:
        name: Name of the measure.
        columns: Results of the checkpoints, and of random weights if there are any.
    """
    found = {one.name: quantity for one in columns if (quantity := main_quantity(name, one))}
    labels = dict.fromkeys(
        one.point_label(one.points[-1]) + (f" ({one.unit})" if one.unit else "") for one in found.values()
    )
    return ["; ".join(labels)], [(head, [format_point(one.points[-1])]) for head, one in found.items()]


def render_comparison(records: Mapping[str, Mapping[str, Any]], *, control: bool = False) -> str:
    """Render the HTML page that compares the inspections of several models.

    Args:
        records: Contents of the files `inspection.json`, by the name of the model.
        control: Whether to include the results for random weights.

    Returns:
        A complete HTML document.
    """
    sections = []
    changes = compare_changes(records)
    for name, columns in compare_results(records, control=control).items():
        measure = next(record["measures"][name] for record in records.values() if name in record["measures"])
        figures = _svgs(f"{name}-curves", curve_figures(columns, measure["logarithmic"]))
        section = _section(name, measure, columns, figures)
        sections.append(section | {"summary": changes[name], "by_step": None})
    first = next(iter(records.values()))
    refused = {
        f"{name} of {model}": reason
        for model, record in records.items()
        for name, reason in record["refused"].items()
    }
    facts = {"models": ", ".join(records), **_facts(first)}
    return _render("Comparison of inspections", facts, sections, refused)


def compare_changes(records: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the conclusions of a comparison by measure.

    Each training run has a sentence about the change from its first checkpoint to the last one. Another sentence is
    about the change from the first model to the last one.

    Args:
        records: Contents of the files `inspection.json`, by the name of the model.
    """
    found = {}
    for name, columns in compare_results(records).items():
        sentences = []
        for model, record in records.items():
            checkpoints = record["measures"].get(name, {}).get("checkpoints", ())
            if len(checkpoints) > 1:
                series = read_series({f"step {one['step']}": one["quantities"] for one in checkpoints})
                sentences.append(f"{model}: {describe_change(name, series, is_training=True)}")
        found[name] = [*sentences, describe_change(name, columns)]
    return found


def compare_results(
    records: Mapping[str, Mapping[str, Any]], *, control: bool = False
) -> dict[str, list[Series]]:
    """Return the results of the last checkpoint of each model, grouped by measure.

    Args:
        records: Contents of the files `inspection.json`, by the name of the model.
        control: Whether to append the results for random weights.

    Returns:
        For each measure, by name, the quantities of each model that has results.
    """
    found: dict[str, list[Series]] = {}
    for name in dict.fromkeys(name for record in records.values() for name in record["measures"]):
        measured = {
            model: record["measures"][name] for model, record in records.items() if name in record["measures"]
        }
        lasts = {model: one["checkpoints"][-1] for model, one in measured.items()}
        columns = read_series(
            {
                model if last["step"] is None else f"{model}, step {last['step']}": last["quantities"]
                for model, last in lasts.items()
            }
        )
        controls = {
            f"{model}, {CONTROL}": one["control"] for model, one in measured.items() if one.get("control")
        }
        found[name] = columns + (read_series(controls, quiet=True) if control else [])
    return found


def read_series(
    quantities: Mapping[str, Sequence[Mapping[str, Any]]], *, quiet: bool = False
) -> list[Series]:
    """Convert quantities from JSON values to `Series`.

    Args:
        quantities: For each model or checkpoint, by name, the results of `Quantity.record`.
        quiet: Whether the results are controls, which are drawn in grey.

    Returns:
        One series of quantities per name.
    """
    return [
        Series(name, [Quantity.read(dict(one)) for one in found], quiet) for name, found in quantities.items()
    ]


def describe_intervals(*, has_control: bool) -> str:
    """Return the explanation of all intervals, and of random weights if they were measured.

    Args:
        has_control: Whether the results include random weights.
    """
    intervals = (
        "[a, b] is the 95 % confidence interval. The estimate is often not in its middle, for example if it is a "
        "fraction near 0 or 1."
    )
    if not has_control:
        return intervals
    return (
        f"{intervals} Random weights are {CONTROL_MODELS} models of the same architecture without training. Their "
        "value is the median, and their interval contains the intervals of all of them. If it does not overlap with "
        "the interval of the model, the difference is unlikely to be chance."
    )


def model_name(record: Mapping[str, Any]) -> str:
    """Return the name of the inspected model, without the folders of a path.

    Args:
        record: Content of `inspection.json`.
    """
    model = str(record["model"])
    return Path(model).name or model if Path(model).exists() else model


def make_table(
    columns: Sequence[Series], *, every: bool = True
) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Return the headings and rows of a table of quantities, as texts.

    A single number takes one row. A curve takes one row per point, or one row in total.

    Args:
        columns: Quantities of one model per column.
        every: If True, the table has all points of a curve. Otherwise it has one point per curve, unless the curve
            lists its points. This is the last position at which all columns with this curve have a point. If there is
            none, it is the last point of each column.

    Returns:
        A list of column headings, and a list of rows. Each row has a label and one text per column.
    """
    cells: dict[str, dict[str, str]] = {}
    shared = _shared_positions(columns)
    for column in columns:
        for quantity in column.quantities:
            common = shared[_curve_key(quantity)]
            last = [point for point in quantity.points if point.at in common or not common][-1:]
            for point in quantity.points if every or quantity.lists_points else last:
                name = quantity.point_label(point) + (f" ({quantity.unit})" if quantity.unit else "")
                cells.setdefault(name, {})[column.name] = format_point(point)
    headings = [column.name for column in columns]
    rows = [(name, [row.get(heading, ABSENT) for heading in headings]) for name, row in cells.items()]
    return headings, rows


def print_tables(columns: Mapping[str, Sequence[Series]]) -> None:
    """Print tables of quantities to the terminal, with a single point of each curve, unless it lists all.

    Args:
        columns: For each table, by title, the quantities of one model per column.
    """
    out = console()
    for title, series in columns.items():
        headings, rows = make_table(series, every=False)
        out.print(grid(title, ("", *headings), [(label, *cells) for label, cells in rows]))


def _section(
    name: str,
    measure: Mapping[str, Any],
    columns: Sequence[Series],
    figures: Sequence[Markup],
    cost: str = "",
) -> dict[str, Any]:
    """Return the variables of the page template for one measure, without its conclusions."""
    headings, rows = make_table(columns)
    return {
        "name": name,
        "question": measure["question"],
        "reading": measure["reading"],
        "cost": cost,
        "figures": figures,
        "headings": headings,
        "all_headings": headings,
        "headline_rows": make_table(columns, every=False)[1],
        "rows": rows,
    }


def _curve_key(quantity: Quantity) -> tuple[str, str, str]:
    return quantity.name, quantity.along, quantity.unit


def _shared_positions(columns: Sequence[Series]) -> dict[tuple[str, str, str], set[float | None]]:
    """Return the positions at which all columns with a curve have a point, by curve."""
    shared: dict[tuple[str, str, str], set[float | None]] = {}
    for column in columns:
        for quantity in column.quantities:
            positions = {point.at for point in quantity.points}
            shared[_curve_key(quantity)] = shared.get(_curve_key(quantity), positions) & positions
    return shared


def _heading(record: Mapping[str, Any], checkpoint: Mapping[str, Any]) -> str:
    return model_name(record) if checkpoint["step"] is None else f"step {checkpoint['step']}"


def _facts(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of an inspection, with the names of its files."""
    settings, names = record["settings"], record.get("material", {})
    # A record of an earlier version has no names.
    given = {name: names.get(name) or "given" for name in ("text", "clones") if settings[name]}
    return {**{name: settings[name] for name in ("effort", "seed", "dtype")}, **given}


def _svgs(name: str, drawings: Sequence[Callable[[], matplotlib.figure.Figure]]) -> list[Markup]:
    names = [f"{name}-{index}" for index in range(len(drawings))]
    return [
        embed_svg(render_figure(draw, "svg", own).decode(), own)
        for own, draw in zip(names, drawings, strict=True)
    ]


def _render(
    title: str, facts: Mapping[str, Any], sections: Sequence[Mapping[str, Any]], refused: Mapping[str, str]
) -> str:
    template = make_environment("trialogue.inspection").get_template("inspection.html.jinja")
    reasons = {name: text_to_html(reason) for name, reason in refused.items()}
    return template.render(
        title=title,
        facts=facts,
        sections=sections,
        refused=reasons,
        change_rule=CHANGE_RULE,
        intervals=describe_intervals(has_control="kind" in facts),
    )
