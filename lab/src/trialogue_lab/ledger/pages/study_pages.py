"""Documentation pages of the studies, in Markdown with SVG figures."""

import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

from jinja2 import Environment

from trialogue.display.html import make_environment
from trialogue.display.numbers import format_number
from trialogue.errors import InputError
from trialogue_lab.ledger.claims.documents import DOCUMENTS
from trialogue_lab.ledger.claims.withdrawn import WITHDRAWN
from trialogue_lab.ledger.entries import Entry, ledger_records
from trialogue_lab.ledger.pages.claim_tables import (
    describe_intervals,
    explain_tables,
    find_measured,
    format_criterion,
    format_numbers,
)
from trialogue_lab.ledger.pages.documents import markdown_table
from trialogue_lab.ledger.pages.figures import svg
from trialogue_lab.ledger.pages.forest import forest
from trialogue_lab.ledger.pages.tables import sheet
from trialogue_lab.ledger.pages.terminal import FILTERS
from trialogue_lab.ledger.study import Study
from trialogue_lab.ledger.summary import LEDGER_ANSWERS, families, statements, totals_table

# Python-Markdown has no escape of "<".
_MARKUP = str.maketrans({character: f"\\{character}" for character in "\\|*_>`[]#"} | {"<": "&lt;"})


def study_page(entry: Entry) -> str:
    """Return the documentation page of a study as Markdown.

    The page links to the files of `study_pictures`, in a folder with the study's name next to the page.

    Args:
        entry: The study with its verdicts.

    Raises:
        InputError: The study has no finished result.
    """
    study = entry.study
    if entry.result is None:
        hint = f"has no finished result: use `trialogue run {study.name}`"
        raise InputError("study", study.name, hint)
    template = _make_environment().get_template("study.md.jinja")
    return template.render(
        entry=entry,
        study=study,
        documents=cited_documents(study),
        forest=forest(entry),
        records=[record for record in ledger_records([entry]) if record["verdict"] != WITHDRAWN],
        tables=[(table, sheet(table, entry.rows)) for table in study.tables],
    )


def cited_documents(study: Study[Any]) -> dict[str, str]:
    """Return titles of the publications whose statements a study tests, by key, the most frequent first."""
    keys = Counter(claim.statement_id.partition(":")[0] for claim in study.claims if claim.statement_id)
    return {key: DOCUMENTS[key] for key, _ in keys.most_common()}


def study_pictures(entry: Entry) -> dict[str, str]:
    """Return the figures of a study's page as SVG text, by file name.

    Figures stored with the result are read. Only missing figures and the plot of the claims are drawn.
    """
    pictures = {}
    for figure in entry.study.figures:
        stored = entry.result.folder / "figures" / f"{figure.name}.svg" if entry.result else None
        if stored is not None and stored.is_file():
            pictures[f"{figure.name}.svg"] = stored.read_text("utf-8")
        else:
            pictures[f"{figure.name}.svg"] = svg(figure, entry.rows)
    if entry.verdicts:
        pictures["claims.svg"] = svg(forest(entry), entry.rows)
    return pictures


def studies_page(entries: Sequence[Entry]) -> str:
    """Return the Markdown overview of all studies, with the number of published statements by verdict."""
    template = _make_environment().get_template("studies.md.jinja")
    by_study = {entry.study.name: [one.answer for one in statements([entry])] for entry in entries}
    return template.render(
        entries=entries,
        answers=LEDGER_ANSWERS,
        totals=markdown_table(totals_table(entries)),
        families=families(entries),
        statements=by_study,
    )


def _make_environment() -> Environment:
    pages = make_environment("trialogue_lab.ledger.pages").overlay(autoescape=False)
    pages.filters |= {
        **FILTERS,
        "measured": find_measured,
        "numbers": format_numbers,
        "criterion": format_criterion,
        "intervals": describe_intervals,
        "explanation": lambda records: explain_tables(records, sys.maxsize),
        "prose": _escape,
        "cell": lambda text: " ".join(_escape(text).split()),
        "minutes": lambda seconds: f"{format_number(seconds / 60, 2)} minutes",
    }
    return pages


def _escape(text: object) -> str:
    """Escape Markdown markup."""
    return str(text).translate(_MARKUP)
