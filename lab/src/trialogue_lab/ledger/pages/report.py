"""The report: one self-contained HTML page, equal bytes for equal results."""

from collections.abc import Sequence

from markupsafe import Markup

from trialogue.display.html import embedded, environment, prose
from trialogue_lab.ledger.entries import Entry
from trialogue_lab.ledger.pages.figures import Figure, svg
from trialogue_lab.ledger.pages.forest import forest
from trialogue_lab.ledger.pages.tables import sheet
from trialogue_lab.ledger.pages.terminal import FILTERS
from trialogue_lab.ledger.summary import families, totals


def render_report(entries: Sequence[Entry]) -> str:
    """The page of `entries` as text; it asks for nothing from the network."""
    pages = environment("trialogue_lab.ledger.pages")
    pages.filters |= {**FILTERS, "prose": prose}
    template = pages.get_template("report.html.jinja")
    return template.render(
        entries=entries,
        totals=totals(entries),
        families=families(entries),
        sheet=sheet,
        picture=picture,
        forest=forest,
    )


def picture(entry: Entry, figure: Figure) -> Markup:
    """The figure as SVG inside the page; its ids are made its own, as a page holds each id once."""
    if entry.result is None:
        return Markup()
    return embedded(svg(figure, entry.rows), f"{entry.study.name}-{figure.name}")
