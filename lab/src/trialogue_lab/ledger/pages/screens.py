"""Screens of `trialogue list` and `trialogue ledger` that need no measurements, as plain text of a given width."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from trialogue.display.columns import text_table, wrap_words
from trialogue.display.numbers import ABSENT, format_number
from trialogue_lab.ledger.claims.answers import WITHDRAWN
from trialogue_lab.ledger.claims.documents import DOCUMENTS
from trialogue_lab.ledger.counts import Record, families_of, statements_of, totals_rows
from trialogue_lab.ledger.pages.claim_tables import claims_text, explain_tables
from trialogue_lab.ledger.pages.undecided import undecided_overview
from trialogue_lab.ledger.stored import OWN, StudySummary, claims_by_place

_UNKNOWN = "unknown"
"""Group of the studies without a stored summary, for example those of other packages."""

_WORDS = re.compile(
    r"(algorithm|chapter|corollary|definition|equation|experiment|figure|footnote|lemma|proposition|remark|section|"
    r"table|theorem)s?\s+(\d[\d.]*\d|\d)(?=[\s,;:)]|$)|(\S+)"
)
"""A place in a publication (its kind and its number), or another word."""

_SHOWN = ("holds", "refuted", "undecided")
_HEAD = ("study", "statements", "hold", "refuted", "undecided", "other", "our claims\nthat hold")
_HINTS = (
    ("trialogue ledger STUDY", "all claims of a study with their numbers, next to your own runs"),
    ("trialogue ledger --source KEY", "all claims of a publication, by its key in parentheses above"),
    ("trialogue ledger --verdict refuted", "all refuted claims"),
    ("trialogue ledger --statement TEXT", 'claims by words, place ("Table 3.16"), study or id'),
)
_LIST_HINTS = (
    ("trialogue run STUDY --preset smoke", "run a study in small, in seconds"),
    ("trialogue run STUDY --help", "its settings, and the time of each preset"),
    ("trialogue ledger STUDY", "what the study found"),
    (
        "trialogue ledger --source KEY",
        "what all studies of a publication found, by its key in parentheses above",
    ),
)


def format_duration(seconds: float) -> str:
    """Return a duration in the largest fitting unit, for example "4.1 min".

    Args:
        seconds: Duration in seconds.
    """
    for unit, length in (("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{format_number(seconds / length, 2)} {unit}"
    return f"{format_number(seconds, 2)} s"


def matches(record: Record, text: str) -> bool:
    """Return whether a claim is found by a text: an id, a study, a place in the publication, or words.

    A text other than an id matches if all of its words begin a word of the study, source, title or statement. A number
    matches only the same number, and a place such as "Table 3.1" only a source or statement that names this place. The
    name of an entry of the coverage page also matches all claims about this entry.

    Args:
        record: Record of a claim.
        text: Id of the claim, id of the statement with or without its document, or words. Case is ignored.
    """
    wanted, identity = text.lower().strip(), (record["statement_id"] or "").lower()
    if wanted in (record["claim"], identity, identity.partition(":")[2]):
        return True
    if f"{record['study']}/{record['claim']}" in claims_by_place().get(wanted, ()):
        return True
    names = ("study", "source", "title", "statement")
    searched = "\n".join(str(record[name] or "") for name in names).lower()
    patterns = []
    for kind, place, word in _WORDS.findall(wanted):
        # A source may list several places of one kind, for example "Tables 3.16 and 3.3".
        before = rf"{kind}s?\s+(?:[\d.]+(?:,| and|, and)\s+)*" if kind else ""
        before = (
            rf"(?:{before}|^)" if kind == "section" else before
        )  # A source may be a number of a section only.
        found = place or word.strip(",;:()\"'")
        whole = r"(?!\.?\d)" if found[-1:].isdigit() else ""
        patterns.append(rf"(?<![\w.]){before}{re.escape(found)}{whole}")
    return bool(patterns) and all(re.search(pattern, searched, re.MULTILINE) for pattern in patterns)


def document_of(record: Record, default: str) -> str:
    """Return the key of the publication that a claim tests.

    Args:
        record: Record of a claim.
        default: Key for a claim without a statement id.
    """
    return str(record["statement_id"] or default).partition(":")[0]


def studies_screen(questions: Mapping[str, str], summaries: Mapping[str, StudySummary], width: int) -> str:
    """Return the list of all studies by publication, with the measured computing time of each.

    Args:
        questions: Question of each study, by name.
        summaries: Summaries of the studies, by name. A study may be missing.
        width: Width of the text.
    """
    longest = max(map(len, questions), default=0)
    groups: dict[str, list[str]] = {}
    for name in questions:
        groups.setdefault(summaries[name].document if name in summaries else _UNKNOWN, []).append(name)
    blocks = []
    for document, names in _sort_by_document(groups).items():
        lines = [("study", "time", "question")]
        for name in names:
            found = summaries.get(name)
            seconds = found.provenance.get("seconds") if found else None
            places = f"\n({found.source.rpartition(': ')[2]})" if found else ""
            time = ABSENT if seconds is None else format_duration(seconds)
            lines.append((name.ljust(longest), time.rjust(8), questions[name] + places))
        blocks.append(f"{_format_title(document, width)}\n{text_table(lines, width, numbers=9)}")
    note = (
        "Each study asks a question, most of them about a publication. The places in the publication are in "
        "parentheses. time: computing time of the committed result on one or two processor cores, summed over "
        f"processes ({ABSENT}: not stored)."
    )
    return "\n\n".join(["\n".join(wrap_words(note, width)), *blocks, _list_hints(_LIST_HINTS, width)])


def summary_screen(summaries: Sequence[StudySummary], width: int) -> str:
    """Return the number of verdicts by publication and study, and the totals.

    Args:
        summaries: Summaries of the studies.
        width: Width of the text.
    """
    longest = max((len(found.name) for found in summaries), default=0)
    notes = (
        "A statement of a publication is tested by one or more claims. It is refuted if one of them is, and otherwise "
        "undecided if one of them is. A confidence interval decides each claim.",
        "other: statements that are not tested or withdrawn. our claims that hold: 3/4 means 3 of the 4 claims that "
        "this project adds, such as controls. together: a statement that several studies test counts once.",
    )
    blocks = ["\n".join(line for note in notes for line in wrap_words(note, width))]
    groups: dict[str, list[StudySummary]] = {}
    for found in summaries:
        groups.setdefault(found.document, []).append(found)
    for document, studies in _sort_by_document(groups).items():
        lines = [_format_counts(found.name.ljust(longest), found.claims) for found in studies]
        if len(studies) > 1:
            lines.append(_format_counts("together", [record for found in studies for record in found.claims]))
        blocks.append(f"{_format_title(document, width)}\n{text_table([_HEAD, *lines], width)}")
    records = [record for found in summaries for record in found.claims]
    blocks.append(f"total\n{text_table(totals_rows(records), width)}")
    blocks.append("\n".join(wrap_words(str(families_of(records)), width)))
    return "\n\n".join([*blocks, _list_hints(_HINTS, width)])


def _list_hints(hints: Iterable[tuple[str, str]], width: int) -> str:
    """Return commands, each followed by its meaning."""
    return "\n".join(
        line
        for command, meaning in hints
        for line in (command, *(f"    {part}" for part in wrap_words(meaning, width - 4)))
    )


def claims_screen(
    summaries: Iterable[StudySummary], width: int, every: Iterable[StudySummary] = (), *, brief: bool = False
) -> str:
    """Return lists of claims, by study, and the number of claims and statements.

    Args:
        summaries: Summaries of the studies, with the selected claims only.
        width: Width of the text.
        every: Summaries with all claims, from which the verdicts on the statements follow (default: not shown).
        brief: Whether to return the `undecided_overview` instead of the lists (default: False).
    """
    blocks, records = [], list[Record]()
    for found in summaries:
        if found.claims:
            result_hash = found.result.partition("@")[2]
            heading = (
                f"{found.name}@{result_hash} (preset {found.scale})"
                if result_hash
                else f"{found.name} (no result)"
            )
            used = _used_terms(found)
            blocks += ["\n".join(wrap_words(heading, width)), claims_text(found.claims, width)]
            blocks.append(text_table(used, width, numbers=2) if used else "")
            if gone := [record["claim"] for record in found.claims if record["verdict"] == WITHDRAWN]:
                blocks.append("\n".join(wrap_words(f"Withdrawn: {', '.join(gone)}", width)))
            records += found.claims
    blocks = [undecided_overview(records, width)] if brief else [*blocks, explain_tables(records, width)]
    blocks.append("\n".join(wrap_words(_count_statements(records, every), width)))
    return "\n\n".join(filter(None, blocks))


def _count_statements(records: Sequence[Record], every: Iterable[StudySummary]) -> str:
    """Return the number of claims and statements, and the verdicts on the statements if other claims change them."""
    statements = {(one.document, one.identifier): one.answer for one in statements_of(records)}
    claims = "1 claim" if len(records) == 1 else f"{len(records)} claims"
    tested = (
        "1 statement of a publication"
        if len(statements) == 1
        else f"{len(statements)} statements of publications"
    )
    text = f"{claims}, {tested}."
    combined = statements_of(record for found in every for record in found.claims)
    answers = {(one.document, one.identifier): one.answer for one in combined}
    if any(answers.get(key, answer) != answer for key, answer in statements.items()):
        counts = Counter(answers[key] for key in statements)
        verdicts = " and ".join(f"{number} {answer}" for answer, number in counts.most_common())
        text += f" Together with their other claims, these statements are {verdicts}."
    return text


def _used_terms(found: StudySummary) -> list[tuple[str, str]]:
    """Return the terms of a study that the titles of its claims have, each with its meaning."""
    titles = " ".join(str(record["title"] or record["statement"]) for record in found.claims).lower()
    return [
        (terms, meaning)
        for terms, meaning in found.glossary.items()
        # The n of "best-of-n" is a number in a title.
        if any(re.sub("-n$", "-", term.lower()) in titles for term in terms.split(", "))
    ]


def describe_empty(
    count: int,
    *,
    answers: Collection[str] = (),
    origins: Collection[str] = (),
    statement: str = "",
    documents: Collection[str] = (),
) -> str:
    """Return a sentence that says which claims were searched, and that the filters keep none of them.

    Args:
        count: Number of claims that `statement` finds.
        answers: Verdicts to keep.
        origins: Origins to keep.
        statement: Text of the claims. Empty for all.
        documents: Keys of the publications to keep.
    """
    claims = "1 claim" if count == 1 else f"{count} claims"
    wanted = [" or ".join(words) for words in (answers, origins) if words]
    wanted += [f"from {' or '.join(documents)}"] if documents else []
    return f"{claims}{f' for {statement!r}' if statement else ''}, none of them {', '.join(wanted)}"


def select_claims(
    found: StudySummary,
    *,
    answers: Collection[str] = (),
    origins: Collection[str] = (),
    statement: str = "",
    documents: Collection[str] = (),
) -> StudySummary:
    """Return a copy of a study's summary with the selected claims only.

    Args:
        found: Summary of a study.
        answers: Verdicts to keep. Empty for all.
        origins: Origins to keep. Empty for both.
        statement: Text that `matches` a claim. Empty for all.
        documents: Keys of the publications to keep. Empty for all.
    """
    kept = [
        record
        for record in found.claims
        if (not answers or record["verdict"] in answers)
        and (not origins or record["origin"] in origins)
        and (not statement or matches(record, statement))
        and (not documents or document_of(record, found.document) in documents)
    ]
    return replace(found, claims=kept)


def _format_counts(name: str, records: Sequence[Record]) -> list[str]:
    answers = [statement.answer for statement in statements_of(records)]
    shown = [sum(answer == one for one in answers) for answer in _SHOWN]
    own = [record["verdict"] for record in records if record["origin"] == OWN]
    cells = (len(answers), *shown, len(answers) - sum(shown))
    return [name, *map(str, cells), f"{own.count('holds')}/{len(own)}" if own else ABSENT]


def _sort_by_document(groups: Mapping[str, Any]) -> dict[str, Any]:
    """Sort groups, one per publication, in the order of `DOCUMENTS`. Our own questions come last."""
    return {document: groups[document] for document in (*DOCUMENTS, OWN, _UNKNOWN) if document in groups}


def _format_title(document: str, width: int) -> str:
    if document == _UNKNOWN:
        title = "Other studies, whose publication and time are not stored"
    else:
        title = f"{DOCUMENTS.get(document, 'Studies without a publication of this list')} ({document})"
    return "\n".join(wrap_words(title, width))
