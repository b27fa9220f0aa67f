"""Contracts of models of whole sequences and of Markov chains.

A model of whole sequences derives from one or more of `Masked`, `Energy` and `Joint`. Objects that define the same
methods without deriving from these classes are converted by `as_model` and `as_chain`.

Names of dimensions: `rows` is the number of sequences in a batch, `N` the number of sites of a sequence, and `vocab`
the number of values of a site. Logarithms are natural.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar, cast

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles.output_checks import require_log_probs
from trialogue.oracles.sequences import whole_sequences
from trialogue.randomness import Choose

TABLE_STATES = 2**16
"""Maximum number of states of a block whose joint distribution is computed."""
_ENTRIES_AT_ONCE = 2**22


class SequenceModel(ABC):
    """Base class of `Masked`, `Energy` and `Joint`."""

    vocab_size: int
    """Number of values of a site."""
    sites: int | None = None
    """Number N of sites. None if the model accepts sequences of any length."""
    device: torch.device | None = None
    """Required device of the tokens. None if the model accepts every device."""

    def free(self, tokens: Tensor) -> Tensor:
        """Return which sites (rows, N) bool of `tokens` can change (default: all)."""
        return torch.ones_like(tokens, dtype=torch.bool)

    def site_log_weights(self, tokens: Tensor, sites: Tensor) -> Tensor:
        """Return the log-weights (rows, vocab) of the values of one site per row given all other sites.

        Args:
            tokens: Sequences (rows, N) int64.
            sites: One site (rows,) int64 of each row.

        Raises:
            InputError: If the model is neither `Masked` nor an `Energy`.
        """
        del tokens, sites
        raise InputError("model", type(self).__name__, "single sites need a masked oracle, or an energy")

    def block_log_weights(self, tokens: Tensor, block: Tensor) -> Tensor | None:
        """Return log p(x_block | other sites) (rows,), up to a constant that depends on the other sites.

        Args:
            tokens: Sequences (rows, N) int64.
            block: Sites (rows, N) bool of the block.

        Returns:
            The log-weights. None (default) if the model does not define joint distributions of blocks.
        """
        del tokens, block
        return None


class Masked(SequenceModel):
    """A masked language model: distributions of tokens given the unmasked tokens on both sides.

    The conditionals need not be those of a joint distribution. A subclass defines `vocab_size` and `log_probs`.
    """

    @abstractmethod
    def log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """Return log p(x_i | unmasked tokens) for each masked site i.

        Args:
            tokens: Sequences (rows, N) int64. Tokens at masked sites are ignored.
            masked: Masked sites (rows, N) bool.

        Returns:
            Log-probabilities (rows, N, vocab). Entries at unmasked sites are undefined.
        """

    def site_log_probs(self, tokens: Tensor) -> Tensor:
        """Return log p(x_i | all other tokens) (rows, N, vocab) for every site (default: N calls, one mask each)."""
        every_site = range(tokens.shape[1])
        distributions = [
            self.site_log_weights(tokens, torch.full_like(tokens[:, 0], site)) for site in every_site
        ]
        return torch.stack(distributions, 1)

    def refined_log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """Return log-probabilities (rows, N, vocab) of every site given the sequence itself, for refinement.

        A model that was trained on corrupted sequences also uses the current token at a site, which may be wrong. By
        default the site itself is masked, which needs N more calls.

        Args:
            tokens: Sequences (rows, N) int64.
            masked: Sites (rows, N) bool whose tokens are unknown.
        """
        distributions = self.log_probs(tokens, masked).clone()
        for site in range(tokens.shape[1]):
            alone = masked.clone()
            alone[:, site] = True
            distributions[:, site] = self.log_probs(tokens, alone)[:, site]
        return distributions

    def site_logits(self, tokens: Tensor) -> Tensor:
        """Return unnormalised scores (rows, N, vocab) with log-softmax `site_log_probs` (default: `site_log_probs`).

        Adding a constant to the scores of a site changes the logits but not the distribution (a choice of gauge).
        """
        return self.site_log_probs(tokens)

    def token_logits(self, tokens: Tensor) -> Tensor:
        """Return the entries (rows, N) of `site_logits` for the current tokens."""
        return self.site_logits(tokens).gather(2, tokens[:, :, None])[:, :, 0]

    def site_log_weights(self, tokens: Tensor, sites: Tensor) -> Tensor:
        """Return log p(x_i | all other tokens) (rows, vocab) of one site per row (default: one call)."""
        masked = torch.zeros_like(tokens, dtype=torch.bool).scatter_(1, sites[:, None], True)
        distributions = answered(
            "log_probs", self.log_probs(tokens, masked), (*tokens.shape, self.vocab_size)
        )
        return distributions[every_row(tokens), sites]


class Energy(SequenceModel):
    """A distribution p(x) ∝ exp(-E(x)) over whole sequences. E is +inf where p is zero.

    A subclass defines `vocab_size` and `energy`. Conditionals are computed from the energies of all values of a site or
    block.
    """

    @abstractmethod
    def energy(self, tokens: Tensor) -> Tensor:
        """Return the energies E(x) (rows,) of `tokens` (rows, N)."""

    def site_log_weights(self, tokens: Tensor, sites: Tensor) -> Tensor:
        """Return -E (rows, vocab) for all values of one site per row, `sites` (rows,)."""

        def log_weights(sequences: Tensor, rows: Tensor) -> Tensor:
            del rows
            return -checked_energy(self, sequences)

        return listed(log_weights, tokens, sites[:, None], self.vocab_size)

    def block_log_weights(self, tokens: Tensor, block: Tensor) -> Tensor:
        """Return -E(x) (rows,), which does not depend on the block."""
        del block
        return -checked_energy(self, tokens)


class Joint(SequenceModel):
    """A model that samples blocks of sites jointly. A subclass defines `vocab_size` and `draw_block`."""

    @abstractmethod
    def draw_block(self, tokens: Tensor, block: Tensor, choose: Choose) -> Tensor:
        """Return `tokens` (rows, N) with the sites of `block` (rows, N) bool sampled jointly given the others."""


StateT = TypeVar("StateT", bound=tuple[Tensor, ...])
"""State of a sampler or a chain: a NamedTuple of tensors with one entry per row.

The state of a chain has a field `tokens` (rows, N).
"""


class Sequences(NamedTuple):
    """State of a chain that consists of its sequences only."""

    tokens: Tensor


class StepInfo(NamedTuple):
    """Statistics of one step of a chain. A field is None if it does not apply to the chain."""

    accepted: Tensor | None = None
    """Share (rows,) float64 of the proposals that were accepted: 0 or 1 for a single proposal."""
    block_size: Tensor | None = None
    """Number (rows,) int64 of sites that were sampled jointly."""


class Chain(ABC, Generic[StateT]):
    """A Markov chain on whole sequences. The rows of a batch are independent copies of the chain.

    The next state depends only on the current state and on the random choices. A chain must not count steps or cache
    results, in its attributes or in its state.
    """

    heat_bath: ClassVar[bool] = False
    """Whether every site can take every value of positive conditional probability. Such a chain is ergodic if all
    conditionals are positive."""

    def init(self, model: Any, tokens: Tensor) -> StateT:
        """Return the state for chains at `tokens` (rows, N) (default: `Sequences`).

        Raises:
            InputError: If the chain cannot run on such sequences, for example because a block is larger than N.
        """
        del model
        return cast(StateT, Sequences(tokens))

    def energies(self, state: StateT) -> Tensor | None:
        """Return the energies (rows,) float64 of `state` if the chain stores them, otherwise None."""
        del state
        return None

    @abstractmethod
    def step(self, model: Any, state: StateT, choose: Choose) -> tuple[StateT, StepInfo]:
        """Return the state after one step, and its statistics.

        Args:
            model: The model.
            state: The current state, which must not be modified.
            choose: Source of randomness, called with the index of the row.
        """


def answered(field: str, answer: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return the output of a model as floating point. Raises `InputError` if it has another shape."""
    if not isinstance(answer, Tensor) or answer.is_complex():
        given = getattr(answer, "dtype", type(answer).__name__)
        raise InputError(field, given, f"return a tensor of real numbers of shape {shape}")
    if answer.shape != shape:
        raise InputError(field, tuple(answer.shape), f"return a tensor of shape {shape}")
    return answer if answer.is_floating_point() else answer.double()


def checked_energy(model: Energy, sequences: Tensor) -> Tensor:
    """Return E(x) (rows,) of `sequences` (rows, N). Raises `InputError` for other shapes, NaN and -inf."""
    energies = answered("energy", model.energy(sequences), (len(sequences),))
    wrong = energies[~(energies > -torch.inf)]  # Also true for NaN.
    if len(wrong):
        raise InputError("energy", float(wrong[0]), "return a number or +inf for every sequence")
    return energies


def require_valid_output(model: SequenceModel, tokens: Tensor) -> None:
    """Evaluate the model on the first row of `tokens` (rows, N) and validate the output.

    A masked model must return normalised log-probabilities, and an energy one number. Chains call this function once
    before they run.

    Raises:
        InputError: If an output has another shape or type, or is not normalised.
    """
    row, vocab = tokens[:1], int(model.vocab_size)
    if isinstance(model, Masked):
        sites = model.free(row).long().argmax(1)
        weights = answered("site_log_weights", model.site_log_weights(row, sites), (1, vocab))
        # A model may override the weights, which then need not be normalised.
        own = "site_log_weights" in vars(model) or type(model).site_log_weights is not Masked.site_log_weights
        if not own:
            require_log_probs("log_probs", weights, (1, vocab))
    if isinstance(model, Energy):
        checked_energy(model, row)


def every_row(tokens: Tensor) -> Tensor:
    """Return the row indices (rows,) of `tokens`, on its device."""
    return torch.arange(len(tokens), device=tokens.device)


def listed(
    log_weights: Callable[[Tensor, Tensor], Tensor],
    tokens: Tensor,
    sites: Tensor,
    vocab: int,
    held: Tensor | None = None,
) -> Tensor:
    """Return the log-weights (rows, vocab^k) of all joint values of k sites per row, in `itertools.product` order.

    Args:
        log_weights: Function from sequences (n, N) and the rows (n,) that they were made from to log-weights (n,).
        tokens: Sequences (rows, N) int64.
        sites: Sites (rows, k) int64 of each row.
        vocab: Number of values of a site.
        held: Sites (rows, k) bool that keep their tokens, the first ones of each row. Only values with zeros at these
            sites have positive weight (default: none).

    Raises:
        InputError: If there are more than `TABLE_STATES` values.
    """
    size = sites.shape[1]
    if vocab**size > TABLE_STATES and size > 1:
        raise InputError(
            "block",
            size,
            f"the joint distribution of the block has {vocab}^{size} states (maximum: {TABLE_STATES}); use smaller "
            "blocks, or sample a masked model site by site with `ChainRule`",
        )
    held = torch.zeros_like(sites, dtype=torch.bool) if held is None else held
    values = whole_sequences(vocab, size, tokens.device)
    parts = []
    for rows in every_row(tokens).split(max(1, _ENTRIES_AT_ONCE // (len(values) * tokens.shape[1]))):
        sequences = _with_values(tokens[rows], sites[rows], held[rows], values)
        weights = log_weights(sequences, rows.repeat_interleave(len(values)))
        parts.append(weights.view(len(rows), -1))
    repeated = (held[:, None, :] & (values > 0)).any(2)
    return torch.cat(parts).masked_fill(repeated, -torch.inf)


def _with_values(tokens: Tensor, sites: Tensor, held: Tensor, values: Tensor) -> Tensor:
    """Return sequences (rows * v, N): each row with each of the `values` (v, k) at its `sites` (rows, k)."""
    shape = (len(tokens), *values.shape)
    present = tokens.gather(1, sites)[:, None, :]
    replaced = torch.where(held[:, None, :], present, values).expand(shape)
    sequences = tokens[:, None, :].expand(-1, len(values), -1)
    return sequences.scatter(2, sites[:, None, :].expand(shape), replaced).flatten(0, 1)
