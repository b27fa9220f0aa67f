"""Oracles of whole sequences, and the Markov chains that move them."""

from typing import Any, Protocol, TypeVar, runtime_checkable

from torch import Tensor

from trialogue.randomness import Choose


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
