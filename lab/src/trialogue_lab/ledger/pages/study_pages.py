"""One page a study, in Markdown, with its pictures: what a site of documentation is built from."""

from collections.abc import Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined

from trialogue.display.numbers import format_number
from trialogue.errors import InputError
from trialogue_lab.ledger.claims.claims import ORIGINS
from trialogue_lab.ledger.entries import Entry
from trialogue_lab.ledger.pages.documents import markdown_table
from trialogue_lab.ledger.pages.figures import svg
from trialogue_lab.ledger.pages.forest import forest
from trialogue_lab.ledger.pages.tables import sheet
from trialogue_lab.ledger.pages.terminal import FILTERS
from trialogue_lab.ledger.summary import LEDGER_ANSWERS, families, statements, totals_table

_MARKUP = str.maketrans({character: f"\\{character}" for character in "\\|*_<>`[]#"})


def study_page(entry: Entry) -> str:
    """The page of a study as Markdown: question, claims, tables beside the published ones, figures.

    Its pictures are those of `study_pictures`, in a folder of the study's name beside it. Raises `InputError` where
    the study has no finished result.
    """
    study = entry.study
    if entry.result is None:
        hint = f"has no finished result: `trialogue run {study.name}` makes one"
        raise InputError("study", study.name, hint)
    origins = {
        origin: [verdict for verdict in entry.verdicts if verdict.claim.origin == origin]
        for origin in ORIGINS
    }
    template = _environment().get_template("study.md.jinja")
    return template.render(
        entry=entry,
        study=study,
        forest=forest(entry),
        origins={origin: verdicts for origin, verdicts in origins.items() if verdicts},
        tables=[(table, sheet(table, entry.rows)) for table in study.tables],
    )


def study_pictures(entry: Entry) -> dict[str, str]:
    """The pictures of a study's page as SVG, by the name of their file."""
    drawn = {f"{figure.name}.svg": svg(figure, entry.rows) for figure in entry.study.figures}
    if entry.verdicts:
        drawn["claims.svg"] = svg(forest(entry), entry.rows)
    return drawn


def studies_page(entries: Sequence[Entry]) -> str:
    """The list of all studies as Markdown: each question, and the numbers of its published statements by verdict."""
    template = _environment().get_template("studies.md.jinja")
    by_study = {entry.study.name: [one.answer for one in statements([entry])] for entry in entries}
    return template.render(
        entries=entries,
        answers=LEDGER_ANSWERS,
        totals=markdown_table(totals_table(entries)),
        families=families(entries),
        statements=by_study,
    )


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("trialogue_lab.ledger.pages", "."),
        autoescape=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        **FILTERS,
        "prose": _escaped,
        "cell": lambda text: " ".join(_escaped(text).split()),
        "minutes": lambda seconds: f"{format_number(seconds / 60, 2)} minutes",
    }
    return environment


def _escaped(text: object) -> str:
    """`text` as Markdown shows it, character by character."""
    return str(text).translate(_MARKUP)
