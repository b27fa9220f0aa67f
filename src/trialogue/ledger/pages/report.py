"""The report: one self-contained HTML page, equal bytes for equal results."""

from collections import Counter
from collections.abc import Sequence

from markupsafe import Markup

from trialogue.ledger.claims.claims import ORIGINS
from trialogue.ledger.claims.verdicts import ANSWERS, LATE
from trialogue.ledger.entries import Entry
from trialogue.ledger.pages.figures import Figure, svg
from trialogue.ledger.pages.forest import forest
from trialogue.ledger.pages.html import embedded, environment
from trialogue.ledger.pages.tables import format_number, sheet
from trialogue.ledger.pages.terminal import (
    interval_text,
    registered_text,
    replications_text,
    result_text,
    rule_text,
)


def render_report(entries: Sequence[Entry]) -> str:
    """The page of `entries` as text; it asks for nothing from the network."""
    pages = environment()
    pages.filters |= {
        "number": format_number,
        "interval": interval_text,
        "replications": replications_text,
        "rule": rule_text,
        "registered": registered_text,
        "result": result_text,
    }
    template = pages.get_template("report.html.jinja")
    return template.render(
        entries=entries, counts=counted(entries), sheet=sheet, picture=picture, forest=forest
    )


def counted(entries: Sequence[Entry]) -> dict[str, dict[str, int]]:
    """How many verdicts there are, by what the claims are (by when they were registered, too) and by answer."""
    verdicts = [verdict for entry in entries for verdict in entry.verdicts]
    found: dict[str, dict[str, int]] = {}
    for origin in ORIGINS:
        for when, registered in (("", True), (f", {LATE}", False)):
            of_kind = Counter(
                verdict.answer
                for verdict in verdicts
                if (verdict.claim.origin, verdict.registered or not verdict.replications)
                == (origin, registered)
            )
            found[f"{origin}{when}"] = {answer: of_kind[answer] for answer in ANSWERS if of_kind[answer]}
    return found


def picture(entry: Entry, figure: Figure) -> Markup:
    """The figure as SVG inside the page; its ids are made its own, as a page holds each id once."""
    if entry.result is None:
        return Markup()
    return embedded(svg(figure, entry.rows), f"{entry.study.name}-{figure.name}")
