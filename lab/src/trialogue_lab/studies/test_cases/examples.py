"""What the verifiers learn from, and the verifier that knows the truth.

Thesis section 3.2.2.6. Tokenwise: the prefix that ends in the first wrong token is an example of an error, and one
that ends at a token drawn before it, or anywhere in a correct completion, of a correct prefix. Block-wise: the prefixes
that end at the newlines after and before the error.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from trialogue.oracles import Decoding, Verifier
from trialogue_lab.data.list_append.cases import CaseError, evaluate

Kind = Literal["token", "block"]


class TextTokens(Protocol):
    """What the study asks of a tokenizer; `trialogue.models.tokenization.Tokenization` is one."""

    def encode(self, text: str) -> list[int]:
        """Token ids of `text`."""
        ...

    def text(self, tokens: Sequence[int], final: bool = True) -> str:
        """The text of `tokens`; without `final`, that of a prefix."""
        ...

    def tokens_ending_with(self, text: str) -> Tensor:
        """Ids (n,) of the tokens that end in `text`."""
        ...


class Completion(NamedTuple):
    """A completion as tokens, `start` of which are the prompt's; `ended` says that its last is the end of sequence."""

    name: str
    tokens: list[int]
    start: int
    ended: bool


class Examples(NamedTuple):
    """Prefixes by sequence, as `hidden_states_of_prefixes` takes them, and a label for each: 1 is correct."""

    sequences: list[list[int]]
    lengths: list[list[int]]
    labels: list[int]


def text_stops(tokens: Sequence[int], tokenization: TextTokens) -> list[int]:
    """Where the text of each prefix of `tokens` ends, in characters."""
    return [len(tokenization.text(tokens[: stop + 1], final=False)) for stop in range(len(tokens))]


def token_of(position: int, stops: Sequence[int]) -> int:
    """Index of the token that holds character `position`, where the text of token i ends before `stops[i]`.

    The last token where the position lies beyond all of them, as that of a completion that ends too early does.
    """
    return min(int(np.searchsorted(np.asarray(stops), position, side="right")), len(stops) - 1)


def examples_of(
    completions: Sequence[Completion],
    tokenization: TextTokens,
    cases: int,
    kind: Kind,
    draw: np.random.Generator,
) -> Examples:
    """The examples that `completions` of prompts for `cases` test cases give.

    Completions that go on after their last case are skipped, as are those whose error leaves no correct prefix: the
    classes stay balanced.
    """
    examples = Examples([], [], [])
    for completion in completions:
        written = completion.tokens[completion.start :]
        text = tokenization.text(written)
        found = evaluate(text, completion.name, cases, final=completion.ended)
        if found.error == CaseError.EXTRA_CONTENT_AFTER_TASK_COMPLETION or not written:
            continue
        stops = text_stops(written, tokenization)
        chosen = (_tokenwise if kind == "token" else _blockwise)(text, found.position, stops, draw)
        if chosen:
            examples.sequences.append(completion.tokens)
            examples.lengths.append([completion.start + token + 1 for token, _ in chosen])
            examples.labels.extend(label for _, label in chosen)
    return examples


def _tokenwise(
    text: str, position: int, stops: Sequence[int], draw: np.random.Generator
) -> list[tuple[int, int]]:
    """Tokens that end an example, first to last, with their labels."""
    del text
    wrong = len(stops) if position < 0 else token_of(position, stops)
    if wrong == 0:
        return []
    before = (int(draw.integers(wrong)), 1)
    return [before] if position < 0 else [before, (wrong, 0)]


def _blockwise(
    text: str, position: int, stops: Sequence[int], draw: np.random.Generator
) -> list[tuple[int, int]]:
    """Tokens that end an example, first to last, with their labels."""
    newlines = [place for place, character in enumerate(text) if character == "\n"]
    if position < 0:
        return [(token_of(newlines[draw.integers(len(newlines))], stops), 1)] if newlines else []
    before = [place for place in newlines if place < position]
    after = [place for place in newlines if place >= position]
    if not before or not after:
        return []
    correct, wrong = token_of(before[-1], stops), token_of(after[0], stops)
    return [(correct, 1), (wrong, 0)] if correct < wrong else []


class GroundTruth(Verifier):
    """Whether a completion is free of errors so far: the evaluator as a verifier (thesis Table 3.12).

    `names` maps the tokens of each prompt to the name of its target function.
    """

    scope: Literal["sequence", "completion"] = "sequence"
    layers: Sequence[int] = ()
    most = 1.0

    def __init__(
        self, names: Mapping[tuple[int, ...], str], tokenization: TextTokens, cases: int, eos: int | None
    ) -> None:
        self._names, self._tokenization, self._cases, self._eos = names, tokenization, cases, eos

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """1 where the completions of `rows` (n,) may still become free of errors, else 0."""
        verdicts = []
        starts, lengths = decoding.start[rows].tolist(), decoding.lengths[rows].tolist()
        for tokens, start, length in zip(decoding.tokens[rows].tolist(), starts, lengths, strict=True):
            written = tokens[start:length]
            ended = bool(written) and written[-1] == self._eos
            text = self._tokenization.text(written, final=False)
            found = evaluate(text, self._names[tuple(tokens[:start])], self._cases, final=ended)
            verdicts.append(found.error in (None, CaseError.EXTRA_CONTENT_AFTER_TASK_COMPLETION))
        return torch.tensor(verdicts, dtype=torch.float64)

    def children(self, decoding: Decoding, rows: Tensor) -> None:
        """Only `values` can tell."""
        del decoding, rows
