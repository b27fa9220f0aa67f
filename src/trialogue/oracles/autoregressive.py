"""Oracles of the next token: what they keep, what samplers see of them, and the verifiers that judge prefixes."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, Protocol

from torch import Tensor


class Tokenizing(Protocol):
    """What samplers and verifiers ask of a tokenization: texts as token ids, and token ids as texts."""

    def encode(self, text: str) -> list[int]:
        """Token ids of `text` as a prompt."""
        ...

    def bytes(self, tokens: Iterable[int]) -> bytes:
        """The bytes that `tokens` stand for."""
        ...

    def text(self, tokens: Iterable[int], final: bool = True) -> str:
        """The text of `tokens`; unless it is `final`, without the bytes of an unfinished character at its end."""
        ...

    def tokens_containing(self, text: str) -> Tensor:
        """Ids (n,) int64 of the tokens whose bytes contain `text`."""
        ...


class Context(ABC):
    """Evaluations an oracle keeps per row and position, so that a sequence can grow, shrink and be copied."""

    first: int = 0
    """The shortest prefix that is an input of the oracle: 1 where it has no answer for the empty one"""
    recomputes: bool = False
    """Whether nothing is kept, so that every call evaluates positions from the first on"""
    passes: int | None = None
    """How often the network has run, where one call of `features` may run it several times; None: once a call"""

    @abstractmethod
    def features(self, tokens: Tensor, start: Tensor, stop: Tensor, rows: Tensor) -> Tensor:
        """Evaluate positions `start..stop` of each row and return what answers for the prefix of length `stop`.

        `tokens` (n, capacity) int64 holds whole prefixes, `start` and `stop` (n,) count tokens: position 0 is the
        empty prefix, position i the prefix of i tokens, and positions below `start` are as an earlier call or a
        copy left them. `rows` (n,) are the storage rows. Returns (n, features).
        """

    @abstractmethod
    def log_probs(self, features: Tensor) -> Tensor:
        """Log-probabilities (n, vocab) of the next token."""

    def scores(self, features: Tensor) -> Tensor:
        """What the next-token distributions are made of (n, vocab), such as a network's logits: by default
        `log_probs`.
        """
        return self.log_probs(features)

    def law_of(self, scores: Tensor) -> Tensor:
        """Log-probabilities (n, vocab) of the next token for `scores` (n, vocab): by default these normalised."""
        return scores.log_softmax(-1)

    def distributions(self, features: Tensor, cut: bool = True) -> tuple[Tensor, Tensor]:
        """The answers of `log_probs`, and the model's own, which nothing truncates or processes: by default the same.

        Unless `cut`, the answers are those before top-k and top-p, but after the temperature.
        """
        del cut
        answers = self.log_probs(features)
        return answers, answers

    def cut(self, log_laws: Tensor) -> Tensor:
        """What top-k and top-p keep of `log_laws` (n, vocab), renormalised: by default everything.

        The distributions need not be normalised; each has a token of positive weight.
        """
        return log_laws.log_softmax(-1)

    def hidden(self, features: Tensor, layer: int) -> Tensor:
        """Hidden state (n, width) after `layer` blocks at the last position; -1 is what the output head reads."""
        del features, layer
        raise TypeError(f"{type(self).__name__} has no hidden states")

    @abstractmethod
    def copy(self, source: Tensor, rows: Tensor, start: int, stop: int) -> None:
        """Make positions `start..stop` (inclusive) of storage rows `rows` those of `source` (both (n,))."""

    @abstractmethod
    def fork(self, rows: Tensor, stop: int) -> "Context":
        """Return an independent context for up to `stop` tokens whose row i starts as this context's row `rows[i]`."""


class Autoregressive(ABC):
    """An oracle that answers with the distribution of the next token given a prefix.

    A subclass states its `vocab_size`, what differs from the defaults, and how it opens a context.
    """

    vocab_size: int
    """Number of tokens the oracle answers for"""
    eos: int | None = None
    """The token that ends a sequence"""
    max_length: int | None = None
    """The longest sequence, in tokens: one of that length is complete as it stands"""
    cuts: bool = False
    """Whether its distributions leave out tokens that top-k, top-p or the like cut off"""
    prompts_go_on: bool = False
    """Whether a prompt that ends in `eos` is incomplete: of a model that begins or separates its texts with that"""
    empty_prompt: Sequence[int] | None = ()
    """Tokens that an empty prompt stands for: none if the oracle evaluates the empty prefix, otherwise its BOS; None if
    it has no BOS either, so that an empty prompt cannot be continued"""
    batch_size: int = 1024
    """How many rows move at once by default"""
    tokenization: Tokenizing | None = None
    """What turns texts into tokens and back, where the tokens are those of texts"""
    generation_config: Mapping[str, Any] = MappingProxyType({})
    """What a model's publisher says of how to draw from it, where he says so, by transformers' names of settings"""

    @property
    def remarks(self) -> Sequence[str]:
        """What a user should know of the answers it has given so far."""
        return ()

    def sufficient(self, tokens: Tensor, lengths: Tensor) -> Tensor | None:
        """A sufficient statistic (n, k) int64 of the first `lengths` (n,) of `tokens` (n, capacity).

        Whatever follows has one distribution after prefixes of one length of which it is equal. None, the default,
        where only the whole prefix is known to be sufficient.
        """
        del tokens, lengths
        return None

    @abstractmethod
    def open(self, rows: int, capacity: int, layers: Sequence[int] = ()) -> Context:
        """Make room for `rows` sequences of up to `capacity` tokens, recording the hidden states of `layers`."""


class PrefixOracle(Autoregressive):
    """An oracle that computes each answer from the prefix alone, with nothing worth keeping between calls."""

    @abstractmethod
    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Log-probabilities (n, vocab) of the token after the first `lengths` (n,) of `tokens` (n, capacity)."""

    def open(self, rows: int, capacity: int, layers: Sequence[int] = ()) -> Context:
        """Return a context without storage; raises where hidden states are asked for."""
        del rows, capacity
        if layers:
            raise TypeError(f"{type(self).__name__} has no hidden states")
        return _StatelessContext(self)


class _StatelessContext(Context):
    def __init__(self, oracle: PrefixOracle) -> None:
        self._oracle = oracle

    def features(self, tokens: Tensor, start: Tensor, stop: Tensor, rows: Tensor) -> Tensor:
        del start, rows
        return self._oracle.next_log_probs(tokens, stop)

    def log_probs(self, features: Tensor) -> Tensor:
        return features

    def hidden(self, features: Tensor, layer: int) -> Tensor:
        del features, layer
        raise TypeError(f"{type(self._oracle).__name__} has no hidden states")

    def copy(self, source: Tensor, rows: Tensor, start: int, stop: int) -> None:
        pass

    def fork(self, rows: Tensor, stop: int) -> Context:
        del rows, stop
        return self


class Decoding(ABC):
    """A batch of sequences that grow and shrink, and what the oracle says comes next."""

    vocab_size: int
    eos: int | None

    @property
    @abstractmethod
    def tokens(self) -> Tensor:
        """Prompts and completions (rows, capacity) int64; what lies beyond a row's length means nothing."""

    @property
    @abstractmethod
    def lengths(self) -> Tensor:
        """Lengths (rows,) int64 of prompt and completion."""

    @property
    @abstractmethod
    def start(self) -> Tensor:
        """Lengths (rows,) int64 of the prompts."""

    @property
    @abstractmethod
    def limit(self) -> Tensor:
        """The lengths (rows,) int64 at which rows are complete even without an end of sequence."""

    @property
    @abstractmethod
    def complete(self) -> Tensor:
        """Which rows (rows,) bool are complete: the last token ends the sequence, or the limit is reached."""

    @property
    @abstractmethod
    def node(self) -> Tensor:
        """Ids (rows,) int64 of the prefixes; equal ids are equal prefixes of the same prompt."""

    @property
    def growing(self) -> Tensor:
        """The rows (n,) that are not complete."""
        return (~self.complete).nonzero()[:, 0]

    @abstractmethod
    def log_probs(self, rows: Tensor, lengths: Tensor | None = None, cut: bool = True) -> Tensor:
        """Ask for the next-token distribution (n, vocab) of each row, cut to `lengths` (n,): one query per row asked.

        Unless `cut`, it is the distribution before top-k and top-p, for samplers that cut themselves, behind a mask.
        """

    @abstractmethod
    def cut(self, log_laws: Tensor, rows: Tensor | None = None) -> Tensor:
        """What top-k and top-p keep of `log_laws` (n, vocab), renormalised; the distributions need not be normalised.

        `rows` (n,) says whose distributions they are: in a batch of several requests every row may be cut in a way of
        its own.
        """

    @abstractmethod
    def hidden(self, layer: int, rows: Tensor) -> Tensor:
        """Hidden state (n, width) after `layer` blocks at the last position of each row."""

    @abstractmethod
    def peek(self, tokens: Tensor, rows: Tensor) -> "Decoding":
        """Children on scratch rows: row i continues `rows[i]` with `tokens[i]` (both (n,))."""


class Verifier(ABC):
    """Judges prefixes and complete sequences: 0/1, a probability, or any finite non-negative value.

    For a prefix the answer is about viability (can it still be completed?), for a complete sequence about
    membership; `decoding.complete` tells which is asked. One method, `values`, makes a verifier.
    """

    scope: Literal["sequence", "completion"] = "sequence"
    """What it judges: prompt and completion, or the completion alone"""
    most: float = math.inf
    """The greatest value that it can give: 1 of verdicts and probabilities"""
    layers: Sequence[int] = ()
    """The blocks whose hidden states it reads, besides -1, what the output head reads"""
    parts: Sequence["Verifier"] = ()
    """The verifiers whose product it is, where it is one"""
    has_mask: bool = False
    """Whether it is an automaton, which returns a mask over all tokens; masked decoding is then the default sampler"""
    notes: Sequence[str] = ()
    """What a user should know of it before it is used"""
    parser: Callable[[str], Any] | None = None
    """The function from an accepted text to its value, where the verifier knows what texts stand for.

    Of other texts it raises `ValueError`: `NotValidError`, where one is whole, says what is wrong with it.
    """

    @abstractmethod
    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Values (n,) of the sequences in `rows` (n,)."""

    def children(self, decoding: Decoding, rows: Tensor) -> Tensor | None:
        """Values (n, vocab) of all one-token continuations; None, the default, where only `values` can tell."""
        del decoding, rows
        return None

    def residuals(self, decoding: Decoding, rows: Tensor) -> Tensor | None:
        """Rows (n, k) int64, equal only where the sequences in `rows` (n,) have equal values, whatever is appended.

        They name the residual languages; sequences of one length, prompt length and limit are compared. None, the
        default, where only equal sequences are known to be alike.
        """
        del decoding, rows
        return None

    def up_to(self, stop: str | Sequence[str]) -> "Verifier":
        """The verifier of what comes before the first of the strings `stop`: itself, unless it judges text."""
        del stop
        return self
