"""The report: one self-contained HTML page, equal bytes for equal results."""

import re
from collections import Counter
from collections.abc import Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from trialogue.ledger.entries import Entry
from trialogue.ledger.figures import Figure, svg
from trialogue.ledger.tables import format_number, sheet
from trialogue.ledger.terminal import interval_text, replications_text, result_text, rule_text


def render_report(entries: Sequence[Entry]) -> str:
    """The page of `entries` as text; it asks for nothing from the network."""
    environment = Environment(
        loader=PackageLoader("trialogue.ledger", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": format_number,
        "interval": interval_text,
        "replications": replications_text,
        "rule": rule_text,
        "result": result_text,
    }
    counts = Counter(verdict.answer for entry in entries for verdict in entry.verdicts)
    template = environment.get_template("report.html.jinja")
    return template.render(entries=entries, counts=counts, sheet=sheet, picture=picture)


def picture(entry: Entry, figure: Figure) -> Markup:
    """The figure as SVG inside the page; its ids are made its own, as a page holds each id once."""
    if entry.result is None:
        return Markup()
    text = svg(figure, entry.result.rows)
    body = text[text.index("<svg") :]
    own = f"{entry.study.name}-{figure.name}-"
    body = re.sub(r'\bid="', f'id="{own}', body)
    body = re.sub(r'href="#', f'href="#{own}', body)
    body = re.sub(r"url\(#", f"url(#{own}", body)
    # matplotlib escapes every text it draws, so the SVG is markup and not somebody's input.
    return Markup(body)
