"""What a sampler may ask of a model, and what a verifier may look at: the whole contract.

An `Autoregressive` oracle opens a `Context` that evaluates prefixes incrementally. Walks never see it; they see a
`Decoding`, a batch of sequences that grow and shrink. A `Verifier` looks at the same batch. A `Masked` oracle or an
`Energy` answers for whole sequences; a `Chain` moves them.

Names of dimensions: `rows` sequences of the batch, `capacity` the longest sequence it can hold, `vocab` tokens,
`features` whatever the oracle needs to answer for one prefix, `width` of a hidden state, `N` sites of a whole
sequence. Logarithms are natural.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor

from trialogue.randomness import Choose


class Tokenizing(Protocol):
    """What walks and verifiers ask of a tokenization: texts as token ids, and token ids as texts."""

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

    def laws(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """The answers of `log_probs`, and what they were before truncation: by default the same tensor."""
        answers = self.log_probs(features)
        return answers, answers

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
    """An oracle that answers with the law of the next token given a prefix.

    A subclass states its `vocab_size`, what differs from the defaults, and how it opens a context.
    """

    vocab_size: int
    """Number of tokens the oracle answers for"""
    eos: int | None = None
    """The token that ends a sequence"""
    max_length: int | None = None
    """The longest sequence, in tokens: one of that length is complete as it stands"""
    prompts_go_on: bool = False
    """Whether a prompt that ends in `eos` is incomplete: of a model that begins or separates its texts with that"""
    batch_size: int = 1024
    """How many rows move at once by default"""
    tokenization: Tokenizing | None = None
    """What turns texts into tokens and back, where the tokens are those of texts"""

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
    def log_probs(self, rows: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Ask for the next-token law (n, vocab) of each row, cut to `lengths` (n,): one query per row asked."""

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
    layers: Sequence[int] = ()
    """The blocks whose hidden states it reads, besides -1, what the output head reads"""
    parts: Sequence["Verifier"] = ()
    """The verifiers whose product it is, where it is one"""

    @abstractmethod
    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Values (n,) of the sequences in `rows` (n,)."""

    def children(self, decoding: Decoding, rows: Tensor) -> Tensor | None:
        """Values (n, vocab) of all one-token continuations; None, the default, where only `values` can tell."""
        del decoding, rows
        return None

    def up_to(self, stop: str | Sequence[str]) -> "Verifier":
        """The verifier of what comes before the first of the strings `stop`: itself, unless it judges text."""
        del stop
        return self


@runtime_checkable
class Masked(Protocol):
    """An oracle that answers with the law of a token given others on both sides of it.

    Its conditionals need not belong to any joint law.
    """

    @property
    def vocab_size(self) -> int:
        """Number of tokens the oracle answers for."""
        ...

    def log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """log p(x_i | x outside the mask) (rows, N, vocab) of each masked site i by itself.

        `tokens` (rows, N) int64, `masked` (rows, N) bool. Tokens at masked sites do not matter; what the answer
        holds at other sites means nothing.
        """
        ...

    def site_log_probs(self, tokens: Tensor) -> Tensor:
        """log p(x_i | all others) (rows, N, vocab) of every site i."""
        ...


@runtime_checkable
class Joint(Protocol):
    """A model whose blocks of sites can be drawn together."""

    def draw_block(self, tokens: Tensor, block: Tensor, choose: Choose) -> Tensor:
        """Tokens (rows, N) after a joint draw of x_block given the rest; `block` (rows, N) bool."""
        ...


@runtime_checkable
class Energy(Protocol):
    """A law p(x) ∝ exp(-E(x)) over whole sequences; E may be +inf where p is zero."""

    @property
    def vocab_size(self) -> int:
        """Number of values a site takes."""
        ...

    def energy(self, tokens: Tensor) -> Tensor:
        """E(x) (rows,) of `tokens` (rows, N)."""
        ...


StateT = TypeVar("StateT", bound=tuple[Tensor, ...])
"""What a walk or a chain keeps per row: a NamedTuple of row-leading tensors.

That of a chain has a field `tokens` (rows, N).
"""


@runtime_checkable
class Chain(Protocol[StateT]):
    """A sampler on whole sequences: a Markov chain, of which every row of the batch is a copy."""

    def init(self, model: Any, tokens: Tensor) -> StateT:
        """Return the state of chains that stand at `tokens` (rows, N); it is a function of them.

        Raises `InputError` where the chain cannot run on such sequences, such as for a block larger than N.
        """
        ...

    def step(self, model: Any, state: StateT, choose: Choose) -> StateT:
        """Return the state after one step; `state` stays as it is. Row i chooses as row i."""
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


def whole_sequences(vocab_size: int, sites: int, device: torch.device | str = "cpu") -> Tensor:
    """All sequences (vocab^N, N) int64 in the order of `itertools.product`: the last site changes first."""
    places = vocab_size ** torch.arange(sites - 1, -1, -1, device=device)
    return torch.arange(vocab_size**sites, device=device)[:, None] // places % vocab_size


def sites_of(block: Tensor) -> tuple[Tensor, Tensor]:
    """Sites (rows, k) of each row of `block` (rows, N) in ascending order, and which (rows, k) only pad.

    k is the size of the largest block. Padding comes first, so that a table over the last sites of a small block is
    the beginning of the table over all k.
    """
    size = int(block.sum(1).max()) if len(block) else 0
    sites = block.long().argsort(dim=1, stable=True)[:, block.shape[1] - size :]
    return sites, ~block.gather(1, sites)
