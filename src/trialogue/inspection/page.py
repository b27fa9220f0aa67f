"""One HTML page of an inspection, or of several beside one another; equal bytes for equal records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from trialogue.display.figures import rendered
from trialogue.display.html import embedded, environment
from trialogue.display.numbers import ABSENT, format_number
from trialogue.display.terminal import console, grid
from trialogue.inspection.measures.quantities import Point, Quantity
from trialogue.inspection.picture import Series, draw_curves, draw_steps, has_curves

if TYPE_CHECKING:
    import matplotlib.figure

CONTROL = "random weights"


def render_inspection(record: Mapping[str, Any]) -> str:
    """The page of what `inspected` returned."""
    sections = []
    for name, measure in record["measures"].items():
        control = columns_of({CONTROL: measure["control"]}, quiet=True) if measure["control"] else []
        series = columns_of({_head(record, one): one["quantities"] for one in measure["checkpoints"]})
        shown = series if len(series) == 1 else [series[0], series[-1]]
        figures = _curves(name, [*shown, *control], measure["logarithmic"])
        steps = [one["step"] for one in measure["checkpoints"]]
        if len(steps) > 1:
            figures.append(_svg(f"{name}-steps", partial(draw_steps, steps, series, control)))
        tokens, seconds = (sum(one[key] for one in measure["checkpoints"]) for key in ("tokens", "seconds"))
        cost = f"about {tokens:,} tokens, {seconds:.0f} s"
        sections.append(_section(name, measure, [*shown, *control], figures, cost))
    facts = {"model": record["model"], "kind": record["kind"], **_facts(record["settings"])}
    return _render(f"What {facts['model']} has learned", facts, sections, record["refused"])


def render_comparison(records: Mapping[str, Mapping[str, Any]], *, control: bool = False) -> str:
    """The page of several inspections, by the names that their models go by in it, with what `compared` gives."""
    sections = []
    for name, columns in compared(records, control=control).items():
        whole = next(record["measures"][name] for record in records.values() if name in record["measures"])
        figures = _curves(name, columns, whole["logarithmic"])
        sections.append(_section(name, whole, columns, figures))
    first = next(iter(records.values()))
    refused = {
        f"{name} of {head}": reason
        for head, record in records.items()
        for name, reason in record["refused"].items()
    }
    facts = {"models": ", ".join(records), **_facts(first["settings"])}
    return _render("What models have learned", facts, sections, refused)


def compared(records: Mapping[str, Mapping[str, Any]], *, control: bool = False) -> dict[str, list[Series]]:
    """By measure, the numbers of the last checkpoint of each model that it was taken of.

    With `control`, then those of their architectures with random weights, where they were taken.
    """
    found: dict[str, list[Series]] = {}
    for name in dict.fromkeys(name for record in records.values() for name in record["measures"]):
        taken = {
            head: record["measures"][name] for head, record in records.items() if name in record["measures"]
        }
        columns = columns_of({head: one["checkpoints"][-1]["quantities"] for head, one in taken.items()})
        drawn = {f"{head}, {CONTROL}": one["control"] for head, one in taken.items() if one.get("control")}
        found[name] = columns + (columns_of(drawn, quiet=True) if control else [])
    return found


def columns_of(quantities: Mapping[str, Sequence[Mapping[str, Any]]], *, quiet: bool = False) -> list[Series]:
    """What records hold, by the names that it goes by."""
    return [
        Series(head, [Quantity.read(dict(one)) for one in found], quiet) for head, found in quantities.items()
    ]


def table(columns: Sequence[Series], *, every: bool = True) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Heads, and for each number its name and the cells.

    Unless `every`, of curves only the last point that all columns with such a curve have, if they share any.
    """
    cells: dict[str, dict[str, str]] = {}
    shared = _shared(columns)
    for column in columns:
        for quantity in column.quantities:
            common = shared[_curve_of(quantity)]
            last = [point for point in quantity.points if point.at in common or not common][-1:]
            for point in quantity.points if every else last:
                name = quantity.told(point) + (f" ({quantity.unit})" if quantity.unit else "")
                cells.setdefault(name, {})[column.name] = cell(point)
    heads = [column.name for column in columns]
    return heads, [(name, [line.get(head, ABSENT) for head in heads]) for name, line in cells.items()]


def print_tables(columns: Mapping[str, Sequence[Series]]) -> None:
    """Print the table of each measure, under its title, without all but one point of each curve."""
    out = console()
    for title, series in columns.items():
        heads, lines = table(series, every=False)
        out.print(grid(title, ("", *heads), [(label, *cells) for label, cells in lines]))


def _section(
    name: str,
    measure: Mapping[str, Any],
    columns: Sequence[Series],
    figures: Sequence[Markup],
    cost: str = "",
) -> dict[str, Any]:
    """Return what the template shows of a measure, with the first number that all `columns` have in a line."""
    heads, lines = table(columns)
    of_all = [line for line in lines if ABSENT not in line[1]]
    first = [
        f"{label}: {', '.join(f'{head} {value}' for head, value in zip(heads, cells, strict=True))}"
        for label, cells in (of_all or lines)[:1]
    ]
    told = {key: measure[key] for key in ("question", "reading")}
    return {
        "name": name,
        **told,
        "cost": cost,
        "figures": figures,
        "table": (heads, lines),
        "first": "".join(first),
    }


def _curve_of(quantity: Quantity) -> tuple[str, str, str]:
    return quantity.name, quantity.along, quantity.unit


def _shared(columns: Sequence[Series]) -> dict[tuple[str, str, str], set[float | None]]:
    """The places of each curve at which all columns that have it have a point."""
    shared: dict[tuple[str, str, str], set[float | None]] = {}
    for column in columns:
        for quantity in column.quantities:
            places = {point.at for point in quantity.points}
            shared[_curve_of(quantity)] = shared.get(_curve_of(quantity), places) & places
    return shared


def cell(point: Point) -> str:
    """An estimate and its interval."""
    if point.low is None or point.high is None:
        return format_number(point.value)
    return f"{format_number(point.value)} [{format_number(point.low)}, {format_number(point.high)}]"


def _head(record: Mapping[str, Any], checkpoint: Mapping[str, Any]) -> str:
    return str(record["model"]) if checkpoint["step"] is None else f"step {checkpoint['step']}"


def _facts(settings: Mapping[str, Any]) -> dict[str, Any]:
    given = {name: "given" if settings[name] else "none" for name in ("text", "clones")}
    return {**{name: settings[name] for name in ("effort", "seed", "dtype")}, **given}


def _curves(name: str, lines: Sequence[Series], logarithmic: bool) -> list[Markup]:
    if not has_curves(lines):
        return []
    return [_svg(f"{name}-curves", partial(draw_curves, lines, logarithmic))]


def _svg(own: str, draw: Callable[[], matplotlib.figure.Figure]) -> Markup:
    return embedded(rendered(draw, "svg", own).decode(), own)


def _render(
    title: str, facts: Mapping[str, Any], sections: Sequence[Mapping[str, Any]], refused: Mapping[str, str]
) -> str:
    template = environment("trialogue.inspection").get_template("inspection.html.jinja")
    return template.render(title=title, facts=facts, sections=sections, refused=refused)
