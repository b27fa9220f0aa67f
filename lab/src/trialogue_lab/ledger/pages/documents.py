"""Documentation templates, which are filled with numbers from the ledger.

A template is a Markdown text with Jinja expressions:

    {{ number("dyck-backtracking", "errors without a verifier") | digits(3) }}   mean over replications
    {{ spread("dyck-backtracking", "errors without a verifier").median }}        also low, high and mean
    {{ claim("dyck-backtracking", "forced-backtrack").estimate | points }}       estimate of a claim, in points
    {{ claim("dyck-backtracking", "forced-backtrack") | noted }}                 verdict on a claim and its remarks
    {{ estimate("dyck-backtracking", "forced-backtrack") }}                      number and interval, also in a unit
    {{ condition("dyck-backtracking", "forced-backtrack") }}                     criterion, also in a unit
    {{ count("dyck-backtracking", "published", "holds") }}                       number of claims (None for any)
    {{ statement_count("dyck-backtracking", "refuted", "thesis") }}              number of statements (None for any)
    {{ totals() }}                                                               table of all totals
    {{ families() }}                                                             sentence on the error rate
    {% for claim in traced("thesis:V-T311", "thesis:M-Q.*") %}                     claims about statements of a source
    {{ measured("decoding", "ours", what="tokens/s", batch=1) | whole }}         number of a benchmark

The statistics are those in `Study.numbers`.
"""

import json
import re
import textwrap
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jinja2 import TemplateError

from trialogue.display.html import make_environment
from trialogue.display.numbers import format_number
from trialogue.errors import InputError
from trialogue_lab.ledger.claims.claims import Origin
from trialogue_lab.ledger.claims.documents import DOCUMENTS
from trialogue_lab.ledger.claims.verdicts import Verdict
from trialogue_lab.ledger.claims.withdrawn import WITHDRAWN
from trialogue_lab.ledger.counts import Record
from trialogue_lab.ledger.entries import Entry, ledger_records
from trialogue_lab.ledger.pages.claim_cells import format_condition, format_estimate
from trialogue_lab.ledger.summary import Families, LedgerAnswer, families, statements, totals_table

WIDTH = 120
"""Number of characters in a line of a filled text."""

_ITEM = re.compile(r"(?:[-*]|\d+\.) +")
_VERBATIM = ("|", "#", "!", "    ", "<")


class Summary(NamedTuple):
    """Summary of the numbers of a statistic over replications.

    Attributes:
        mean: Arithmetic mean, or geometric mean if the statistic is logarithmic.
        median: Median.
        low: Smallest number.
        high: Largest number.
    """

    mean: float
    median: float
    low: float
    high: float


def fill(template: str, entries: Sequence[Entry], measured: Path | None = None) -> str:
    """Fill a documentation template with numbers from the ledger.

    Args:
        template: Markdown text with Jinja expressions (see the module).
        entries: One entry per study, with the verdicts on its claims.
        measured: Folder with benchmark results in files `<benchmark>.jsonl` (default: current folder).

    Returns:
        The page as Markdown.

    Raises:
        InputError: The template is invalid, or uses a name that does not exist.
    """
    template_environment = make_environment().overlay(autoescape=False, comment_start_string="{##")
    numbers = _TemplateFunctions(entries, measured or Path())
    template_environment.globals |= {
        name: getattr(numbers, name) for name in vars(_TemplateFunctions) if not name.startswith("_")
    }
    template_environment.globals["documents"] = DOCUMENTS
    template_environment.filters |= {
        "digits": format_number,
        "percent": _format_percent,
        "points": _format_points,
        "whole": lambda number: f"{number:,.0f}",
        "noted": lambda verdict: "; ".join((verdict.answer, *verdict.remarks)),
    }
    try:
        return reflow(template_environment.from_string(template).render())
    except TemplateError as error:
        raise InputError("template", getattr(error, "lineno", None), f"cannot be filled: {error}") from error


def markdown_table(table: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with the first column aligned left and the others right.

    Args:
        table: Rows of cells. The first row has the headings.
    """
    heads, *lines = table
    rows = [heads, ["---", *["--:"] * (len(heads) - 1)], *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def reflow(text: str) -> str:
    """Wrap paragraphs and list items of Markdown at `WIDTH` characters. Code, tables and headings are unchanged."""
    lines: list[str] = []
    paragraph: list[str] = []
    in_code = False

    def finish() -> None:
        if paragraph:
            first = paragraph[0]
            indent = " " * (len(first) - len(first.lstrip()))
            marker = _ITEM.match(first.lstrip())
            lines.extend(
                textwrap.wrap(
                    " ".join(line.strip() for line in paragraph),
                    WIDTH,
                    initial_indent=indent,
                    subsequent_indent=indent + " " * (marker.end() if marker else 0),
                    break_long_words=False,
                    break_on_hyphens=False,
                )
            )
            paragraph.clear()

    for line in text.splitlines():
        fence = line.lstrip().startswith("```")
        if fence or in_code or not line.strip() or line.startswith(_VERBATIM):
            finish()
            lines.append(line)
        else:
            if _ITEM.match(line.lstrip()):
                finish()
            paragraph.append(line)
        in_code ^= fence
    finish()
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n") + "\n"


def _format_points(share: float, digits: int = 0) -> str:
    """Convert a fraction to text in percentage points."""
    return f"{100 * share:.{digits}f}"


def _format_percent(share: float, digits: int = 0) -> str:
    """Convert a fraction to text in percent."""
    return f"{_format_points(share, digits)} %"


class _TemplateFunctions:
    """The functions that templates can call."""

    def __init__(self, entries: Sequence[Entry], benchmarks: Path) -> None:
        self._entries = {entry.study.name: entry for entry in entries}
        self._benchmarks = benchmarks

    def number(self, study: str, name: str) -> float:
        """Return the mean of a statistic over replications."""
        return self.spread(study, name).mean

    def spread(self, study: str, name: str) -> Summary:
        """Return mean, median, smallest and largest number of a statistic over replications."""
        entry = self._entry(study)
        if name not in entry.study.numbers:
            hint = f"the study {study} has no such statistic: use one of {', '.join(entry.study.numbers)}"
            raise InputError("number", name, hint)
        statistic = entry.study.numbers[name]
        values = statistic(entry.rows).to_numpy(dtype=np.float64)
        if not len(values):
            raise InputError("number", name, f"the result of {study} has no rows for it")
        mean = np.exp(np.log(values).mean()) if statistic.logarithmic else values.mean()
        return Summary(*map(float, (mean, np.median(values), values.min(), values.max())))

    def claim(self, study: str, identity: str) -> Verdict:
        for verdict in self.verdicts(study):
            if verdict.claim.id == identity:
                return verdict
        raise InputError("claim", identity, f"the study {study} has no such claim")

    def estimate(self, study: str, identity: str, unit: str = "") -> str:
        """Return estimate and interval of a claim in a unit (see `format_estimate`)."""
        return format_estimate(self._record(study, identity), unit)

    def condition(self, study: str, identity: str, unit: str = "") -> str:
        """Return the criterion of a claim in a unit, for a table (see `format_condition`)."""
        return format_condition(self._record(study, identity), unit).replace("*", "\\*")

    def count(
        self,
        study: str | Sequence[str] | None = None,
        origin: Origin | None = None,
        answer: LedgerAnswer | None = None,
    ) -> int:
        """Return the number of claims with the given study, origin and verdict. None means any.

        Withdrawn claims are counted only if `answer` is "withdrawn".
        """
        entries = self._select(study)
        if answer == WITHDRAWN:
            return sum(origin in (None, claim.origin) for entry in entries for claim in entry.withdrawn)
        verdicts = [verdict for entry in entries for verdict in entry.verdicts]
        return sum(origin in (None, each.claim.origin) and answer in (None, each.answer) for each in verdicts)

    def statement_count(
        self,
        study: str | Sequence[str] | None = None,
        answer: LedgerAnswer | None = None,
        document: str | None = None,
    ) -> int:
        """Return the number of tested statements with the given verdict and document. None means any.

        A statement tested by several claims has one combined verdict (see `Statement`), here from the chosen studies
        only.
        """
        if document not in (None, *DOCUMENTS):
            raise InputError("document", document, f"use one of {', '.join(DOCUMENTS)}")
        return sum(
            answer in (None, statement.answer) and document in (None, statement.document)
            for statement in statements(self._select(study))
        )

    def totals(self, study: str | Sequence[str] | None = None) -> str:
        """Return the numbers of claims and statements by verdict, as a Markdown table."""
        return markdown_table(totals_table(self._select(study)))

    def families(self, study: str | Sequence[str] | None = None) -> Families:
        """Return the number of claim families and their total error rate (see `Families`)."""
        return families(self._select(study))

    def traced(self, *statement_ids: str) -> list[dict[str, str]]:
        """Return study, id and verdict of all claims about the given statements, including withdrawn claims.

        Args:
            statement_ids: Ids such as "thesis:V-T311". The pattern "thesis:V-T311.*" also includes parts of the
                statement, such as "thesis:V-T311.proof".

        Returns:
            One dict per claim, in the order of `statement_ids`.
        """
        claims = []
        for name, entry in self._entries.items():
            found: list[tuple[str, str, str]] = [
                (one.claim.statement_id, one.claim.id, one.answer) for one in entry.verdicts
            ]
            found += [(one.statement_id, one.id, WITHDRAWN) for one in entry.withdrawn]
            claims += [
                (statement_id, {"study": name, "id": claim_id, "answer": answer})
                for statement_id, claim_id, answer in found
            ]
        chosen: list[dict[str, str]] = []
        for wanted in statement_ids:
            for name, claim in claims:
                is_wanted = wanted in (name, f"{name}.*") or fnmatchcase(name, wanted)
                if is_wanted and claim not in chosen:
                    chosen.append(claim)
        return chosen

    def verdicts(self, study: str) -> tuple[Verdict, ...]:
        return self._entry(study).verdicts

    def result(self, study: str) -> str:
        """Return the result's folder, for example "dyck-backtracking/0a1b2c3d4e5f"."""
        result = self._entry(study).result
        if result is None:
            raise InputError("study", study, "has no finished result")
        return f"{study}/{result.hash}"

    def measured(self, benchmark: str, contender: str, **setting: object) -> float:
        """Return the benchmark result of one program (`contender`) in one setting."""
        path = self._benchmarks / f"{benchmark}.jsonl"
        try:
            rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        except (OSError, ValueError) as error:
            raise InputError("benchmark", str(path), f"cannot be read: {error}") from error
        wanted = {"contender": contender, **setting}
        values = [row["value"] for row in rows if wanted.items() <= row.items()]
        if len(values) != 1:
            raise InputError(
                "benchmark", wanted, f"{path.name} has {len(values)} such rows: it must have one"
            )
        return float(values[0])

    def _record(self, study: str, identity: str) -> Record:
        """Return the record of a claim that has an estimate."""
        for record in ledger_records([self._entry(study)]):
            if record["claim"] == identity and record["direction"] and record["estimate"] is not None:
                return record
        raise InputError("claim", identity, f"the study {study} has no such claim with an estimate")

    def _select(self, study: str | Sequence[str] | None) -> list[Entry]:
        names = self._entries if study is None else [study] if isinstance(study, str) else study
        return [self._entry(name) for name in names]

    def _entry(self, study: str) -> Entry:
        if study not in self._entries:
            raise InputError(
                "study", study, f"the ledger has no such study: use one of {', '.join(self._entries)}"
            )
        return self._entries[study]
