"""Contracts of autoregressive models, of batches of sequences, and of verifiers."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, Protocol

from torch import Tensor


class Tokenizing(Protocol):
    """Conversion between texts and token ids."""

    def encode(self, text: str) -> list[int]:
        """Return the token ids of `text` as a prompt."""
        ...

    def bytes(self, tokens: Iterable[int]) -> bytes:
        """Return the bytes of `tokens`."""
        ...

    def text(self, tokens: Iterable[int], final: bool = True) -> str:
        """Return the text of `tokens`. Unless it is `final`, drop the bytes of an incomplete character at the end."""
        ...

    def tokens_containing(self, text: str) -> Tensor:
        """Return the ids (n,) int64 of the tokens whose bytes contain `text`."""
        ...


class Context(ABC):
    """Cached evaluations of a model by row and position, for sequences that grow, shrink and are copied."""

    first: int = 0
    """Length of the shortest prefix that the model can evaluate: 1 if it cannot evaluate the empty prefix."""
    recomputes: bool = False
    """Whether nothing is cached, so that every call evaluates all positions."""
    passes: int | None = None
    """Number of forward passes so far, for models that run several per call of `features`. None for one per call."""

    @abstractmethod
    def features(self, tokens: Tensor, start: Tensor, stop: Tensor, rows: Tensor) -> Tensor:
        """Evaluate positions `start` to `stop` of each row, both included.

        Position i is the prefix of i tokens, so position 0 is the empty prefix. Positions below `start` are cached from
        an earlier call or copy.

        Args:
            tokens: Whole prefixes (n, capacity) int64.
            start: First position (n,) int64 to evaluate.
            stop: Last position (n,) int64 to evaluate.
            rows: Rows (n,) int64 of the cache.

        Returns:
            Features (n, features) of the prefixes of length `stop`.
        """

    @abstractmethod
    def log_probs(self, features: Tensor) -> Tensor:
        """Return the log-probabilities (n, vocab) of the next token from `features` (n, features)."""

    def scores(self, features: Tensor) -> Tensor:
        """Return unnormalised scores (n, vocab) of the next token, such as logits (default: `log_probs`)."""
        return self.log_probs(features)

    def log_probs_from_scores(self, scores: Tensor) -> Tensor:
        """Return the log-probabilities (n, vocab) that belong to `scores` (n, vocab) (default: log-softmax)."""
        return scores.log_softmax(-1)

    def distributions(self, features: Tensor, cut: bool = True) -> tuple[Tensor, Tensor]:
        """Return the distributions to sample from and those of the unmodified model, each (n, vocab).

        By default, both are `log_probs`.

        Args:
            features: Features (n, features) of prefixes.
            cut: Apply top-k and top-p to the first distribution. Temperature is always applied.
        """
        del cut
        answers = self.log_probs(features)
        return answers, answers

    def cut(self, log_probs: Tensor) -> Tensor:
        """Apply top-k and top-p to distributions, and normalise them (default: only normalise).

        Args:
            log_probs: Log-weights (n, vocab), not necessarily normalised. Each row has a token of positive weight.
        """
        return log_probs.log_softmax(-1)

    def hidden(self, features: Tensor, layer: int) -> Tensor:
        """Return the hidden states (n, width) after `layer` blocks at the last position.

        Layer -1 is the input of the output head.
        """
        del features, layer
        raise TypeError(f"{type(self).__name__} has no hidden states")

    @abstractmethod
    def copy(self, source: Tensor, rows: Tensor, start: int, stop: int) -> None:
        """Copy positions `start` to `stop`, both included, from cache rows `source` (n,) to cache rows `rows` (n,)."""

    @abstractmethod
    def fork(self, rows: Tensor, stop: int) -> "Context":
        """Return an independent context for up to `stop` tokens whose row i is a copy of row `rows[i]`."""


class Autoregressive(ABC):
    """A model of the next token given a prefix.

    A subclass defines `vocab_size` and `open`, and overrides other attributes if their defaults do not apply. Models
    without a cache derive from `PrefixOracle` instead.
    """

    vocab_size: int
    """Number of tokens."""
    eos: int | None = None
    """Token that ends a sequence. None if there is none."""
    max_length: int | None = None
    """Maximum length of a sequence in tokens. A sequence of this length is complete. None for no maximum."""
    cuts: bool = False
    """Whether the distributions are truncated, for example by top-k or top-p."""
    prompts_go_on: bool = False
    """Whether a prompt that ends in `eos` is incomplete. True if the model's texts begin with this token."""
    empty_prompt: Sequence[int] | None = ()
    """Tokens that replace an empty prompt: none if the model can evaluate the empty prefix, otherwise its BOS token.
    None if the model has no BOS token, so that it cannot continue an empty prompt."""
    batch_size: int = 1024
    """Default number of rows per batch."""
    tokenization: Tokenizing | None = None
    """Conversion between texts and tokens. None if the tokens do not stand for text."""
    generation_config: Mapping[str, Any] = MappingProxyType({})
    """Generation settings recommended by the model's publisher, with the names that transformers uses."""

    @property
    def remarks(self) -> Sequence[str]:
        """Warnings about the evaluations so far, to be shown to the user."""
        return ()

    def sufficient(self, tokens: Tensor, lengths: Tensor) -> Tensor | None:
        """Return a sufficient statistic (n, k) int64 of prefixes, or None if no shorter one than the prefix is known.

        Two prefixes of the same length with equal statistics have the same distribution of continuations.

        Args:
            tokens: Sequences (n, capacity) int64.
            lengths: Lengths (n,) int64 of the prefixes.
        """
        del tokens, lengths
        return None

    @abstractmethod
    def open(self, rows: int, capacity: int, layers: Sequence[int] = ()) -> Context:
        """Return a context for `rows` sequences of up to `capacity` tokens that stores hidden states of `layers`."""


class PrefixOracle(Autoregressive):
    """A model that computes each distribution from the prefix, without a cache."""

    @abstractmethod
    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return the log-probabilities (n, vocab) of the token that follows each prefix.

        Args:
            tokens: Sequences (n, capacity) int64.
            lengths: Lengths (n,) int64 of the prefixes.
        """

    def open(self, rows: int, capacity: int, layers: Sequence[int] = ()) -> Context:
        """Return a context without a cache. Raises `TypeError` if hidden states are requested."""
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
    """A batch of sequences that grow and shrink, with their next-token distributions."""

    vocab_size: int
    eos: int | None

    @property
    @abstractmethod
    def tokens(self) -> Tensor:
        """Prompts and completions (rows, capacity) int64. Entries beyond the length of a row are undefined."""

    @property
    @abstractmethod
    def lengths(self) -> Tensor:
        """Lengths (rows,) int64 of prompt plus completion."""

    @property
    @abstractmethod
    def start(self) -> Tensor:
        """Lengths (rows,) int64 of the prompts."""

    @property
    @abstractmethod
    def limit(self) -> Tensor:
        """Maximum lengths (rows,) int64. A row of this length is complete."""

    @property
    @abstractmethod
    def complete(self) -> Tensor:
        """Whether each row is complete, (rows,) bool: it ends with `eos` or has reached its limit."""

    @property
    @abstractmethod
    def node(self) -> Tensor:
        """Ids (rows,) int64 of the prefixes. Equal ids mean equal prefixes of the same prompt."""

    @property
    def growing(self) -> Tensor:
        """Indices (n,) int64 of the rows that are not complete."""
        return (~self.complete).nonzero()[:, 0]

    @abstractmethod
    def log_probs(self, rows: Tensor, lengths: Tensor | None = None, cut: bool = True) -> Tensor:
        """Return the next-token log-probabilities (n, vocab) of rows. Counts one model call per row.

        Args:
            rows: Rows (n,) int64.
            lengths: Lengths (n,) int64 to which the rows are shortened first (default: their lengths).
            cut: Apply top-k and top-p. Samplers that apply a mask first pass False and call `cut` themselves.
        """

    @abstractmethod
    def cut(self, log_probs: Tensor, rows: Tensor | None = None) -> Tensor:
        """Apply top-k and top-p to distributions, and normalise them.

        Args:
            log_probs: Log-weights (n, vocab), not necessarily normalised.
            rows: Rows (n,) int64 that the distributions belong to. Rows of different requests may have different
                settings.
        """

    @abstractmethod
    def hidden(self, layer: int, rows: Tensor) -> Tensor:
        """Return the hidden states (n, width) after `layer` blocks at the last position of each row."""

    @abstractmethod
    def peek(self, tokens: Tensor, rows: Tensor) -> "Decoding":
        """Return a temporary batch whose row i is row `rows[i]` followed by the token `tokens[i]`, both (n,) int64."""


class Verifier(ABC):
    """A function from sequences to non-negative values: 0 or 1, a probability, or any other finite value.

    The value of a complete sequence states whether it is accepted. The value of a prefix states whether it can be
    completed to an accepted sequence. `decoding.complete` distinguishes the two cases. A subclass must define `values`.
    """

    scope: Literal["sequence", "completion"] = "sequence"
    """Whether values depend on prompt and completion ("sequence") or on the completion only."""
    most: float = math.inf
    """Upper bound of the values: 1 for verdicts and probabilities."""
    layers: Sequence[int] = ()
    """Blocks whose hidden states the verifier needs. The input of the output head, -1, is always available."""
    parts: Sequence["Verifier"] = ()
    """The factors, if the verifier is a product of verifiers."""
    has_mask: bool = False
    """Whether `children` is cheap, as for an automaton. Masked decoding is then the default sampler."""
    notes: Sequence[str] = ()
    """Warnings to be shown to the user before the verifier is used."""
    parser: Callable[[str], Any] | None = None
    """Function that converts an accepted text to a Python value, or None.

    For other texts it raises `ValueError`. If the text is complete but invalid, the error is a `NotValidError` that
    states the reason.
    """

    @abstractmethod
    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return the values (n,) of the sequences in `rows` (n,)."""

    def children(self, decoding: Decoding, rows: Tensor) -> Tensor | None:
        """Return the values (n, vocab) of all one-token continuations, or None if only `values` is available."""
        del decoding, rows
        return None

    def residuals(self, decoding: Decoding, rows: Tensor) -> Tensor | None:
        """Return keys (n, k) int64 of equivalence classes of sequences, or None if no classes are known.

        Two sequences of equal length, prompt length and limit may have equal keys only if their values agree after
        every continuation (Myhill-Nerode classes).
        """
        del decoding, rows
        return None

    def up_to(self, stop: str | Sequence[str]) -> "Verifier":
        """Return a verifier of the text before the first of the strings `stop` (default: this verifier)."""
        del stop
        return self
