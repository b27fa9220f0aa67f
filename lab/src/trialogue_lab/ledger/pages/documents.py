"""Texts whose numbers come from rows: templates of README and documentation, filled from the ledger.

A template is the text with Jinja expressions where numbers stand:

    {{ number("dyck-backtracking", "errors without a verifier") | digits(3) }}   mean over replications
    {{ spread("dyck-backtracking", "errors without a verifier").median }}        or low, high, mean, deviation
    {{ claim("dyck-backtracking", "forced-backtrack").estimate | points }}       estimate of a claim, in points
    {{ claim("dyck-backtracking", "forced-backtrack") | noted }}                 its verdict with all remarks
    {{ count("dyck-backtracking", "published", "holds") }}                       claims by verdict; None for any
    {{ statement_count("dyck-backtracking", "refuted", "thesis") }}              statements; None for any
    {{ totals() }}                                                               table of all totals
    {{ families() }}                                                             error of all verdicts, in a sentence
    {% for claim in traced("thesis:V-T311", "thesis:M-Q.*") %}                     claims about statements of a source
    {{ measured("decoding", "ours", what="tokens/s", batch=1) | whole }}         a row of a benchmark

Statistics are those that a study names in `Study.numbers`.
"""

import json
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, StrictUndefined, TemplateError

from trialogue.display.numbers import format_number
from trialogue.errors import InputError
from trialogue_lab.ledger.claims.claims import Origin
from trialogue_lab.ledger.claims.documents import DOCUMENTS
from trialogue_lab.ledger.claims.verdicts import Verdict
from trialogue_lab.ledger.claims.withdrawn import WITHDRAWN
from trialogue_lab.ledger.entries import Entry
from trialogue_lab.ledger.summary import Families, LedgerAnswer, families, statements, totals_table

WIDTH = 120
"""Characters in a line of a filled text."""

_ITEM = re.compile(r"(?:[-*]|\d+\.) +")
_VERBATIM = ("|", "#", "!", "    ", "<")


@dataclass(frozen=True)
class Summary:
    """Summary of a statistic over its replications; the mean of a logarithmic one is geometric, as in its interval."""

    mean: float
    median: float
    deviation: float
    low: float
    high: float


def fill(template: str, entries: Sequence[Entry], measured: Path | None = None) -> str:
    """The text of a `template`; raises `InputError` for what it names and the `entries` do not hold.

    `measured` is a folder of rows that benchmarks wrote, `<benchmark>.jsonl`, with the number in `value`.
    """
    environment = Environment(
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        comment_start_string="{##",
    )
    numbers = _Numbers(entries)
    environment.globals |= {
        "number": lambda study, name: numbers.spread(study, name).mean,
        "spread": numbers.spread,
        "claim": numbers.claim,
        "count": numbers.count,
        "statement_count": numbers.statement_count,
        "totals": numbers.totals,
        "families": numbers.families,
        "traced": numbers.traced,
        "documents": DOCUMENTS,
        "verdicts": numbers.verdicts,
        "measured": lambda benchmark, contender, **setting: _measured(
            measured, benchmark, contender, setting
        ),
        "result": numbers.folder,
    }
    environment.filters |= {
        "digits": format_number,
        "percent": _percent,
        "points": _points,
        "whole": _whole,
        "noted": _noted,
    }
    try:
        return reflowed(environment.from_string(template).render())
    except TemplateError as error:
        raise InputError("template", getattr(error, "lineno", None), f"cannot be filled: {error}") from error


def markdown_table(table: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table of lines of cells, the first of which are the heads. All columns but one are numbers."""
    heads, *lines = table
    rows = [heads, ["---", *["--:"] * (len(heads) - 1)], *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def reflowed(text: str) -> str:
    """Markdown whose paragraphs and lists fill lines of `WIDTH`; code, tables and headings stay as they are."""
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


class _Numbers:
    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = {entry.study.name: entry for entry in entries}

    def spread(self, study: str, name: str) -> Summary:
        entry = self._entry(study)
        if name not in entry.study.numbers:
            known = ", ".join(entry.study.numbers)
            raise InputError("number", name, f"the study {study} names no such statistic, but {known}")
        statistic = entry.study.numbers[name]
        values = statistic(entry.rows).to_numpy(dtype=np.float64)
        if not len(values):
            raise InputError("number", name, f"the result of {study} has no rows for it")
        deviation = float(values.std(ddof=1)) if len(values) > 1 else math.nan
        ends = float(values.min()), float(values.max())
        mean = np.exp(np.log(values).mean()) if statistic.logarithmic else values.mean()
        return Summary(float(mean), float(np.median(values)), deviation, *ends)

    def claim(self, study: str, identity: str) -> Verdict:
        for verdict in self._entry(study).verdicts:
            if verdict.claim.id == identity:
                return verdict
        raise InputError("claim", identity, f"the study {study} makes no such claim")

    def count(
        self,
        study: str | Sequence[str] | None = None,
        origin: Origin | None = None,
        answer: LedgerAnswer | None = None,
        registered: bool | None = None,
    ) -> int:
        """Return the number of claims with these properties, in one study, several or all. None stands for any.

        Withdrawn claims are counted only if `answer` is "withdrawn".
        """
        entries = self._chosen(study)
        if answer == WITHDRAWN:
            return sum(origin in (None, claim.origin) for entry in entries for claim in entry.withdrawn)
        return sum(
            origin in (None, verdict.claim.origin)
            and answer in (None, verdict.answer)
            and registered in (None, verdict.registered or not verdict.replications)
            for entry in entries
            for verdict in entry.verdicts
        )

    def statement_count(
        self,
        study: str | Sequence[str] | None = None,
        answer: LedgerAnswer | None = None,
        document: str | None = None,
    ) -> int:
        """Return the number of statements of the sources, by combined answer and document. None stands for any.

        The combined answer follows from the claims of the chosen studies only (see `statements`).
        """
        if document not in (None, *DOCUMENTS):
            raise InputError("document", document, f"use one of {', '.join(DOCUMENTS)}")
        return sum(
            answer in (None, statement.answer) and document in (None, statement.document)
            for statement in statements(self._chosen(study))
        )

    def totals(self, study: str | Sequence[str] | None = None) -> str:
        """Return a Markdown table: the numbers of statements, then of claims, by verdict."""
        return markdown_table(totals_table(self._chosen(study)))

    def families(self, study: str | Sequence[str] | None = None) -> Families:
        """Return the families of claims whose error is controlled together."""
        return families(self._chosen(study))

    def traced(self, *statement_ids: str) -> list[dict[str, str]]:
        """Return every claim about the given statements, withdrawn ones included.

        Args:
            statement_ids: Statement ids such as "thesis:V-T311". "thesis:V-T311.*" also stands for the statement's
                parts, such as "thesis:V-T311.proof".

        Returns:
            The study, id and answer of each claim, in the order of `statement_ids`.
        """
        claims = [
            (statement_id, {"study": name, "id": claim_id, "answer": answer})
            for name, entry in self._entries.items()
            for statement_id, claim_id, answer in (
                *((one.claim.statement_id, one.claim.id, one.answer) for one in entry.verdicts),
                *((one.statement_id, one.id, WITHDRAWN) for one in entry.withdrawn),
            )
        ]
        found: list[dict[str, str]] = []
        for wanted in statement_ids:
            found += [
                claim
                for name, claim in claims
                if wanted in (name, f"{name}.*") or fnmatchcase(name, wanted)
                if claim not in found
            ]
        return found

    def verdicts(self, study: str) -> tuple[Verdict, ...]:
        """Every verdict of a study."""
        return self._entry(study).verdicts

    def folder(self, study: str) -> str:
        """The folder of the result, such as "dyck-backtracking/0a1b2c3d4e5f"."""
        result = self._entry(study).result
        if result is None:
            raise InputError("study", study, "has no finished result")
        return f"{study}/{result.hash}"

    def _chosen(self, study: str | Sequence[str] | None) -> list[Entry]:
        names = self._entries if study is None else [study] if isinstance(study, str) else study
        return [self._entry(name) for name in names]

    def _entry(self, study: str) -> Entry:
        if study not in self._entries:
            raise InputError("study", study, f"the ledger has {', '.join(self._entries)}")
        return self._entries[study]


def _measured(folder: Path | None, benchmark: str, contender: str, setting: Mapping[str, object]) -> float:
    """The one number of a contender in a setting."""
    path = (folder or Path()) / f"{benchmark}.jsonl"
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError) as error:
        raise InputError("benchmark", str(path), f"cannot be read: {error}") from error
    asked = {"contender": contender, **setting}
    values = [row["value"] for row in rows if asked.items() <= row.items()]
    if len(values) != 1:
        raise InputError("benchmark", asked, f"{path.name} has {len(values)} such rows, not one")
    return float(values[0])


def _noted(verdict: Verdict) -> str:
    """The answer, and what a reader must know besides."""
    return "; ".join((verdict.answer, *verdict.remarks))


def _percent(value: Any, digits: int = 0) -> str:
    return f"{100 * value:.{digits}f} %"


def _points(value: Any, digits: int = 0) -> str:
    return f"{100 * value:.{digits}f}"


def _whole(value: Any) -> str:
    return f"{value:,.0f}"
