"""Overview of undecided claims and of the computing time that would decide them, as plain text of a given width."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

from trialogue.display.columns import text_table, wrap_words
from trialogue.display.numbers import ABSENT
from trialogue_lab.ledger.counts import Record

_HINTS = (
    "trialogue ledger STUDY --verdict undecided: the claims of a study, with what each needs.",
    "trialogue ledger --verdict undecided --verbose: the claims of all studies.",
)


def undecided_overview(records: Sequence[Record], width: int) -> str:
    """Return how many undecided claims each study has, and which runs would decide them, the cheapest first.

    Args:
        records: Records of undecided claims.
        width: Width of the text.
    """
    by_preset = defaultdict[tuple[str, str], list[Record]](list)
    others = defaultdict[str, list[Record]](list)
    for record in records:
        if record["larger_preset"]:
            by_preset[record["study"], record["larger_preset"]].append(record)
        else:
            others[record["study"]].append(record)
    text = (
        "Undecided claims, and the number of repetitions with which a run would decide each of them with a probability "
        "of 0.8, if the measured effect is the true one."
    )
    blocks = ["\n".join(wrap_words(text, width))]
    if by_preset:
        blocks.append(f"Decided by a preset, cheapest first\n{text_table(_preset_rows(by_preset), width)}")
        note = (
            f"core hours: of the whole run ({ABSENT}: not estimated, because it also changes other settings)."
        )
        blocks.append("\n".join(wrap_words(note, width)))
    if others:
        blocks.append(
            f"Decided by no preset, fewest repetitions first\n{text_table(_other_rows(others), width)}"
        )
        note = (
            "now: repetitions of the result. needed: smallest and largest number. not estimated: claims on shares, or "
            "claims that more than 10,000 repetitions would decide. The command `trialogue run STUDY --help` lists the "
            "field with the repetitions, for example --seeds."
        )
        blocks.append("\n".join(wrap_words(note, width)))
    blocks.append("\n".join(line for hint in _HINTS for line in wrap_words(hint, width)))
    return "\n\n".join(blocks)


def _preset_rows(groups: dict[tuple[str, str], list[Record]]) -> list[tuple[str, ...]]:
    """Return a table with one row per study and preset."""

    def hours(found: Sequence[Record]) -> float:
        return math.inf if found[0]["larger_hours"] is None else found[0]["larger_hours"]

    rows: list[tuple[str, ...]] = [("study", "claims", "preset", "core hours", "now", "needed")]
    for (study, preset), found in sorted(groups.items(), key=lambda group: hours(group[1])):
        time = ABSENT if math.isinf(hours(found)) else f"{hours(found):.2g}"
        rows.append((study, str(len(found)), preset, time, *_format_repetitions(found)))
    return rows


def _other_rows(groups: dict[str, list[Record]]) -> list[tuple[str, ...]]:
    """Return a table with one row per study."""
    rows: list[tuple[str, ...]] = [("study", "claims", "not estimated", "now", "needed")]
    for study, found in sorted(groups.items(), key=lambda group: min(map(_needed, group[1]))):
        unknown = sum(math.isinf(_needed(record)) for record in found)
        rows.append((study, str(len(found)), str(unknown or ABSENT), *_format_repetitions(found)))
    return rows


def _needed(record: Record) -> float:
    return record["replications_to_decide"] or math.inf


def _format_repetitions(records: Iterable[Record]) -> tuple[str, str]:
    """Return the repetitions that claims have and those that they need, each as a range."""
    known = [record for record in records if not math.isinf(_needed(record))] or list(records)
    now = sorted(record["replications"] for record in known)
    needed = [float(f"{number:.2g}") for number in sorted(map(_needed, known)) if not math.isinf(number)]
    return _format_range(now), _format_range(needed)


def _format_range(numbers: Sequence[float]) -> str:
    """Return the smallest and the largest of sorted numbers, for example "8 to 1,200"."""
    ends = [*numbers[:1], *numbers[-1:]]
    return " to ".join(dict.fromkeys(f"{number:,.0f}" for number in ends)) or ABSENT
