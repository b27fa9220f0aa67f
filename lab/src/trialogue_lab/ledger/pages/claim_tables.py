"""Tables of the verdicts on claims, as plain text of a given width."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from trialogue.display.columns import text_table, wrap_words
from trialogue.display.numbers import ABSENT, format_number, plain_exponent
from trialogue_lab.ledger.claims.answers import ALPHA, LATE, NOT_PRINTED, WITHDRAWN, Origin
from trialogue_lab.ledger.counts import Record

ANSWERS = ("refuted", "undecided", "altered since the run", "not tested", "holds")
"""Verdicts in the order of the rows of a table."""

_WIDE = 110
"""Width from which the published numbers have a column of their own."""

_HEADINGS: dict[Origin, str] = {"published": "Claims of the publication", "ours": "Claims of this project"}
_SIGNS = {"above": ">", "below": "<", "equal": "="}
_MEASURED = re.compile(r"\(((?:[^()]|\([^()]*\))*)\)\.?$")
"""What is measured, in parentheses at the end of a registered statement."""

CHOSEN = "*"
"""Mark of a threshold or margin that this project chose."""

EXPLANATIONS = {
    "interval": 'A claim holds if its whole interval satisfies "holds if", is refuted if no value of the interval '
    "does, and is undecided otherwise.",
    "exact": "exact: a number without sampling error, which decides the claim alone.",
    "chosen": f"{CHOSEN}: this project chose the threshold or margin, because the publication gives none.",
    "measured": '(measured: …): what the measured number is. Compare it with "holds if". It may be an error or a ratio '
    "and need not have the unit of the published number.",
}
"""Explanations of the words of a table, by word."""

_LATE_NOTE = "This claim was registered after the run, so its data may have suggested the claim."


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
    return f"{sign} {plain_exponent(f'{threshold:g}')}{margin}{CHOSEN * _is_chosen(record)}"


def _is_chosen(record: Record) -> bool:
    """Return whether this project chose the threshold or margin of a claim, and the publication gives none."""
    return bool(record["grade"] or (record["margin"] and record["origin"] == "published"))


def _is_exact(record: Record) -> bool:
    """Return whether the number of a claim has no sampling error. Comparisons with simulations have an error rate."""
    return record["unit"] == "exact" and record["alpha"] is None


def format_numbers(record: Record) -> str:
    """Return estimate and confidence interval of a claim as text, for example "0.149 [0.088, 0.217]".

    Args:
        record: Record of a claim.
    """
    estimate = format_number(record["estimate"])
    if record["low"] is None or record["unit"] == "exact":
        return f"{estimate} (exact)" if _is_exact(record) and estimate != ABSENT else estimate
    return f"{estimate} [{format_number(record['low'])}, {format_number(record['high'])}]"


def is_late(record: Record) -> bool:
    """Return whether a measured claim was registered after the run.

    Args:
        record: Record of a claim.
    """
    return not record["registered"] and bool(record["replications"])


def claims_text(records: Sequence[Record], width: int, *, hide_own: bool = False) -> str:
    """Return the verdicts on the claims of one study, the published claims first.

    Args:
        records: Records of claims. Withdrawn claims are left out.
        width: Width of the text.
        hide_own: Whether to leave out the claims of this project that hold (default: False).
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
        lines = wrap_words(f"{heading}: {len(found)} ({verdicts})", width)
        if shown:
            lines += [_format_table(shown, width), *wrap_words(describe_intervals(shown), width)]
        if hidden:
            rest = "the claims of this project that hold"
            lines += wrap_words(f"Not shown: {rest}. Use --origin ours or --verbose.", width)
        blocks.append("\n".join(line for line in lines if line))
    return "\n\n".join(blocks)


def explain_tables(records: Iterable[Record], width: int) -> str:
    """Return an explanation of the words in tables of claims.

    Args:
        records: Records of the claims in the tables.
        width: Width of the text.
    """
    used = {word for record in records if record["verdict"] != WITHDRAWN for word in _used_words(record)}
    sentences = [text for word, text in EXPLANATIONS.items() if word in used]
    return "\n".join(wrap_words(" ".join(sentences), width))


def _format_table(records: Sequence[Record], width: int) -> str:
    """Return a table of claims, and the notes on them."""
    notes: dict[str, int] = {}
    ranked = sorted(records, key=lambda record: ANSWERS.index(record["verdict"]))
    is_wide = width >= _WIDE and any(record["published"] != NOT_PRINTED for record in records)
    # The publication does not make the claims of this project, but it may say something on the same question.
    says = "published" if records[0]["origin"] == "published" else "publication says"
    lines = [["verdict", "claim", *([says] if is_wide else []), "measured", "holds if"]]
    for record in ranked:
        marks = "".join(f" [{notes.setdefault(note, len(notes) + 1)}]" for note in _list_notes(record))
        claim = f"{record['title'] or record['statement']}{marks}"
        if measured := find_measured(record):
            claim += f"\n(measured: {measured})"
        published = "" if record["published"] == NOT_PRINTED else record["published"]
        if published and not is_wide:
            claim += f"\n{says}: {published}"
        numbers = format_numbers(record).replace(" [", "\n[")
        verdict = "altered" if record["verdict"].startswith("altered") else record["verdict"]
        lines.append([verdict, claim, *([published] if is_wide else []), numbers, format_criterion(record)])
    texts = [text_table(lines, width, numbers=len(lines[0]))]
    for note, number in notes.items():
        texts += wrap_words(f"[{number}] {note}", width)
    return "\n".join(texts)


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
    found = _MEASURED.search(record["statement"])
    # Trained models are named in parentheses, too, and so are equations.
    if not found or found[1].startswith("for ") or not re.search("[a-z]{3}", found[1]):
        return ""
    return re.sub(r"\blaw(?=s?\b)", "distribution", found[1])


def _list_notes(record: Record) -> list[str]:
    """Return the notes that a reader needs to understand one verdict, as sentences."""
    notes = [_LATE_NOTE] if is_late(record) else []
    if record.get("setting"):
        notes.append(record["setting"])
    # The numbers show why a claim holds, is refuted or has an interval around the threshold.
    is_plain = record["verdict"] in ("holds", "refuted") or (
        record["verdict"] == "undecided" and record["low"] is not None
    )
    if record.get("reason") and not is_plain:
        notes.append(record["reason"])
    return notes + [remark for remark in record.get("remarks") or () if remark != LATE]


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
    words = ["exact"] * _is_exact(record) + ["interval"] * (record["unit"] != "exact")
    words += ["measured"] * bool(find_measured(record))
    return words + ["chosen"] * _is_chosen(record)
