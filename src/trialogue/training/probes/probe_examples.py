"""Labelled texts as examples for a probe: prefixes of token ids with a label each, split so that no text leaks.

A line of the JSONL file is an object with `prompt` and `completion` (or `text` alone), and either `label`, 1 or 0,
for a text that is correct or erroneous as a whole, or `error`, the offset of the first wrong character of the
completion, null where there is none.
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
    """One labelled text; `source` says where it stands. `label` is None where `error` counts.

    `prompt` is None where the completion is the whole text.
    """

    source: str
    prompt: str | None
    completion: str
    label: int | None = None
    error: int | None = None


class LabelledTexts(NamedTuple):
    """The texts of a file, and the SHA-256 of its bytes."""

    texts: list[LabelledText]
    sha256: str


def read_labelled_texts(path: str | PathLike[str]) -> LabelledTexts:
    """Read a JSONL file of labelled texts; empty lines are skipped, other fields of a line ignored.

    Raises `InputError` where the file cannot be read or holds no text, and, with the number of the line, where a
    line is not JSON or not a labelled text.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError("data", str(path), f"cannot be read: {error.strerror or error}") from error
    texts = []
    for number, line in enumerate(content.split(b"\n"), 1):
        if line.strip():
            texts.append(_labelled_text(f"{path} line {number}", line))
    if not texts:
        raise InputError("data", str(path), "the file holds no text")
    return LabelledTexts(texts, hashlib.sha256(content).hexdigest())


def _labelled_text(source: str, line: bytes) -> LabelledText:
    shown = line[:60].decode("utf-8", "replace")
    try:
        record = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(source, shown, f"not JSON: {error}") from None
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
        hint = f"use null, or a character's offset in the completion, from 0 to {len(completion)}"
        raise InputError(f"{source}: error", error_at, hint)
    return LabelledText(source, prompt, completion, None if label is None else int(label), error_at)


@dataclass(frozen=True, kw_only=True)
class ProbeExamples:
    """Prefixes with a label each: `lengths[i]` names prefixes of `sequences[i]`, shortest first.

    `labels` (n,) int64, 1 for correct, and `text` (n,) int64, the index of the sequence, are in that order.
    """

    sequences: list[list[int]]
    lengths: list[list[int]]
    labels: Tensor
    text: Tensor

    @property
    def positions(self) -> int:
        """Positions that a model evaluates to read all prefixes, each sequence once."""
        return sum(asked[-1] + 1 for asked in self.lengths)


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
    """The prefixes of `texts` whose hidden states a probe learns from.

    Of a text with a label it is the whole text. Of a text with an error position it is the prefix that ends with the
    first wrong token (erroneous), and `correct_prefixes` random prefixes that end between the first token of the
    completion and the last before the error, or the end where there is none (correct). Where an error lies at the end
    of the completion, the wrong token is the end of sequence; `eos` puts it behind every completion. `chat` puts the
    prompt into the tokenizer's chat template.

    Raises `InputError` where a prefix exceeds `max_length` tokens, a completion has no token, an error lies at the end
    without `eos`, or the tokenizer does not give back a text with an error position.
    """
    if eos and tokenization.eos is None:
        raise InputError("eos", True, "the model's tokenizer has no end of sequence; leave it out")
    sequences: list[list[int]] = []
    lengths: list[list[int]] = []
    labels: list[int] = []
    for index, text in enumerate(texts):
        tokens, ends = _tokens_and_ends(text, tokenization, chat)
        begin = len(tokens) - len(ends)
        if eos and tokenization.eos is not None:
            tokens, ends = [*tokens, tokenization.eos], [*ends, len(text.completion.encode()) + 1]
        if not ends:
            raise InputError(text.source, text.completion, "the completion has no token")
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
            hint = f"the model reads at most {max_length} tokens: shorten the text or leave it out"
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
    """The index of the completion's token that holds the first wrong character, or their number if none does."""
    if text.error is None:
        return len(ends)
    offset = len(text.completion[: text.error].encode())
    wrong = int(np.searchsorted(ends, offset, side="right"))
    if wrong == len(ends):
        hint = "the error lies behind the last token: use eos, so that the end itself may be wrong"
        raise InputError(f"{text.source}: error", text.error, hint)
    return wrong


def _tokens_and_ends(
    text: LabelledText, tokenization: Tokenization, chat: bool
) -> tuple[list[int], list[int]]:
    """Tokens of prompt and completion, and where each of the completion's tokens ends, in its bytes.

    The prompt is tokenized by itself, as it is when a model completes it. Tokenizers that put a space before every
    text would put one between the two; they are given both at once.
    """
    wanted = text.completion.encode()
    if chat and text.prompt is None:
        raise InputError(
            text.source, text.completion[:60], "a chat needs a prompt; leave out chat, or the text"
        )
    given = text.prompt or ""
    prompt = tokenization.chat(given) if chat else tokenization.encode(given)
    completion: list[int] = tokenization.tokenizer(text.completion, add_special_tokens=False)["input_ids"]
    surplus = 0
    if text.prompt is None or tokenization.bytes(completion) != wanted:
        if not chat:
            whole = tokenization.encode(given + text.completion)
            ends = np.cumsum([len(tokenization.bytes([token])) for token in whole])
            cut = int(np.searchsorted(ends, ends[-1] - len(wanted), side="right")) if len(ends) else 0
            prompt, completion = whole[:cut], whole[cut:]
        surplus = len(tokenization.bytes(completion)) - len(wanted)
        if text.label is None and tokenization.bytes(completion)[max(surplus, 0) :] != wanted:
            hint = "the tokenizer does not give this text back, so that its error has no place; leave it out"
            raise InputError(text.source, text.completion[:60], hint)
    ends = np.cumsum([len(tokenization.bytes([token])) for token in completion]) - surplus
    return prompt + completion, [int(end) for end in ends]


class ExampleSplit(NamedTuple):
    """Indices (k,) int64 of the examples of each part."""

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
    """Deal out texts so that all examples of a text, or of all texts with the same prompt, are in one part.

    Equal texts count as one. Half of the share `validation` is for selection, half for calibration. Texts with and
    without an erroneous example are dealt out by themselves, so that the parts are alike. Raises `InputError` where a
    part would lack correct or erroneous examples.
    """
    if validation + test >= 1:
        raise InputError("validation + test", validation + test, "hold out less than all texts")
    numbers: dict[tuple[str | None, ...], int] = {}
    group = np.array([numbers.setdefault(_key(text, by), len(numbers)) for text in texts])[
        examples.text.numpy()
    ]
    labels = examples.labels.numpy()
    erring = np.zeros(len(numbers), dtype=bool)
    erring[group[labels == 0]] = True
    draw = numpy_generator(seed, "split")
    part = np.zeros(len(numbers), dtype=np.int64)
    for stratum in (np.flatnonzero(erring), np.flatnonzero(~erring)):
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
                hint = f"give more {meaning} ones: none of {count} is left for {name}"
                raise InputError(f"{meaning} examples", count, hint)
    return split


def _key(text: LabelledText, by: str) -> tuple[str | None, ...]:
    """What texts that belong together have in common."""
    return (text.prompt,) if by == "prompt" and text.prompt is not None else (text.prompt, text.completion)
