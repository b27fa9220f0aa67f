"""Lists of the verdicts on claims, as plain text of a given width."""

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from trialogue.display.columns import wrap_words
from trialogue.display.numbers import ABSENT, format_number, plain_exponent
from trialogue_lab.ledger.claims.answers import ALPHA, INSTEAD, LATE, NOT_PRINTED, WITHDRAWN, Origin
from trialogue_lab.ledger.counts import Record
from trialogue_lab.ledger.pages.claim_cells import (
    CHOSEN,
    format_condition,
    format_estimate,
    is_chosen,
    is_exact,
)

ANSWERS = ("refuted", "undecided", "altered since the run", "not tested", "holds")
"""Verdicts in the order in which claims are listed."""

INDENT = 12
"""Width of the column of verdicts."""

_SIMILAR = 3
"""Smallest number of claims with the same texts that are listed as a group."""

_HEADINGS: dict[Origin, str] = {"published": "Claims of the publication", "ours": "Claims of this project"}
_SIGNS = {"above": ">", "below": "<", "equal": "="}
_MEASURED = re.compile(r"\(((?:[^()]|\([^()]*\))*)\)\.?$")
"""What is measured, in parentheses at the end of a registered statement."""

_LOGARITHM = re.compile(r"(?:smallest )?(natural|decimal|binary) logarithm\b")
"""A measured number that is a logarithm."""

_FACTORS = {"natural": "factor", "decimal": "decimal factor", "binary": "binary factor"}
"""Unit of the number without the logarithm, by the kind of the logarithm."""

_SCOPE = re.compile(r" \(for [^()]*\)\.?$")
"""The models or data to which a registered statement is limited, in parentheses at its end."""

_DOCUMENT = re.compile(
    r"^(Thesis|Distributional simplicity bias|Memorization in attention-only transformers)[,:]? "
)
"""The publication at the beginning of a place, which the heading of a study names."""

_REMARK = re.compile(r" \([^()]*\)(?=$| and )")
"""A remark in parentheses after a place, which is printed in full with `verbose`."""

_SENTENCES = re.compile(r"(?<=\.) (?=[A-Z])")
"""The spaces between the sentences of a setting."""

EXPLANATIONS = {
    "interval": "Numbers are an estimate and its interval [low, high]. A claim holds if the whole interval satisfies "
    '"holds if", is refuted if no value of the interval does, and is undecided otherwise.',
    "exact": "exact: a number without sampling error, which decides the claim alone.",
    "chosen": f"{CHOSEN}: this project chose the threshold or margin, because the publication gives none.",
    "larger": "would probably: with a probability of 0.8, if the measured effect is the true one. A run with other "
    "values of its fields tests the same claims in another setting.",
    "measured": "measured: what the number is. It may be an error or a ratio and need not have the unit of the "
    "published number.",
}
"""Explanations of the words of a list of claims, by word."""

_UNCHANGED = "is unchanged"
"""End of the remark on a correction that did not change the mean."""


def format_criterion(record: Record) -> str:
    """Return the criterion of a claim as text, for example "> 0.5" or "= 1 ± 0.01".

    If this project chose the threshold or margin because the publication gives none, `CHOSEN` is added. A threshold
    that exceeds a short number by rounding error only is shown as "≤" or "≥" that number.

    Args:
        record: Record of a claim that is not withdrawn.
    """
    sign, threshold = _SIGNS[record["direction"]], record["threshold"]
    short = float(f"{threshold:.3g}")
    if abs(threshold - short) <= 1e-6 * abs(threshold):
        includes = {"<": short < threshold, ">": short > threshold}
        sign = {"<": "≤", ">": "≥"}[sign] if includes.get(sign) else sign
    margin = " ± " + plain_exponent(f"{record['margin']:g}") if record["margin"] else ""
    return f"{sign} {plain_exponent(f'{threshold:g}')}{margin}{CHOSEN * is_chosen(record)}"


def format_numbers(record: Record) -> str:
    """Return estimate and confidence interval of a claim as text, for example "0.149 [0.088, 0.217]".

    Args:
        record: Record of a claim.
    """
    estimate = format_number(record["estimate"])
    if record["low"] is None or record["unit"] == "exact":
        kind = "exact" if is_exact(record) else "simulated" if record["unit"] == "exact" else ""
        return f"{estimate} ({kind})" if kind and estimate != ABSENT else estimate
    return f"{estimate} [{format_number(record['low'])}, {format_number(record['high'])}]"


def is_late(record: Record) -> bool:
    """Return whether a measured claim was registered after the run.

    Args:
        record: Record of a claim.
    """
    return not record["registered"] and bool(record["replications"])


def claims_text(
    records: Sequence[Record], width: int, *, hide_own: bool = False, verbose: bool = False
) -> str:
    """Return the verdicts on the claims of one study, the published claims first.

    Args:
        records: Records of claims. Withdrawn claims are left out.
        width: Width of the text.
        hide_own: Whether to leave out the claims of this project that hold (default: False).
        verbose: Add id, source, registered statement and all remarks of each claim (default: False).
    """
    blocks = []
    for origin, heading in _HEADINGS.items():
        found = [
            record for record in records if record["origin"] == origin and record["verdict"] != WITHDRAWN
        ]
        if not found:
            continue
        hidden = [
            record for record in found if hide_own and origin == "ours" and record["verdict"] == "holds"
        ]
        shown = [record for record in found if record not in hidden]
        counts = Counter(record["verdict"] for record in found)
        verdicts = ", ".join(f"{counts[answer]} {_plural(answer)}" for answer in ANSWERS if counts[answer])
        lines = wrap_words(f"{heading}: {len(found)} ({verdicts})", width) + _list_claims(
            shown, width, verbose
        )
        if hidden:
            rest = "the claims of this project that hold"
            lines += wrap_words(f"Not shown: {rest}. Use --origin ours or --verbose.", width)
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def explain_tables(records: Iterable[Record], width: int) -> str:
    """Return an explanation of the words in lists of claims.

    Args:
        records: Records of the claims in the lists.
        width: Width of the text.
    """
    used = {word for record in records if record["verdict"] != WITHDRAWN for word in _used_words(record)}
    sentences = [text for word, text in EXPLANATIONS.items() if word in used]
    return "\n".join(wrap_words(" ".join(sentences), width))


def _list_claims(records: Sequence[Record], width: int, verbose: bool) -> list[str]:
    """Return lines with the settings that all claims share, and the claims, each note after the first that has it."""
    settings = [_SENTENCES.split(record.get("setting") or "") for record in records]
    common = [
        one[0] for one in itertools.takewhile(lambda one: len(set(one)) == 1, zip(*settings, strict=False))
    ]
    several = len({_format_repetitions(record) for record in records if record["low"] is not None} - {""}) > 1
    texts = [describe_intervals(records), f"Setting: {' '.join(common)}" if any(common) else ""]
    lines = [line for text in texts if text for line in wrap_words(text, width)]
    lines += [""] if lines else []
    notes: dict[str, int] = {}
    marked = []
    for record, setting in sorted(
        zip(records, settings, strict=True), key=lambda pair: ANSWERS.index(pair[0]["verdict"])
    ):
        note = " ".join(setting[len(common) :])
        marked.append((record, f" [{notes.setdefault(note, len(notes) + 1)}]" if note else ""))
    groups: dict[object, list[tuple[Record, str]]] = {}
    for place, (record, mark) in enumerate(marked):
        is_alone = verbose or _list_notes(record, verbose) or not find_measured(record)
        groups.setdefault(place if is_alone else _common_texts(record), []).append((record, mark))
    unprinted = {f" [{number}]": note for note, number in notes.items()}
    for group in groups.values():
        if len(group) >= _SIMILAR:
            blocks = [(_format_similar(group, width, several=several), [mark for _, mark in group])]
        else:
            blocks = [
                (
                    format_claim(
                        record,
                        width,
                        mark,
                        verbose=verbose,
                        repeated=_format_repetitions(record) if several else "",
                    ),
                    [mark],
                )
                for record, mark in group
            ]
        for block, marks in blocks:
            lines.append(block)
            for mark in marks:
                if note := unprinted.pop(mark, ""):
                    text = wrap_words(f"{mark.strip()} {note}", width - INDENT)
                    lines += [f"{INDENT * ' '}{line}" for line in text]
    return lines


def _common_texts(record: Record) -> tuple[str, ...]:
    """Return the verdict and the texts that similar claims share: criterion, measured number and publication."""
    return (record["verdict"], f"each holds if {format_criterion(record)}", *_list_details(record))


def _format_heading(record: Record, mark: str) -> str:
    """Return the title of a claim, the place in the publication in parentheses, and a mark."""
    place = _REMARK.sub("", _DOCUMENT.sub("", record["source"] or ""))
    if place[:1].isdigit():
        place = f"section{'s' if ' and ' in place else ''} {place}"
    shown = f" ({place[:1].upper()}{place[1:]})" if place else ""
    return f"{(record['title'] or record['statement']).removesuffix('.')}{shown}{mark}"


def _format_repetitions(record: Record) -> str:
    """Return number and unit of the repetitions of a claim, for example " (5 × training)". Empty if it is exact."""
    return "" if record["unit"] == "exact" else f" ({record['replications']} × {record['unit']})"


def _format_similar(group: Sequence[tuple[Record, str]], width: int, *, several: bool) -> str:
    """Return claims with the same `_common_texts`, which are printed once. `several` adds the repetitions of each."""
    verdict, *common = _common_texts(group[0][0])
    lines = wrap_words(f"{len(group)} claims, {'; '.join(common)}", width - INDENT)
    for record, mark in group:
        lines += wrap_words(f"- {_format_heading(record, mark)}", width - INDENT)
        lines.append(f"  {format_numbers(record)}{_format_repetitions(record) if several else ''}")
    return f"{_shorten_verdict(verdict):{INDENT}}" + f"\n{INDENT * ' '}".join(lines)


def format_claim(
    record: Record,
    width: int,
    mark: str = "",
    more: Sequence[str] = (),
    *,
    repeated: str = "",
    verbose: bool = False,
) -> str:
    """Return a claim as text: verdict, title and place in the publication, then the numbers and remarks.

    Args:
        record: Record of a claim that is not withdrawn.
        width: Width of the text.
        mark: Text after the title, for example the number of a note (default: none).
        more: Further remarks (default: none).
        repeated: Text after the numbers, for example number and unit of the repetitions (default: none).
        verbose: Add id, source, registered statement and all remarks (default: False).
    """
    room = width - INDENT
    details = _list_details(record)
    joined = "; ".join(details)
    texts = (
        _format_heading(record, mark),
        f"{'not measured' if record['estimate'] is None else format_numbers(record)}{repeated}, holds if "
        f"{format_criterion(record)}",
        *([joined] if details and len(joined) <= room else details),
        *_list_notes(record, verbose),
        *(_list_registration(record) if verbose else ()),
        *more,
    )
    lines = [line for text in texts for line in wrap_words(text, room)]
    return f"{_shorten_verdict(record['verdict']):{INDENT}}" + f"\n{INDENT * ' '}".join(lines)


def _shorten_verdict(verdict: str) -> str:
    return "altered" if verdict.startswith("altered") else verdict


def _list_details(record: Record) -> list[str]:
    """Return what the number of a claim measures, and what the publication says."""
    measured = find_measured(record)
    details = [f"measured: {measured}"] if measured else []
    if (found := _LOGARITHM.match(measured)) and record["estimate"] is not None:
        unit = _FACTORS[found[1]]
        factor = f"{format_estimate(record, unit)}, holds if {format_condition(record, unit)}"
        details.append(f"without the logarithm: {factor}")
    return details + ([] if record["published"] == NOT_PRINTED else [f"published: {record['published']}"])


def find_measured(record: Record) -> str:
    """Return a description of the measured number of a claim, by default from its registered statement.

    Args:
        record: Record of a claim.

    Returns:
        A noun phrase, for example "largest error over all distributions". Empty if it is unknown, or if the statement
        itself is shown instead of a title.
    """
    if not record["title"] or record["measured"]:
        return str(record["measured"] or "")
    found = _MEASURED.search(_SCOPE.sub("", record["statement"]))
    # Equations are in parentheses, too.
    if not found or found[1].startswith(("for ", "as ")) or not re.search("[a-z]{3}", found[1]):
        return ""
    return re.sub(r"\blaw(?=s?\b)", "distribution", found[1])


def _list_notes(record: Record, verbose: bool) -> list[str]:
    """Return the remarks that change the meaning of a verdict, or all remarks if `verbose`."""
    notes = [LATE] if is_late(record) else []
    # The numbers show why a claim holds, is refuted or has an interval around the threshold.
    is_plain = record["verdict"] in ("holds", "refuted") or (
        record["verdict"] == "undecided" and record["low"] is not None and not verbose
    )
    if record.get("reason") and not is_plain and ": no rows of the kind" not in record["reason"]:
        notes.append(record["reason"])
    notes += [
        remark.removeprefix("the verdict is ") for remark in record.get("remarks") or () if remark != LATE
    ]
    if record["verdict"] == "undecided" and not verbose:
        notes += _describe_shares(record)
    return [note for note in notes if verbose or not note.endswith(_UNCHANGED)]


def _describe_shares(record: Record) -> list[str]:
    """Return how many repetitions an undecided claim on shares needs. Empty for other claims."""
    if "; if all " not in (record.get("reason") or ""):
        return []
    share = record["threshold"] if record["direction"] == "above" else 1 - record["threshold"]
    # The interval is narrowest if the share is 1 in all repetitions. It then starts at the root of half the error rate.
    least = math.ceil(math.log(record["alpha"] / 2) / math.log(share)) if 0 < share < 1 else 0
    if least <= record["replications"]:
        return ["repetitions that would decide it: not estimated for shares"]
    return [f"at least {least} repetitions are needed to confirm it (now {record['replications']})"]


def _list_registration(record: Record) -> list[str]:
    """Return the source, the id and the registered statement of a claim."""
    texts = [f"source: {record['source']}", f"claim: {record['claim']}{_format_repetitions(record)}"]
    return texts + ([f"registered statement: {record['statement']}"] if record["title"] else [])


def describe_intervals(records: Iterable[Record]) -> str:
    """Return a sentence on the confidence level of intervals and the number of repetitions. May be empty.

    Args:
        records: Records of claims that are not withdrawn.
    """
    sampled = [record for record in records if record["unit"] != "exact" and record["low"] is not None]
    if not sampled:
        return ""
    levels = sorted({f"{100 * (1 - record['alpha']):.4g}" for record in sampled}, key=float)
    units = dict.fromkeys(
        (record["unit"], record["replications"])
        for record in sorted(sampled, key=lambda record: (record["unit"], record["replications"]))
    )
    repeated = ", ".join(f"{count} × {unit}" for unit, count in units)
    level = " to ".join(dict.fromkeys((levels[0], levels[-1])))
    each = "Each interval [low, high] has" if len(sampled) > 1 else "The interval [low, high] has"
    text = f"{each} a confidence level of {level} %, from independent repetitions ({repeated})."
    if levels[-1] != f"{100 * (1 - ALPHA):g}":
        text += f" All registered intervals of these claims together have at least {100 * (1 - ALPHA):g} %."
    return text


def _plural(answer: str) -> str:
    return "hold" if answer == "holds" else answer


def _used_words(record: Record) -> list[str]:
    """Return the words of the row of a claim that need an explanation."""
    words = ["exact"] * is_exact(record) + ["interval"] * (record["unit"] != "exact")
    words += ["measured"] * bool(find_measured(record))
    words += ["larger"] * any(INSTEAD in remark for remark in record.get("remarks") or ())
    return words + ["chosen"] * is_chosen(record)
