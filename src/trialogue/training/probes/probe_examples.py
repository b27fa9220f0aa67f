"""Labelled texts for training a probe: reading, conversion to labelled prefixes, and splitting.

Each line of the JSONL file is an object with `prompt` and `completion`, or with `text` alone. It has either `label`, 1
for a correct and 0 for an erroneous text, or `error`, the offset of the first wrong character in the completion or null
for a correct completion.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from trialogue.errors import InputError, require_text
from trialogue.models.tokenization import Tokenization
from trialogue.randomness import numpy_generator
from trialogue.validation import Count, Natural, Probability, validated

_FIELDS = {"prompt", "completion", "text", "label", "error"}
_ALLOWED = [{*text, label} for text in (("prompt", "completion"), ("text",)) for label in ("label", "error")]
_HINT = (
    'give an object with "prompt" and "completion", or "text" alone, and with "label": 0 or 1, or "error": the '
    "offset of the first wrong character or null"
)


@dataclass(frozen=True)
class LabelledText:
    """Text with a label or an error position.

    Args:
        source: File and line, for error messages.
        prompt: Prompt, or None if the completion is the full text.
        completion: Completion of the prompt.
        label: 1 for a correct and 0 for an erroneous text, or None if the text has an error position.
        error: Offset of the first wrong character in the completion, or None if there is no error.
    """

    source: str
    prompt: str | None
    completion: str
    label: int | None = None
    error: int | None = None


class LabelledTexts(NamedTuple):
    """Labelled texts of a file and the SHA-256 hash of its bytes."""

    texts: list[LabelledText]
    sha256: str


def read_labelled_texts(path: str | PathLike[str]) -> LabelledTexts:
    """Read labelled texts from a JSONL file.

    Empty lines are skipped, and unknown fields are ignored.

    Args:
        path: Path of the file.

    Raises:
        InputError: If the file cannot be read or contains no texts, or if a line is not a labelled text in JSON.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError("data", str(path), f"cannot be read: {error.strerror or error}") from error
    texts = []
    for number, line in enumerate(content.split(b"\n"), 1):
        if line.strip():
            texts.append(_parse_labelled_text(f"{path} line {number}", line))
    if not texts:
        raise InputError("data", str(path), "the file contains no texts; add one JSON object per line")
    return LabelledTexts(texts, hashlib.sha256(content).hexdigest())


def _parse_labelled_text(source: str, line: bytes) -> LabelledText:
    shown = line[:60].decode("utf-8", "replace")
    try:
        record = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(source, shown, f"the line is not valid JSON: {error}") from None
    fields = _FIELDS & set(record) if isinstance(record, dict) else set()
    if fields not in _ALLOWED:
        raise InputError(source, shown, _HINT)
    for name in fields - {"label", "error"}:
        require_text(f"{source}: {name}", record[name])
    prompt, completion = record.get("prompt"), record.get("completion", record.get("text"))
    label, error_at = record.get("label"), record.get("error")
    if "label" in record and label not in (0, 1):
        raise InputError(f"{source}: label", label, "use 1 for correct, 0 for erroneous")
    if error_at is not None and (type(error_at) is not int or not 0 <= error_at <= len(completion)):
        hint = f"use null or the offset of a character in the completion, from 0 to {len(completion)}"
        raise InputError(f"{source}: error", error_at, hint)
    return LabelledText(source, prompt, completion, None if label is None else int(label), error_at)


@dataclass(frozen=True, kw_only=True)
class ProbeExamples:
    """Labelled prefixes of token sequences.

    Args:
        sequences: Token ids of each text.
        lengths: Lengths of the prefixes of each sequence, in increasing order.
        labels: 1 for correct and 0 for erroneous prefixes, (n,) int64, in the order of `lengths`.
        text: Index of the sequence of each prefix, (n,) int64, in the same order.
    """

    sequences: list[list[int]]
    lengths: list[list[int]]
    labels: Tensor
    text: Tensor

    @property
    def positions(self) -> int:
        """Total number of positions that the model evaluates, with one pass per sequence."""
        return sum(lengths[-1] + 1 for lengths in self.lengths)


@validated
def prefix_examples(
    texts: Sequence[LabelledText],
    tokenization: Tokenization,
    *,
    max_length: int | None = None,
    correct_prefixes: Count = 1,
    chat: bool = False,
    eos: bool = False,
    seed: Natural = 0,
) -> ProbeExamples:
    """Convert labelled texts to labelled prefixes of tokens.

    A text with a label gives one example, the full text. A text with an error position gives one erroneous prefix,
    which ends with the first wrong token. It also gives random correct prefixes, which end within the completion before
    the error. If the error is at the end of the completion, the wrong token is the end-of-sequence token.

    Args:
        texts: Labelled texts.
        tokenization: Tokenization of the model.
        max_length: Maximum number of tokens of a prefix. No limit by default.
        correct_prefixes: Maximum number of correct prefixes per text with an error position.
        chat: Whether to apply the chat template of the tokenizer to prompts.
        eos: Whether to append the end-of-sequence token to completions.
        seed: Seed for the choice of the correct prefixes.

    Raises:
        InputError: If a prefix exceeds `max_length`, or a completion has no tokens. Also if an error is at the end and
            `eos` is False, or if decoding the tokens does not reproduce a text with an error position.
    """
    if eos and tokenization.eos is None:
        raise InputError("eos", True, "the tokenizer has no end-of-sequence token; leave out eos")
    sequences: list[list[int]] = []
    lengths: list[list[int]] = []
    labels: list[int] = []
    for index, text in enumerate(texts):
        tokens, ends = _tokens_and_ends(text, tokenization, chat)
        begin = len(tokens) - len(ends)
        if eos and tokenization.eos is not None:
            tokens, ends = [*tokens, tokenization.eos], [*ends, len(text.completion.encode()) + 1]
        if not ends:
            raise InputError(text.source, text.completion, "the completion has no tokens; leave out the text")
        if text.label is not None:
            label_at = {len(tokens): text.label}
        else:
            wrong = _first_wrong(text, ends)
            before = numpy_generator(seed, "prefix", index).permutation(wrong)[:correct_prefixes]
            label_at = {begin + int(place) + 1: 1 for place in before}
            if wrong < len(ends):
                label_at[begin + wrong + 1] = 0
        longest = max(label_at)
        if max_length is not None and longest > max_length:
            hint = f"the model reads at most {max_length} tokens; shorten the text or leave it out"
            raise InputError(f"{text.source}: tokens", longest, hint)
        sequences.append(tokens[:longest])
        lengths.append(sorted(label_at))
        labels.extend(label_at[length] for length in sorted(label_at))
    counts = torch.tensor([len(label_at) for label_at in lengths])
    return ProbeExamples(
        sequences=sequences,
        lengths=lengths,
        labels=torch.tensor(labels),
        text=torch.arange(len(texts)).repeat_interleave(counts),
    )


def _first_wrong(text: LabelledText, ends: Sequence[int]) -> int:
    """Return the index of the first wrong token of the completion, or the number of tokens if none is wrong."""
    if text.error is None:
        return len(ends)
    offset = len(text.completion[: text.error].encode())
    wrong = int(np.searchsorted(ends, offset, side="right"))
    if wrong == len(ends):
        hint = "the error is after the last token; use eos, so that the end of sequence can be wrong"
        raise InputError(f"{text.source}: error", text.error, hint)
    return wrong


def _tokens_and_ends(
    text: LabelledText, tokenization: Tokenization, chat: bool
) -> tuple[list[int], list[int]]:
    """Return the tokens of the full text and the byte offset at which each token of the completion ends."""
    wanted = text.completion.encode()
    if chat and text.prompt is None:
        raise InputError(
            text.source, text.completion[:60], "the chat template needs a prompt; leave out chat or this text"
        )
    given = text.prompt or ""
    # The prompt is tokenized separately, as in generation.
    prompt = tokenization.chat(given) if chat else tokenization.encode(given)
    completion: list[int] = tokenization.tokenizer(text.completion, add_special_tokens=False)["input_ids"]
    surplus = 0
    if text.prompt is None or tokenization.bytes(completion) != wanted:
        # Tokenizers that add a leading space would add one before the completion, so the full text is tokenized.
        if not chat:
            full = tokenization.encode(given + text.completion)
            ends = np.cumsum([len(tokenization.bytes([token])) for token in full])
            cut = int(np.searchsorted(ends, ends[-1] - len(wanted), side="right")) if len(ends) else 0
            prompt, completion = full[:cut], full[cut:]
        surplus = len(tokenization.bytes(completion)) - len(wanted)
        if text.label is None and tokenization.bytes(completion)[max(surplus, 0) :] != wanted:
            hint = "decoding the tokens does not reproduce this text, so its error cannot be located; leave it out"
            raise InputError(text.source, text.completion[:60], hint)
    ends = np.cumsum([len(tokenization.bytes([token])) for token in completion]) - surplus
    return prompt + completion, [int(end) for end in ends]


class ExampleSplit(NamedTuple):
    """Indices (k,) int64 of the examples in each split."""

    train: Tensor
    selection: Tensor
    calibration: Tensor
    test: Tensor


@validated
def split_examples(
    texts: Sequence[LabelledText],
    examples: ProbeExamples,
    *,
    validation: Probability = 0.2,
    test: Probability = 0.1,
    by: Literal["text", "prompt"] = "text",
    seed: Natural = 0,
) -> ExampleSplit:
    """Split examples by text, stratified by whether the text has an erroneous example.

    Args:
        texts: Labelled texts.
        examples: Examples from these texts.
        validation: Fraction of texts held out, half for selection and half for calibration.
        test: Fraction of texts held out for testing.
        by: "text" keeps all examples of equal texts in one split, "prompt" those of all texts with the same prompt.
        seed: Seed of the split.

    Raises:
        InputError: If the held-out fractions sum to 1 or more, or if a split lacks correct or erroneous examples.
    """
    if validation + test >= 1:
        raise InputError("validation + test", validation + test, "use fractions with a sum below 1")
    numbers: dict[tuple[str | None, ...], int] = {}
    group = np.array([numbers.setdefault(_group_key(text, by), len(numbers)) for text in texts])[
        examples.text.numpy()
    ]
    labels = examples.labels.numpy()
    has_error = np.zeros(len(numbers), dtype=bool)
    has_error[group[labels == 0]] = True
    draw = numpy_generator(seed, "split")
    part = np.zeros(len(numbers), dtype=np.int64)
    for stratum in (np.flatnonzero(has_error), np.flatnonzero(~has_error)):
        if len(stratum) < len(ExampleSplit._fields):
            continue
        held = [max(1, round(len(stratum) * share)) for share in (validation / 2, validation / 2, test)]
        part[draw.permutation(stratum)[: sum(held)]] = np.repeat([1, 2, 3], held)[: len(stratum)]
    split = ExampleSplit(
        *(torch.as_tensor(np.flatnonzero(part[group] == place)) for place in range(len(ExampleSplit._fields)))
    )
    for name, rows in split._asdict().items():
        for label, meaning in ((0, "erroneous"), (1, "correct")):
            if not bool((examples.labels[rows] == label).any()):
                count = int((examples.labels == label).sum())
                hint = f"add more {meaning} examples; the {name} split has none"
                raise InputError(f"{meaning} examples", count, hint)
    return split


def _group_key(text: LabelledText, by: str) -> tuple[str | None, ...]:
    """Return a key that is equal for texts that must be in the same split."""
    return (text.prompt,) if by == "prompt" and text.prompt is not None else (text.prompt, text.completion)
