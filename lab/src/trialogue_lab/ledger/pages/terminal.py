"""Terminal output of verdicts."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from trialogue.display.columns import text_table, wrap_words
from trialogue.display.numbers import ABSENT, format_number
from trialogue.display.terminal import grid
from trialogue_lab.ledger.claims.claims import NOT_PRINTED
from trialogue_lab.ledger.claims.verdicts import Verdict
from trialogue_lab.ledger.claims.withdrawn import WITHDRAWN, WithdrawnClaim
from trialogue_lab.ledger.entries import Entry, ledger_records, select
from trialogue_lab.ledger.pages.claim_tables import (
    ANSWERS,
    INDENT,
    claims_text,
    explain_tables,
    format_claim,
    format_criterion,
)
from trialogue_lab.ledger.pages.screens import describe_empty
from trialogue_lab.ledger.runs.results import COMMITTED, Result
from trialogue_lab.ledger.summary import families, totals_table

COLOURS = {
    "holds": "green",
    "refuted": "red",
    "undecided": "yellow",
    "not tested": "dim",
    "altered since the run": "magenta",
}
"""Colours of the verdicts."""


def format_verdict_criterion(verdict: Verdict) -> str:
    """Return the criterion of a claim as text, for example "> 0.5" or "= 1 ± 0.01".

    If this project chose the threshold or margin because the publication gives none, `CHOSEN` is added.
    """
    claim = verdict.claim
    return format_criterion({"origin": claim.origin, **claim.terms})


def format_interval(verdict: Verdict) -> str:
    """Return the confidence interval as "[low, high]", or "exact" if the statistic is not random."""
    if math.isnan(verdict.low):
        return ABSENT
    if not verdict.claim.sampled:
        return ABSENT if verdict.claim.chance else "exact"
    return f"[{format_number(verdict.low)}, {format_number(verdict.high)}]"


def format_replications(verdict: Verdict) -> str:
    """Return number and unit of the independent repetitions, for example "5 × training"."""
    if not verdict.claim.sampled:
        return "simulation" if verdict.claim.chance else "exact"
    return f"{verdict.replications} × {verdict.claim.unit}"


def format_published(published: str) -> str:
    """Return the words or numbers of the publication, or a dash if it gives none."""
    return ABSENT if published == NOT_PRINTED else published


def format_withdrawal(claim: WithdrawnClaim) -> str:
    """Return date, last verdict with its numbers, and reason of a withdrawal."""
    numbers = "" if math.isnan(claim.estimate) else f", {format_number(claim.estimate)}"
    if not math.isnan(claim.low):
        numbers += f" [{format_number(claim.low)}, {format_number(claim.high)}]"
    if claim.published != NOT_PRINTED:
        numbers += f" (published: {claim.published})"
    when = f"withdrawn on {claim.withdrawn_on}; last verdict: {claim.last_verdict}{numbers}"
    return f"{when}. {claim.reason}"


def format_registration_time(verdict: Verdict) -> str:
    """Return whether the claim was saved "before" or "after" the run started, or a dash if nothing was measured."""
    return "before" if verdict.registered else "after" if verdict.replications else ABSENT


def format_result(result: Result | None) -> str:
    """Return study and hash of a result, as commands accept it, for example "biased-coin@0a1b2c3d4e5f"."""
    return f"{result.study}@{result.hash}" if result else ABSENT


FILTERS: Mapping[str, Callable[..., str]] = {
    "number": format_number,
    "interval": format_interval,
    "replications": format_replications,
    "criterion": format_verdict_criterion,
    "published": format_published,
    "registered": format_registration_time,
    "result": format_result,
    "withdrawal": format_withdrawal,
}
"""Filters of the page templates, by name."""


def print_ledger(
    out: Console,
    entries: Sequence[Entry],
    *,
    answers: Collection[str] = (),
    origins: Collection[str] = (),
    statement: str = "",
    documents: Collection[str] = (),
    verbose: bool = False,
) -> None:
    """Print the verdicts on claims, and the totals of several studies.

    Without filters, the claims of this project that hold are only counted.

    Args:
        out: The console.
        entries: One entry per study, with the verdicts on its claims.
        answers: Verdicts to print, for example "refuted" or "withdrawn". Empty for all (default).
        origins: Origins to print, "published" or "ours". Empty for both (default).
        statement: Id, study, place or words of the claims to print (see `matches`). Empty for all (default).
        documents: Keys of the publications whose claims are printed. Empty for all (default).
        verbose: Print every claim, and add its id, source, registered statement and all remarks, for example the
            smallest detectable effect of an undecided claim (default: False).
    """
    is_filtered = bool(answers or origins or statement or documents)
    selected = select(entries, answers=answers, origins=origins, statement=statement, documents=documents)
    registered = {entry.study.name: _describe_registration(entry) for entry in entries}
    for entry in selected:
        _print_entry(out, entry, registered[entry.study.name], verbose, hide_own=not is_filtered)
        out.print()
    if is_filtered and not any(entry.verdicts or entry.withdrawn for entry in selected):
        count = sum(
            len(entry.verdicts) + len(entry.withdrawn) for entry in select(entries, statement=statement)
        )
        why = describe_empty(
            count, answers=answers, origins=origins, statement=statement, documents=documents
        )
        out.print(Text(f"{why}\n"))
    if len(entries) > 1:
        heads, *lines = totals_table(entries)
        out.print(grid("total of all claims" if is_filtered else "total", heads, lines))
        found = families(entries)
        out.print(Text(f"{found} {found.derivation if verbose else ''}", style="dim"))


def _print_entry(out: Console, entry: Entry, registered: str, verbose: bool, hide_own: bool) -> None:
    """Print the claims of a study by origin, then its withdrawn claims. `registered` describes all of its claims."""
    out.print(Text(f"{entry.study.name}: {entry.study.question}", style="bold"))
    if entry.study.answer and entry.result and COMMITTED in entry.result.folder.parents:
        out.print(Text(f"answer: {entry.study.answer}"))
    out.print(Text(f"source: {entry.study.source}", style="dim"))
    if entry.result:
        out.print(
            Text(f"result: {format_result(entry.result)} (preset {entry.scale}). {registered}", style="dim")
        )
    hide_own = hide_own and not verbose
    if entry.result and entry.verdicts:
        text = Text(
            "\n" + claims_text(ledger_records([entry]), out.width, hide_own=hide_own, verbose=verbose)
        )
        text.highlight_regex(r"(?m)^Claims of .*", "bold")
        for answer, style in COLOURS.items():
            text.highlight_regex(rf"(?m)^{answer.partition(' since')[0]}(?=  )", style)
        out.print(text)
    if not entry.result:
        for line in _explain_untested(entry):
            out.print(Text(line, style="dim"))
    if entry.study.glossary and entry.verdicts:
        out.print(
            Text(f"\n{text_table(list(entry.study.glossary.items()), out.width, numbers=2)}", style="dim")
        )
    if entry.result and entry.verdicts:
        out.print(Text("\n" + explain_tables(ledger_records([entry]), out.width), style="dim"))
    if entry.withdrawn and not verbose and hide_own:
        out.print(f"\nWithdrawn claims: {len(entry.withdrawn)}. Use --verdict withdrawn to see them.")
    elif entry.withdrawn:
        out.print(Text("withdrawn claims", style="bold"))
        for claim in entry.withdrawn:
            lines = wrap_words(
                f"{claim.statement.removesuffix('.')} ({claim.id}, {claim.origin})", out.width - INDENT
            )
            out.print(Text.assemble((WITHDRAWN.ljust(INDENT), "dim"), f"\n{INDENT * ' '}".join(lines)))
            _print_indented(out, format_withdrawal(claim))


def _describe_registration(entry: Entry) -> str:
    """Return a sentence on which claims were registered before the run."""
    late = sum(format_registration_time(verdict) == "after" for verdict in entry.verdicts)
    if not late:
        return "All claims were registered before this run."
    return f"{late} of {len(entry.verdicts)} claims were registered after this run and are marked, the others before."


def print_smoke_run(out: Console, entry: Entry) -> None:
    """Print that a smoke run tests no claim, and the command that tests the claims.

    Args:
        out: The console.
        entry: The study with its verdicts, none of which is tested.
    """
    _print_run(out, entry)
    out.print("Everything ran. A smoke run is too small to test a claim. To test the claims:")
    out.print(Text(f"trialogue run {entry.study.name}"))


def _print_run(out: Console, entry: Entry) -> None:
    """Print the question of a study and the name of the result."""
    out.print(Text(f"{entry.study.name}: {entry.study.question}", style="bold"))
    out.print(Text(f"result {format_result(entry.result)} ({entry.scale})", style="dim"))


def print_headlines(out: Console, entry: Entry, committed: Entry | None = None, count: int = 5) -> None:
    """Print the verdicts that differ from the committed result, and the number of claims by verdict.

    A claim that the run leaves undecided is not among them. Other claims follow until `count` claims are printed: one
    per published statement, the refuted ones first and the undecided ones last.

    Args:
        out: The console.
        entry: The study with its verdicts.
        committed: The study with the verdicts of the committed result. None if there is no other result.
        count: Number of claims to print (default: 5). All verdicts that differ are printed.
    """
    before = {verdict.claim.id: verdict for verdict in committed.verdicts} if committed else {}
    changed = [
        verdict
        for verdict in entry.verdicts
        if verdict.claim.id in before
        and verdict.answer != before[verdict.claim.id].answer
        and "not tested" not in (verdict.answer, before[verdict.claim.id].answer)
    ]
    news = [verdict for verdict in changed if verdict.answer != "undecided"]
    verdicts = sorted(entry.verdicts, key=lambda one: (one.answer == "undecided", ANSWERS.index(one.answer)))
    first = {verdict.claim.statement_id or verdict.claim.id: verdict for verdict in reversed(verdicts)}
    ranked = sorted(
        verdicts,
        key=lambda one: (
            one not in news,
            one.claim.origin == "ours",
            first[one.claim.statement_id or one.claim.id] is not one,
        ),
    )
    _print_run(out, entry)
    shown_claims = ranked[: max(count, len(news))]
    records = ledger_records([replace(entry, verdicts=tuple(shown_claims), withdrawn=())])
    tested = sum(verdict.answer != "not tested" for verdict in entry.verdicts)
    if before and tested:
        differ = "1 verdict differs" if len(news) == 1 else f"{len(news) or 'No'} verdicts differ"
        shown = " (shown first)" if news else ""
        out.print(Text(f"{differ} from the committed result{shown}.", style="bold"))
        if undecided := len(changed) - len(news):
            out.print(f"Claims that only the committed result decides: {undecided}.")
    out.print()
    for verdict, record in zip(shown_claims, records, strict=True):
        if not tested:  # The reason is printed once, below.
            record["reason"] = None
        more = [f"claim: {verdict.claim.id}"]
        if verdict in news:
            more.append(f"committed result: {' '.join(_format_verdict(before[verdict.claim.id]).split())}")
        text = Text(format_claim(record, out.width, more=more))
        text.stylize(COLOURS[verdict.answer], 0, len(verdict.answer))
        out.print(text)
    out.print(Text("\n" + explain_tables(records, out.width) + "\n", style="dim"))
    out.print(
        Text(
            f"{len(shown_claims)} of {len(ranked)} claims are shown, one per statement and the refuted ones first. "
            f"All claims: {_count_verdicts(entry)}"
        )
    )
    for line in () if tested else _explain_untested(entry):
        out.print(Text(line, style="dim"))


def print_own_run(out: Console, committed: Entry, own: Entry, *, verbose: bool = False) -> None:
    """Print the verdicts of a user's run that differ from those of the committed result.

    Args:
        out: The console.
        committed: The study with the verdicts from the committed result.
        own: The study with the verdicts from the user's run.
        verbose: Also print the verdicts that are the same, and numbers of claims that were not tested (default: False).
    """
    before = {verdict.claim.id: verdict for verdict in committed.verdicts}
    title = f"{format_result(own.result)} ({own.scale})"
    lines, same = [], 0
    for verdict in own.verdicts:
        earlier = before.get(verdict.claim.id)
        if not verbose and (verdict.answer == "not tested" or (earlier and earlier.answer == verdict.answer)):
            same += verdict.answer != "not tested"
            continue
        shown = _format_verdict(earlier) if earlier else ABSENT
        lines.append((verdict.claim.heading, shown, _format_verdict(verdict)))
    if lines:
        heads = (
            "claim",
            f"committed\n{committed.result.hash if committed.result else ABSENT}",
            f"yours\n{own.result.hash if own.result else ABSENT}",
        )
        out.print(grid(title, heads, lines, numbers=3))
    else:
        out.print(Text(title, style="bold"))
    if same:
        rest = "the others" if lines else f"all {same}"
        out.print(
            f"The verdicts on {rest} are the same as those of the committed result. Use --verbose to see them."
        )
    for line in _explain_untested(own):
        out.print(Text(line, style="dim"))


def _format_verdict(verdict: Verdict) -> str:
    if math.isnan(verdict.estimate):
        return verdict.answer
    return f"{verdict.answer}\n{_format_verdict_numbers(verdict)}"


def _format_verdict_numbers(verdict: Verdict) -> str:
    interval = format_interval(verdict)
    estimate = format_number(verdict.estimate)
    return estimate if interval == ABSENT else f"{estimate} {interval}"


def _explain_untested(entry: Entry) -> list[str]:
    """Return one line per reason for which claims were not tested, and the command that tests them."""
    by_reason: dict[str, list[str]] = {}
    for verdict in entry.verdicts:
        if verdict.answer == "not tested":
            by_reason.setdefault(verdict.reason, []).append(verdict.claim.heading.removesuffix("."))
    lines = [
        f"not tested ({reason}): "
        + (f"all {len(claims)} claims" if len(claims) == len(entry.study.claims) else "; ".join(claims))
        for reason, claims in by_reason.items()
    ]
    if entry.result and lines and _is_untested(entry):
        lines.append(f"To test the claims: trialogue run {entry.study.name}")
    return lines


def print_unselected(out: Console, own: Entry) -> None:
    """Print that no claim of a user's run is selected, which verdicts it has, and what to run if it has none.

    Args:
        out: The console.
        own: The study with all verdicts from the user's run.
    """
    untested = {verdict.reason for verdict in own.verdicts} if _is_untested(own) else set()
    why = f"All of its claims are not tested: {' and '.join(sorted(untested))}."
    lines = [f"{format_result(own.result)}: no claim is selected."]
    lines += (
        [why, f"To test the claims: trialogue run {own.study.name}"]
        if untested
        else [f"All: {_count_verdicts(own)}"]
    )
    out.print(Text("\n".join(part for line in lines for part in wrap_words(line, out.width))))


def _is_untested(entry: Entry) -> bool:
    """Return whether a result tested no claim."""
    return all(verdict.answer == "not tested" for verdict in entry.verdicts)


def _count_verdicts(entry: Entry) -> str:
    """Return the number of claims by verdict, for example "3 hold, 1 refuted"."""
    counts = Counter(verdict.answer for verdict in entry.verdicts)
    return ", ".join(
        f"{number} {'hold' if answer == 'holds' and number > 1 else answer}"
        for answer, number in counts.items()
    )


def _print_indented(out: Console, text: str, style: str = "dim") -> None:
    out.print(Padding(Text(text, style=style), (0, 0, 0, INDENT), expand=False))
