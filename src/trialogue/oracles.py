"""What a sampler may ask of a model, and what a verifier may look at: the whole contract.

An `Autoregressive` oracle opens a `Context` that evaluates prefixes incrementally. Walks never see it; they see a
`Decoding`, a batch of sequences that grow and shrink. A `Verifier` looks at the same batch. A `Masked` oracle or an
`Energy` answers for whole sequences; a `Chain` moves them (`sequence_oracles`).

Names of dimensions: `rows` sequences of the batch, `capacity` the longest sequence it can hold, `vocab` tokens,
`features` whatever the oracle needs to answer for one prefix, `width` of a hidden state. Logarithms are natural.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

import torch
from torch import Tensor

from trialogue.sequence_oracles import Chain as Chain
from trialogue.sequence_oracles import Energy as Energy
from trialogue.sequence_oracles import Joint as Joint
from trialogue.sequence_oracles import Masked as Masked
from trialogue.sequence_oracles import SequenceModel as SequenceModel
from trialogue.sequence_oracles import Sequences as Sequences
from trialogue.sequence_oracles import StateT as StateT
from trialogue.sequence_oracles import as_chain as as_chain
from trialogue.sequence_oracles import as_model as as_model
from trialogue.sequence_oracles import sites_of as sites_of
from trialogue.sequence_oracles import whole_sequences as whole_sequences


class Context(Protocol):
    """Evaluations an oracle keeps per row and position, so that a sequence can grow, shrink and be copied.

    A context may say `first = 1`, where the empty prefix is no input of the oracle, `recomputes = True`, where it
    keeps nothing and every call evaluates positions from the first on, and `passes`, how often it has run its network,
    where one call may do so several times.
    """

    def features(self, tokens: Tensor, start: Tensor, stop: Tensor, rows: Tensor) -> Tensor:
        """Evaluate positions `start..stop` of each row and return what answers for the prefix of length `stop`.

        `tokens` (n, capacity) int64 holds whole prefixes, `start` and `stop` (n,) count tokens: position 0 is the
        empty prefix, position i the prefix of i tokens, and positions below `start` are as an earlier call or a
        copy left them. `rows` (n,) are the storage rows. Returns (n, features).
        """
        ...

    def log_probs(self, features: Tensor) -> Tensor:
        """Log-probabilities (n, vocab) of the next token."""
        ...

    def hidden(self, features: Tensor, layer: int) -> Tensor:
        """Hidden state (n, width) after `layer` blocks at the last position; -1 is what the output head reads."""
        ...

    def copy(self, source: Tensor, rows: Tensor, start: int, stop: int) -> None:
        """Make positions `start..stop` (inclusive) of storage rows `rows` those of `source` (both (n,))."""
        ...

    def fork(self, rows: Tensor, stop: int) -> "Context":
        """Return an independent context for up to `stop` tokens whose row i starts as this context's row `rows[i]`."""
        ...


@runtime_checkable
class Autoregressive(Protocol):
    """An oracle that answers with the law of the next token given a prefix.

    `eos` is the token that ends a sequence, if there is one; a sequence of `max_length` tokens, if there is such
    a length, is complete as it stands. So is a prompt that ends in `eos`, unless the oracle has an attribute
    `prompts_go_on` that is true: of a model that begins its texts, or separates them, with the same token.
    """

    @property
    def vocab_size(self) -> int:
        """Number of tokens the oracle answers for."""
        ...

    @property
    def eos(self) -> int | None:
        """The token that ends a sequence."""
        ...

    @property
    def max_length(self) -> int | None:
        """The longest sequence, in tokens."""
        ...

    def open(self, rows: int, capacity: int, layers: Sequence[int] = ()) -> Context:
        """Make room for `rows` sequences of up to `capacity` tokens, recording the hidden states of `layers`."""
        ...


class PrefixOracle(ABC):
    """An oracle that computes each answer from the prefix alone, with nothing worth keeping between calls."""

    vocab_size: int
    eos: int | None = None
    max_length: int | None = None

    @abstractmethod
    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Log-probabilities (n, vocab) of the token after the first `lengths` (n,) of `tokens` (n, capacity)."""

    def open(self, rows: int, capacity: int, layers: Sequence[int] = ()) -> Context:
        """Return a context without storage; raises where hidden states are asked for."""
        del rows, capacity
        if layers:
            raise TypeError(f"{type(self).__name__} has no hidden states")
        return _StatelessContext(self)


class _StatelessContext:
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


class Decoding(Protocol):
    """A batch of sequences that grow and shrink, and what the oracle says comes next."""

    vocab_size: int
    eos: int | None
    tokens: Tensor  # (rows, capacity) int64: prompt and completion; what lies beyond the length means nothing
    lengths: Tensor  # (rows,) int64
    start: Tensor  # (rows,) int64: length of the prompt
    limit: Tensor  # (rows,) int64: the length at which a row is complete even without an end of sequence
    complete: Tensor  # (rows,) bool: the last token ends the sequence, or the limit is reached

    @property
    def node(self) -> Tensor:
        """Ids (rows,) int64 of the prefixes; equal ids are equal prefixes of the same prompt."""
        ...

    @property
    def growing(self) -> Tensor:
        """The rows (n,) that are not complete."""
        ...

    def log_probs(self, rows: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Ask for the next-token law (n, vocab) of each row, cut to `lengths` (n,): one query per row asked."""
        ...

    def hidden(self, layer: int, rows: Tensor) -> Tensor:
        """Hidden state (n, width) after `layer` blocks at the last position of each row."""
        ...

    def peek(self, tokens: Tensor, rows: Tensor) -> "Decoding":
        """Children on scratch rows: row i continues `rows[i]` with `tokens[i]` (both (n,))."""
        ...


@runtime_checkable
class Verifier(Protocol):
    """Judges prefixes and complete sequences: 0/1, a probability, or any finite non-negative value.

    For a prefix the answer is about viability (can it still be completed?), for a complete sequence about
    membership; `decoding.complete` tells which is asked. A verifier states its `scope` (whether it judges prompt
    and completion, or the completion alone) and the `layers` whose hidden states it reads.
    """

    scope: Literal["sequence", "completion"]
    layers: Sequence[int]

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Values (n,) of the sequences in `rows` (n,)."""
        ...

    def children(self, decoding: Decoding, rows: Tensor) -> Tensor | None:
        """Values (n, vocab) of all one-token continuations, or None where only `values` can tell."""
        ...


def ends(tokens: Tensor, lengths: Tensor, limit: Tensor, eos: int | None) -> Tensor:
    """Which sequences (n,) are complete: the limit is reached, or the last token is the end of sequence."""
    complete = lengths >= limit
    if eos is None:
        return complete
    last = tokens.gather(1, (lengths - 1).clamp_min(0)[:, None])[:, 0]
    return complete | ((last == eos) & (lengths > 0))


def padded(sequences: Sequence[Sequence[int]], capacity: int | None = None) -> tuple[Tensor, Tensor]:
    """Sequences of token ids as one right-padded (n, capacity) int64 tensor, and their lengths (n,)."""
    lengths = torch.tensor([len(sequence) for sequence in sequences], dtype=torch.int64)
    longest = int(lengths.max()) if len(sequences) else 0
    tokens = torch.zeros(len(sequences), longest if capacity is None else capacity, dtype=torch.int64)
    for row, sequence in enumerate(sequences):
        tokens[row, : len(sequence)] = torch.as_tensor(sequence, dtype=torch.int64)
    return tokens, lengths
