"""Base classes of autoregressive models, of batches of growing sequences, and of verifiers."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, Protocol

import torch
from torch import Tensor


class Tokenizing(Protocol):
    """Protocol of tokenizers, which convert between texts and token ids."""

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a prompt.

        Args:
            text: Text of the prompt.
        """
        ...

    def bytes(self, tokens: Iterable[int]) -> bytes:
        """Return the bytes that token ids represent.

        Args:
            tokens: Token ids.
        """
        ...

    def text(self, tokens: Iterable[int], final: bool = True) -> str:
        """Return the text that token ids represent.

        Args:
            tokens: Token ids.
            final: Whether no further tokens follow (default: True). If False, the bytes of an incomplete UTF-8
                character at the end are omitted, because a later token may complete the character.
        """
        ...

    def tokens_containing(self, text: str) -> Tensor:
        """Return the ids of all tokens whose bytes contain a text.

        Args:
            text: Text to search for.

        Returns:
            Token ids (n,) int64.
        """
        ...


class Context(ABC):
    """Cache of a model's computations for a batch of token sequences, such as a key-value cache.

    A row of the cache belongs to one sequence. Position i of a row belongs to the first i tokens of the sequence, so
    position 0 belongs to the empty prefix. The cache is updated when sequences grow, lose their last tokens or are
    copied. `features` computes a feature vector for each prefix, and `log_probs` converts it to the next-token
    distribution.
    """

    first: int = 0
    """Length of the shortest prefix that the model can evaluate: 1 if it cannot evaluate the empty prefix."""
    recomputes: bool = False
    """Whether nothing is cached, so that every call evaluates all positions."""
    passes: int | None = None
    """Number of forward passes so far, for models that run several per call of `features`. None for one per call."""

    @abstractmethod
    def features(self, tokens: Tensor, start: Tensor, stop: Tensor, rows: Tensor) -> Tensor:
        """Compute the features of prefixes, and cache positions `start` to `stop` (both included) of each row.

        Position i is the prefix of i tokens, so position 0 is the empty prefix. Positions below `start` are already
        cached by an earlier call of `features` or `copy`.

        Args:
            tokens: Token sequences (n, capacity) int64. They include the tokens of the cached positions.
            start: First position (n,) int64 to compute.
            stop: Last position (n,) int64 to compute.
            rows: Row (n,) int64 of the cache for each sequence.

        Returns:
            Features (n, features) of the prefixes of length `stop`.
        """

    @abstractmethod
    def log_probs(self, features: Tensor) -> Tensor:
        """Return the log-probabilities of the next token.

        Args:
            features: Features (n, features) of n prefixes, computed by the method `features`.

        Returns:
            Log-probabilities (n, vocab).
        """

    def scores(self, features: Tensor) -> Tensor:
        """Return unnormalised scores of the next token, for example logits (default: `log_probs`).

        Args:
            features: Features (n, features) of n prefixes, computed by the method `features`.

        Returns:
            Scores (n, vocab).
        """
        return self.log_probs(features)

    def log_probs_from_scores(self, scores: Tensor) -> Tensor:
        """Convert scores to log-probabilities (default: log-softmax over the last axis).

        Args:
            scores: Scores (n, vocab), computed by the method `scores`.

        Returns:
            Log-probabilities (n, vocab).
        """
        return scores.log_softmax(-1)

    def distributions(self, features: Tensor, cut: bool = True) -> tuple[Tensor, Tensor]:
        """Return the next-token distribution to sample from, and the model's own distribution.

        By default, both are equal to `log_probs`.

        Args:
            features: Features (n, features) of n prefixes.
            cut: Whether to apply top-k and top-p to the first distribution (default: True). Temperature is always
                applied.

        Returns:
            Log-probabilities to sample from, and log-probabilities of the unmodified model, both (n, vocab).
        """
        del cut
        answers = self.log_probs(features)
        return answers, answers

    def cut(self, log_probs: Tensor) -> Tensor:
        """Truncate next-token distributions by top-k and top-p, and normalise them.

        The default implementation only normalises.

        Args:
            log_probs: Log-weights (n, vocab), not necessarily normalised. Each row has a token of positive weight.

        Returns:
            Log-probabilities (n, vocab).
        """
        return log_probs.log_softmax(-1)

    def hidden(self, features: Tensor, layer: int) -> Tensor:
        """Return hidden states of the model at the last position of each prefix.

        Args:
            features: Features (n, features) of n prefixes, computed by the method `features`.
            layer: Number of blocks after which the hidden state is read. Layer -1 is the input of the output head.

        Returns:
            Hidden states (n, width).

        Raises:
            TypeError: If the model has no hidden states (default).
        """
        del features, layer
        raise TypeError(f"{type(self).__name__} has no hidden states")

    @abstractmethod
    def copy(self, source: Tensor, rows: Tensor, start: int, stop: int) -> None:
        """Copy cached positions from some rows of the cache to others.

        Args:
            source: Rows (n,) int64 to copy from.
            rows: Rows (n,) int64 to copy to.
            start: First position to copy.
            stop: Last position to copy (included).
        """

    @abstractmethod
    def fork(self, rows: Tensor, stop: int) -> "Context":
        """Return a new, independent context with copies of some rows of this one.

        Args:
            rows: Rows (n,) int64 to copy. Row i of the new context is a copy of row `rows[i]`.
            stop: Maximum number of tokens per row of the new context.
        """


class Autoregressive(ABC):
    """Model that predicts the next token of a sequence from the tokens before it (the prefix).

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
        """Return a short summary of each prefix that determines the distribution of its continuations.

        Two prefixes of the same length with equal summaries have the same distribution of continuations. For
        a Markov chain, for example, the last token is sufficient.

        Args:
            tokens: Token sequences (n, capacity) int64.
            lengths: Lengths (n,) int64 of the prefixes. Later tokens are ignored.

        Returns:
            Summaries (n, k) int64 of k integers per prefix. None (default) if no summary shorter than the
            prefix itself is available.
        """
        del tokens, lengths
        return None

    @abstractmethod
    def open(self, rows: int, capacity: int, layers: Sequence[int] = ()) -> Context:
        """Return a new context, which caches the model's computations for a batch of sequences.

        Args:
            rows: Number of sequences.
            capacity: Maximum number of tokens per sequence.
            layers: Blocks whose hidden states the context stores (default: none).
        """


class PrefixOracle(Autoregressive):
    """Autoregressive model that computes each next-token distribution from the whole prefix, without a cache.

    A subclass defines `vocab_size` and `next_log_probs`.
    """

    @abstractmethod
    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return the log-probabilities of the token that follows each prefix.

        Args:
            tokens: Token sequences (n, capacity) int64. Tokens after the prefix are ignored.
            lengths: Lengths (n,) int64 of the prefixes.

        Returns:
            Log-probabilities (n, vocab).
        """

    def open(self, rows: int, capacity: int, layers: Sequence[int] = ()) -> Context:
        """Return a context that calls `next_log_probs` and caches nothing.

        Args:
            rows: Ignored.
            capacity: Ignored.
            layers: Must be empty.

        Raises:
            TypeError: If `layers` is not empty, because the model has no hidden states.
        """
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
    """Batch of growing token sequences, with access to the next-token distributions of a model.

    Each row holds one sequence, a prompt followed by a partial or complete completion. Samplers add and remove tokens
    at the end of a row. Arguments named `rows` are indices of rows of the batch.
    """

    vocab_size: int
    eos: int | None

    @property
    @abstractmethod
    def tokens(self) -> Tensor:
        """Token ids (rows, capacity) int64 of prompts and completions. Entries after the end of a row are undefined."""

    @property
    @abstractmethod
    def lengths(self) -> Tensor:
        """Number of tokens (rows,) int64 of each row, including the prompt."""

    @property
    @abstractmethod
    def start(self) -> Tensor:
        """Number of tokens (rows,) int64 of each prompt, which is the position of the first completion token."""

    @property
    @abstractmethod
    def limit(self) -> Tensor:
        """Maximum number of tokens (rows,) int64 of each row, with its prompt. A row of this length is complete."""

    @property
    @abstractmethod
    def complete(self) -> Tensor:
        """Whether each row (rows,) bool ends with `eos` or has reached its maximum length."""

    @property
    @abstractmethod
    def node(self) -> Tensor:
        """Ids (rows,) int64 of the current sequences. Rows with equal ids hold equal tokens after the same prompt."""

    @property
    def growing(self) -> Tensor:
        """Indices (n,) int64 of the rows that are not complete."""
        return (~self.complete).nonzero()[:, 0]

    def ready(self, rows: Tensor) -> Tensor:
        """Return which rows should request their next-token distribution in this step. The others must wait.

        Waiting lets new prefixes of several rows be evaluated in one forward pass. Steps in which a row waits
        do not count towards `max_steps`.

        Args:
            rows: Rows (n,) int64, each at most once.

        Returns:
            Whether each row (n,) bool is ready (default: all rows).
        """
        return torch.ones(len(rows), dtype=torch.bool)

    @abstractmethod
    def log_probs(self, rows: Tensor, lengths: Tensor | None = None, cut: bool = True) -> Tensor:
        """Return next-token log-probabilities for some rows of the batch. Each row counts as one model call.

        Args:
            rows: Indices (n,) int64 of rows of the batch.
            lengths: Lengths (n,) int64 of the prefixes to evaluate (default: the current lengths of the rows). Shorter
                lengths remove tokens at the end.
            cut: Whether to apply top-k and top-p (default: True). Samplers that apply a token mask before truncation
                pass False and call the method `cut` themselves.

        Returns:
            Log-probabilities (n, vocab).
        """

    @abstractmethod
    def cut(self, log_probs: Tensor, rows: Tensor | None = None) -> Tensor:
        """Truncate next-token distributions by top-k and top-p, and normalise them.

        Args:
            log_probs: Log-weights (n, vocab), not necessarily normalised.
            rows: Indices (n,) int64 of the rows of the batch that the distributions belong to. They are needed if rows
                of different requests have different settings.

        Returns:
            Log-probabilities (n, vocab).
        """

    @abstractmethod
    def completion_log_probs(self, rows: Tensor) -> Tensor:
        """Return the log-probability of each completion so far, with temperature and truncation.

        The next-token log-probabilities are cached and do not count as model calls.

        Args:
            rows: Indices (n,) int64 of rows of the batch.

        Returns:
            Log-probabilities (n,) float64, 0 for a row that is its prompt.
        """

    @abstractmethod
    def continuation_log_probs(self, rows: Tensor) -> Tensor:
        """Return the log-probability of each completion followed by each token, as `completion_log_probs`.

        Args:
            rows: Indices (n,) int64 of rows of the batch that are not complete.

        Returns:
            Log-probabilities (n, vocab) float64. Entry (i, t) belongs to row `rows[i]` followed by token t.
        """

    @abstractmethod
    def hidden(self, layer: int, rows: Tensor) -> Tensor:
        """Return hidden states of the model at the last token of each row.

        Args:
            layer: Number of blocks after which the hidden state is read. Layer -1 is the input of the output head.
            rows: Indices (n,) int64 of rows of the batch.

        Returns:
            Hidden states (n, width).
        """

    @abstractmethod
    def peek(self, tokens: Tensor, rows: Tensor) -> "Decoding":
        """Return a temporary batch of sequences that are each one token longer than a row of this batch.

        Row i of the new batch is row `rows[i]` of this batch, followed by the token `tokens[i]`.

        Args:
            tokens: Token ids (n,) int64 to append.
            rows: Indices (n,) int64 of rows of this batch. They may repeat.
        """


class Verifier(ABC):
    """Function that assigns a finite, non-negative value to each token sequence, for example 0 or 1, or a probability.

    The value of a complete sequence states whether the sequence is accepted (positive) or rejected (0). The
    value of a prefix states whether it can be completed to an accepted sequence. Methods receive a
    `Decoding`, the batch of sequences that a sampler works on. A subclass defines `values`.
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
        """Return the values of some sequences of a batch.

        Args:
            decoding: Batch of sequences. Row i holds the first `decoding.lengths[i]` tokens of `decoding.tokens[i]`.
            rows: Indices (n,) int64 of the rows of the batch to evaluate.

        Returns:
            Values (n,), one for each index in `rows`: bools or finite numbers of at least 0. A value of 0 rejects the
            sequence.
        """

    def children(self, decoding: Decoding, rows: Tensor) -> Tensor | None:
        """Return the values of all sequences that extend some sequences of a batch by one token.

        Args:
            decoding: Batch of sequences.
            rows: Indices (n,) int64 of rows of the batch that are not complete.

        Returns:
            Values (n, vocab). Entry (i, t) is the value of row `rows[i]` followed by token t. None (default) if the
            verifier can only evaluate one sequence at a time by `values`.
        """
        del decoding, rows
        return None

    def residuals(self, decoding: Decoding, rows: Tensor) -> Tensor | None:
        """Return integer keys that are equal only for sequences with the same possible futures.

        Two sequences of equal length may have equal keys only if appending the same tokens to both always
        gives equal values. Results can then be shared between them.

        Args:
            decoding: Batch of sequences.
            rows: Indices (n,) int64 of rows of the batch.

        Returns:
            Keys (n, k) int64 of k integers per sequence. None (default) if no equivalence is known.
        """
        del decoding, rows
        return None

    def up_to(self, stop: str | Sequence[str]) -> "Verifier":
        """Return a verifier that ignores the text from the first stop string onwards.

        The default implementation returns this verifier unchanged.

        Args:
            stop: Stop string, or several of them.
        """
        del stop
        return self


class Target(Verifier):
    """Verifier that reweights the model's distribution by a factor exp(v), and returns logarithms v.

    The target distribution is proportional to p(x) exp(v(x)), where p is the model and x a complete sequence.
    Sequences of positive probability are never rejected. A target is used like a verifier, alone or as a
    factor of `Product`. Samplers that do not use values add v of the complete sequence to the log-weight of a
    sample. A subclass defines `log_values`.
    """

    @abstractmethod
    def log_values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return the logarithms of the values of some sequences of a batch.

        Args:
            decoding: Batch of sequences.
            rows: Indices (n,) int64 of the rows of the batch to evaluate.

        Returns:
            Logarithms (n,) float64, finite, or -inf for sequences of probability zero.
        """

    def log_children(self, decoding: Decoding, rows: Tensor) -> Tensor | None:
        """Return the logarithms of the values of all sequences that extend some sequences by one token.

        Args:
            decoding: Batch of sequences.
            rows: Indices (n,) int64 of rows of the batch that are not complete.

        Returns:
            Logarithms (n, vocab) float64, or None (default) if only `log_values` can be used.
        """
        del decoding, rows
        return None

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return exp(v) of some sequences of a batch, which may underflow.

        Args:
            decoding: Batch of sequences.
            rows: Indices (n,) int64 of the rows of the batch to evaluate.

        Returns:
            Values (n,) float64.
        """
        return self.log_values(decoding, rows).exp()
