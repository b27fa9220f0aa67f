"""Terminal output of the differences between two results of a study."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from trialogue.display.columns import wrap_words
from trialogue.display.numbers import plain_exponent
from trialogue.display.terminal import grid
from trialogue_lab.ledger.pages.claim_cells import CHOSEN
from trialogue_lab.ledger.pages.claim_tables import EXPLANATIONS, INDENT
from trialogue_lab.ledger.pages.comparison import (
    TOLERANCE,
    ComparedClaim,
    Comparison,
    is_equal,
    is_one_sided,
)
from trialogue_lab.ledger.pages.terminal import COLOURS, format_result
from trialogue_lab.ledger.runs.results import Result

_CHANGED = "changed"


def print_comparison(
    out: Console, comparison: Comparison, first: Result, second: Result, *, every: bool = False
) -> None:
    """Print the differences between two results of a study.

    Args:
        out: The console.
        comparison: The differences of configs, claims and tables.
        first: The first result.
        second: The second result.
        every: Also print what is equal in both results, or has a value in only one (default: False).
    """
    pair = (format_result(first), format_result(second))
    out.print(Text(str(comparison), style="bold"))
    claims = [claim for claim in comparison.claims if every or not is_equal(claim)]
    hidden_claims, hidden = len(comparison.claims) - len(claims), 0
    _print_claims(out, claims, pair)
    out.print(grid("settings", ("field", *pair), comparison.config))
    one_sided = 0
    for title, lines in comparison.tables:
        shown = [line for line in lines if every or not (is_equal(line) or is_one_sided(line))]
        one_sided += 0 if every else sum(map(is_one_sided, lines))
        hidden += len(lines) - len(shown)
        if shown:
            out.print(grid(title, ("cell", *pair, "difference"), shown))
    if one_sided:
        out.print(f"Table cells with a value in only one result: {one_sided:,}. Use --all to see them.")
    counts = {"claims": hidden_claims, "table cells": hidden - one_sided}
    if equal := " and ".join(f"{count:,} {name}" for name, count in counts.items() if count):
        tolerance = plain_exponent(f"{TOLERANCE:g}")
        out.print(
            f"Not shown: {equal} that are equal up to rounding. Use --all to see them. Numbers are equal if their "
            f"relative difference is at most {tolerance}, or if both are exact and at most {tolerance}."
        )


def _print_claims(out: Console, claims: Sequence[ComparedClaim], pair: tuple[str, str]) -> None:
    """Print both verdicts on each claim. Claims whose verdict changed come first."""
    if not claims:
        return
    out.print()
    numbers = "".join(text for claim in claims for text in (claim.first, claim.second))
    used = {
        "interval": "[" in numbers,
        "exact": "(exact)" in numbers,
        "chosen": any(claim.criterion.endswith(CHOSEN) for claim in claims),
        "measured": any(claim.measured for claim in claims),
    }
    legend = " ".join(text for word, text in EXPLANATIONS.items() if used.get(word))
    longest = max(map(len, pair)) + 1
    for claim in sorted(claims, key=lambda claim: claim.verdicts[0] == claim.verdicts[1]):
        before, after = claim.verdicts
        verdict = before if before == after else _CHANGED
        texts = [claim.title, f"holds if {claim.criterion}"]
        texts += [f"measured: {claim.measured}"] if claim.measured else []
        for name, text in zip(pair, (claim.first, claim.second), strict=True):
            answer, _, number = text.partition(": ")
            texts.append(f"{f'{name}:':{longest}} {number if before == after else f'{answer}, {number}'}")
        texts.append(f"{'difference:':{longest}} {claim.difference}")
        lines = [line for text in texts for line in wrap_words(text, out.width - INDENT)]
        shown = Text(f"{verdict.removesuffix(' since the run'):{INDENT}}" + f"\n{INDENT * ' '}".join(lines))
        shown.stylize(COLOURS.get(verdict, "magenta"), 0, INDENT)
        out.print(shown)
    out.print(Text("\n" + "\n".join(wrap_words(legend, out.width)) + "\n", style="dim"))
