"""HTML report of studies and their verdicts."""

from collections.abc import Sequence

from markupsafe import Markup

from trialogue.display.html import embed_svg, make_environment, text_to_html
from trialogue_lab.ledger.entries import Entry
from trialogue_lab.ledger.pages.claim_tables import find_measured
from trialogue_lab.ledger.pages.figures import Figure, svg
from trialogue_lab.ledger.pages.forest import forest
from trialogue_lab.ledger.pages.tables import sheet
from trialogue_lab.ledger.pages.terminal import FILTERS
from trialogue_lab.ledger.summary import families, totals


def render_report(entries: Sequence[Entry]) -> str:
    """Return a report of studies and their verdicts as one self-contained HTML page.

    Equal results give equal text.

    Args:
        entries: One entry per study, with the verdicts on its claims.
    """
    pages = make_environment("trialogue_lab.ledger.pages")
    pages.filters |= {
        **FILTERS,
        "prose": text_to_html,
        "measured": lambda claim: find_measured({**vars(claim), "statement": claim.full_statement}),
    }
    template = pages.get_template("report.html.jinja")
    return template.render(
        entries=entries,
        totals=totals(entries),
        families=families(entries),
        sheet=sheet,
        embed=_embed,
        forest=forest,
    )


def _embed(entry: Entry, figure: Figure) -> Markup:
    """Return a figure as SVG markup with ids that are unique within the page."""
    return embed_svg(svg(figure, entry.rows), f"{entry.study.name}-{figure.name}")
