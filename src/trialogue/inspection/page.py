"""HTML pages of an inspection, and of a comparison of several inspections.

Equal records yield byte-identical pages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from trialogue.display.figures import render_figure
from trialogue.display.html import embed_svg, make_environment, text_to_html
from trialogue.display.numbers import ABSENT
from trialogue.display.terminal import console, grid
from trialogue.inspection.conclusions import CONTROL, describe_conclusion, format_point
from trialogue.inspection.measures.quantities import Quantity
from trialogue.inspection.picture import Series, curve_figures, step_figures

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
        steps = [one["step"] for one in measure["checkpoints"]]
        if len(steps) > 1:
            figures += _svgs(f"{name}-steps", step_figures(steps, series, control))
        tokens, seconds = (sum(one[key] for one in measure["checkpoints"]) for key in ("tokens", "seconds"))
        cost = f"about {tokens:,} tokens, {seconds:.0f} s"
        section = _section(name, measure, [*shown, *control], figures, cost)
        sections.append(
            section | {"summary": describe_conclusion(name, series[-1], control[0] if control else None)}
        )
    facts = {"model": model_name(record), "kind": record["kind"], **_facts(record)}
    return _render(f"What {facts['model']} has learned", facts, sections, record["refused"])


def render_comparison(records: Mapping[str, Mapping[str, Any]], *, control: bool = False) -> str:
    """Render the HTML page that compares the inspections of several models.

    Args:
        records: Contents of the files `inspection.json`, by the name of the model.
        control: Whether to include the results for random weights.

    Returns:
        A complete HTML document.
    """
    sections = []
    for name, columns in compare_results(records, control=control).items():
        measure = next(record["measures"][name] for record in records.values() if name in record["measures"])
        figures = _svgs(f"{name}-curves", curve_figures(columns, measure["logarithmic"]))
        sections.append(_section(name, measure, columns, figures))
    first = next(iter(records.values()))
    refused = {
        f"{name} of {model}": reason
        for model, record in records.items()
        for name, reason in record["refused"].items()
    }
    facts = {"models": ", ".join(records), **_facts(first)}
    return _render("What models have learned", facts, sections, refused)


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
        columns = read_series(
            {model: one["checkpoints"][-1]["quantities"] for model, one in measured.items()}
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
        every: If True, the table has all points of a curve. Otherwise it has one point per curve. This is the last
            position at which all columns with this curve have a point. If there is none, it is the last point of each
            column.

    Returns:
        A list of column headings, and a list of rows. Each row has a label and one text per column.
    """
    cells: dict[str, dict[str, str]] = {}
    shared = _shared_positions(columns)
    for column in columns:
        for quantity in column.quantities:
            common = shared[_curve_key(quantity)]
            last = [point for point in quantity.points if point.at in common or not common][-1:]
            for point in quantity.points if every else last:
                name = quantity.point_label(point) + (f" ({quantity.unit})" if quantity.unit else "")
                cells.setdefault(name, {})[column.name] = format_point(point)
    headings = [column.name for column in columns]
    rows = [(name, [row.get(heading, ABSENT) for heading in headings]) for name, row in cells.items()]
    return headings, rows


def print_tables(columns: Mapping[str, Sequence[Series]]) -> None:
    """Print tables of quantities to the terminal, with a single point of each curve.

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
    """Return the variables of the page template for one measure, including a summary.

    The summary is the first row of the table without a missing value.
    """
    headings, rows = make_table(columns)
    complete = [row for row in rows if ABSENT not in row[1]]
    summary = [
        f"{label}: {', '.join(f'{heading} {value}' for heading, value in zip(headings, cells, strict=True))}"
        for label, cells in (complete or rows)[:1]
    ]
    return {
        "name": name,
        "question": measure["question"],
        "reading": measure["reading"],
        "cost": cost,
        "figures": figures,
        "headings": headings,
        "headline_rows": make_table(columns, every=False)[1],
        "rows": rows,
        "summary": "".join(summary),
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
    given = {name: names.get(name) or ("given" if settings[name] else "none") for name in ("text", "clones")}
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
    return template.render(title=title, facts=facts, sections=sections, refused=reasons)
