"""Base classes of models of whole sequences, and of Markov chains.

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
from trialogue.oracles.sequences import enumerate_sequences
from trialogue.randomness import Choose

TABLE_STATES = 2**16
"""Maximum number of states of a block whose joint distribution is computed."""
_ENTRIES_AT_ONCE = 2**22


class SequenceModel(ABC):
    """Base class of models of sequences of fixed length. The subclasses are `Masked`, `Energy` and `Joint`.

    A position of a sequence is called a site. Each site has one of `vocab_size` values (tokens).
    """

    vocab_size: int
    """Number of values of a site."""
    sites: int | None = None
    """Number N of sites. None if the model accepts sequences of any length."""
    default_length: int | None = None
    """Length of sampled sequences if neither a prompt, a `length` nor `sites` defines it (default: none)."""
    device: torch.device | None = None
    """Required device of the tokens. None if the model accepts every device."""

    def free(self, tokens: Tensor) -> Tensor:
        """Return which positions (sites) a Markov chain may change (default: all).

        Args:
            tokens: Sequences (rows, N) int64.

        Returns:
            Bool tensor (rows, N), True for sites that can change.
        """
        return torch.ones_like(tokens, dtype=torch.bool)

    def site_log_weights(self, tokens: Tensor, sites: Tensor) -> Tensor:
        """Return unnormalised log-probabilities of the values of one site, given the tokens at all other sites.

        Args:
            tokens: Sequences (rows, N) int64.
            sites: Index (rows,) int64 of one site for each sequence.

        Returns:
            Log-weights (rows, vocab).

        Raises:
            InputError: If the model is neither `Masked` nor an `Energy`.
        """
        del tokens, sites
        raise InputError("model", type(self).__name__, "single sites need a masked oracle, or an energy")

    def block_log_weights(self, tokens: Tensor, block: Tensor) -> Tensor | None:
        """Return the unnormalised log-probability of the tokens in a block of sites, given all other tokens.

        The result is log p(x_block | other sites), up to a constant that depends only on the tokens at the other sites.

        Args:
            tokens: Sequences (rows, N) int64.
            block: Bool tensor (rows, N), True for the sites of the block.

        Returns:
            Log-weights (rows,). None (default) if the model does not define joint distributions of blocks.
        """
        del tokens, block
        return None


class Masked(SequenceModel):
    """Masked language model, which predicts each masked token from the unmasked tokens on both sides.

    The predictions need not be the conditional distributions of a single joint distribution. A subclass defines
    `vocab_size` and `log_probs`.
    """

    @abstractmethod
    def log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """Return log p(x_i | unmasked tokens) for each masked site i.

        Args:
            tokens: Sequences (rows, N) int64. Tokens at masked sites are ignored.
            masked: Bool tensor (rows, N), True for masked sites.

        Returns:
            Log-probabilities (rows, N, vocab). Entries at unmasked sites are undefined.
        """

    def masked_log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """Return `log_probs` for a caller that reads masked sites only (default: `log_probs`).

        Args:
            tokens: Sequences (rows, N) int64. Tokens at masked sites are ignored.
            masked: Bool tensor (rows, N), True for masked sites.

        Returns:
            Log-probabilities (rows, N, vocab). Entries at unmasked sites are undefined.
        """
        return self.log_probs(tokens, masked)

    def site_log_probs(self, tokens: Tensor) -> Tensor:
        """Return log p(x_i | all other tokens) for every site i.

        The default implementation calls the model once for each site, with only this site masked.

        Args:
            tokens: Sequences (rows, N) int64.

        Returns:
            Log-probabilities (rows, N, vocab).
        """
        every_site = range(tokens.shape[1])
        distributions = [
            self.site_log_weights(tokens, torch.full_like(tokens[:, 0], site)) for site in every_site
        ]
        return torch.stack(distributions, 1)

    def refined_log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """Return the distribution of every token given all current tokens, some of which may be wrong.

        Iterative refinement uses these distributions to correct tokens. By default, each site itself is
        masked. A model that was trained on corrupted sequences can override this method, and also use the
        current token of the site.

        Args:
            tokens: Sequences (rows, N) int64.
            masked: Bool tensor (rows, N), True for sites whose tokens are unknown.

        Returns:
            Log-probabilities (rows, N, vocab).
        """
        distributions = self.log_probs(tokens, masked).clone()
        for site in range(tokens.shape[1]):
            alone = masked.clone()
            alone[:, site] = True
            distributions[:, site] = self.log_probs(tokens, alone)[:, site]
        return distributions

    def site_logits(self, tokens: Tensor) -> Tensor:
        """Return logits of every site: scores whose log-softmax is log p(x_i | all other tokens).

        The default logits are these log-probabilities. A subclass may return logits that differ by a constant per site.

        Args:
            tokens: Sequences (rows, N) int64.

        Returns:
            Logits (rows, N, vocab).
        """
        return self.site_log_probs(tokens)

    def token_logits(self, tokens: Tensor) -> Tensor:
        """Return the logit of the current token at every site.

        The logits are scores whose log-softmax is log p(x_i | all other tokens). The result contains one entry of
        `site_logits` for each site.

        Args:
            tokens: Sequences (rows, N) int64.

        Returns:
            Logits (rows, N). Entry (r, i) belongs to the token `tokens[r, i]`.
        """
        return self.site_logits(tokens).gather(2, tokens[:, :, None])[:, :, 0]

    def site_log_weights(self, tokens: Tensor, sites: Tensor) -> Tensor:
        """Return log p(x_i | all other tokens) of one site for each sequence, with one call of the model.

        Args:
            tokens: Sequences (rows, N) int64.
            sites: Index (rows,) int64 of one site for each sequence.

        Returns:
            Log-probabilities (rows, vocab).
        """
        masked = torch.zeros_like(tokens, dtype=torch.bool).scatter_(1, sites[:, None], True)
        distributions = require_float_tensor(
            "log_probs", self.log_probs(tokens, masked), (*tokens.shape, self.vocab_size)
        )
        return distributions[every_row(tokens), sites]


class Energy(SequenceModel):
    """Energy-based model, in which a sequence x has a probability proportional to exp(-E(x)).

    E(x) is the energy. A sequence with the energy +inf has probability 0. A subclass defines `vocab_size` and `energy`.
    Conditional distributions of a site or a block of sites are computed from the energies of all values that it can
    take.
    """

    @abstractmethod
    def energy(self, tokens: Tensor) -> Tensor:
        """Return the energy E(x) of each sequence, a number or +inf.

        Args:
            tokens: Sequences (rows, N) int64.

        Returns:
            Energies (rows,).
        """

    def site_log_weights(self, tokens: Tensor, sites: Tensor) -> Tensor:
        """Return -E(x) for all values of one site, with the tokens at all other sites fixed.

        Args:
            tokens: Sequences (rows, N) int64.
            sites: Index (rows,) int64 of one site for each sequence.

        Returns:
            Negative energies (rows, vocab), the log-weights of the values.
        """

        def log_weights(sequences: Tensor, rows: Tensor) -> Tensor:
            del rows
            return -compute_valid_energy(self, sequences)

        return enumerate_log_weights(log_weights, tokens, sites[:, None], self.vocab_size)

    def block_log_weights(self, tokens: Tensor, block: Tensor) -> Tensor:
        """Return -E(x) of each sequence, the unnormalised log-probability of its tokens in any block of sites.

        Args:
            tokens: Sequences (rows, N) int64.
            block: Ignored, because -E(x) is a valid log-weight for every block.

        Returns:
            Negative energies (rows,).
        """
        del block
        return -compute_valid_energy(self, tokens)


class Joint(SequenceModel):
    """Model that samples the tokens of several sites jointly. A subclass defines `vocab_size` and `draw_block`."""

    @abstractmethod
    def draw_block(self, tokens: Tensor, block: Tensor, choose: Choose) -> Tensor:
        """Sample new tokens for a block of sites from their joint distribution, given the tokens at all other sites.

        Args:
            tokens: Sequences (rows, N) int64.
            block: Bool tensor (rows, N), True for the sites of the block.
            choose: Source of randomness.

        Returns:
            Sequences (rows, N) int64. Only the sites of the block may differ from `tokens`.
        """


StateT = TypeVar("StateT", bound=tuple[Any, ...])
"""State of a sampler or a chain: a NamedTuple of tensors with one entry per row.

The state of a chain has a field `tokens` (rows, N).
"""


class Sequences(NamedTuple):
    """State of a Markov chain that consists only of the current sequences.

    Attributes:
        tokens: Sequences (rows, N) int64.
    """

    tokens: Tensor


class StepInfo(NamedTuple):
    """Statistics of one step of a Markov chain. A field is None if it does not apply to the chain."""

    accepted: Tensor | None = None
    """Share (rows,) float64 of the proposals that were accepted: 0 or 1 for a single proposal."""
    block_size: Tensor | None = None
    """Number (rows,) int64 of sites that were sampled jointly."""


class Chain(ABC, Generic[StateT]):
    """Markov chain on sequences of fixed length. The rows of a batch are independent copies of the chain.

    The next state depends only on the current state and on the random choices. A chain must not count steps or cache
    results, neither in its attributes nor in its state.
    """

    heat_bath: ClassVar[bool] = False
    """Whether every site can take every value of positive conditional probability. Such a chain is ergodic if all
    conditionals are positive."""

    def init(self, model: Any, tokens: Tensor) -> StateT:
        """Return the initial state of the chain (default: a `Sequences` that contains `tokens`).

        Args:
            model: Model that the chain samples from.
            tokens: Start sequences (rows, N) int64, one for each copy of the chain.

        Raises:
            InputError: If the chain cannot run on such sequences, for example because a block is larger than N.
        """
        del model
        return cast(StateT, Sequences(tokens))

    def energies(self, state: StateT) -> Tensor | None:
        """Return the energies that the state contains, to avoid computing them again.

        Args:
            state: State of the chain.

        Returns:
            Energies (rows,) float64 of the sequences. None (default) if the chain does not store energies.
        """
        del state
        return None

    @abstractmethod
    def step(self, model: Any, state: StateT, choose: Choose) -> tuple[StateT, StepInfo]:
        """Return the state after one step of the chain, and statistics of the step.

        Args:
            model: Model that the chain samples from.
            state: Current state. It must not be modified.
            choose: Source of randomness: a function that draws one index per row. It is called with the log-weights of
                the options and the indices of the rows.

        Returns:
            The next state, and a `StepInfo` with the acceptance rate and the block size of the step.
        """


def require_float_tensor(field: str, output: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Convert a model's output to floating point, after a check of its type and shape.

    Args:
        field: Name of the method that returned the output, for error messages.
        output: Output of the model.
        shape: Required shape.

    Returns:
        The output as a floating-point tensor. Integers are converted to float64.

    Raises:
        InputError: If the output is not a tensor of real numbers, or has another shape.
    """
    if not isinstance(output, Tensor) or output.is_complex():
        given = getattr(output, "dtype", type(output).__name__)
        raise InputError(field, given, f"return a tensor of real numbers of shape {shape}")
    if output.shape != shape:
        raise InputError(field, tuple(output.shape), f"return a tensor of shape {shape}")
    return output if output.is_floating_point() else output.double()


def compute_valid_energy(model: Energy, sequences: Tensor) -> Tensor:
    """Compute the energies of sequences, and raise `InputError` if they are not valid.

    Args:
        model: Energy-based model.
        sequences: Sequences (rows, N) int64.

    Returns:
        Energies (rows,), numbers or +inf.

    Raises:
        InputError: If the energies have another shape, or one of them is NaN or -inf.
    """
    energies = require_float_tensor("energy", model.energy(sequences), (len(sequences),))
    wrong = energies[~(energies > -torch.inf)]  # Also true for NaN.
    if len(wrong):
        raise InputError("energy", float(wrong[0]), "return a number or +inf for every sequence")
    return energies


def require_valid_output(model: SequenceModel, tokens: Tensor) -> None:
    """Evaluate a model on one sequence, and raise `InputError` if its output is not valid.

    A masked model must return normalised log-probabilities. An energy-based model must return one number. Chains call
    this function once before they run.

    Args:
        model: Model to check.
        tokens: Sequences (rows, N) int64. Only the first one is used.

    Raises:
        InputError: If an output has another shape or type, or is not normalised.
    """
    row, vocab = tokens[:1], int(model.vocab_size)
    if isinstance(model, Masked):
        sites = model.free(row).long().argmax(1)
        weights = require_float_tensor("site_log_weights", model.site_log_weights(row, sites), (1, vocab))
        # A model may override the weights, which then need not be normalised.
        own = "site_log_weights" in vars(model) or type(model).site_log_weights is not Masked.site_log_weights
        if not own:
            require_log_probs("log_probs", weights, (1, vocab))
    if isinstance(model, Energy):
        compute_valid_energy(model, row)


def every_row(tokens: Tensor) -> Tensor:
    """Return the indices 0, 1, 2, ... of the rows of a tensor, on its device.

    Args:
        tokens: Tensor with one row per sequence.

    Returns:
        Row indices (rows,) int64.
    """
    return torch.arange(len(tokens), device=tokens.device)


def enumerate_log_weights(
    log_weights: Callable[[Tensor, Tensor], Tensor],
    tokens: Tensor,
    sites: Tensor,
    vocab: int,
    held: Tensor | None = None,
) -> Tensor:
    """Return the log-weights of all joint values that k sites of a sequence can take.

    Args:
        log_weights: Function that computes log-weights (n,) of sequences (n, N). Its second argument contains
            the row (n,) of `tokens` that each sequence was made from.
        tokens: Sequences (rows, N) int64, which determine the tokens at all other sites.
        sites: Indices (rows, k) int64 of the k sites of each sequence.
        vocab: Number of values of a site.
        held: Bool tensor (rows, k), True for entries of `sites` that keep their tokens, for example padding.
            They come first in each row (default: no such entries).

    Returns:
        Log-weights (rows, vocab^k). The joint values are in the order of `itertools.product`.

    Raises:
        InputError: If there are more than `TABLE_STATES` joint values.
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
    values = enumerate_sequences(vocab, size, tokens.device)
    parts = []
    for rows in every_row(tokens).split(max(1, _ENTRIES_AT_ONCE // (len(values) * tokens.shape[1]))):
        sequences = _with_values(tokens[rows], sites[rows], held[rows], values)
        weights = log_weights(sequences, rows.repeat_interleave(len(values)))
        parts.append(weights.view(len(rows), -1))
    repeated = (held[:, None, :] & (values > 0)).any(2)
    return torch.cat(parts).masked_fill(repeated, -torch.inf)


def _with_values(tokens: Tensor, sites: Tensor, held: Tensor, values: Tensor) -> Tensor:
    """Return sequences (rows * v, N): each row with each of the `values` (v, k) written to its `sites` (rows, k)."""
    shape = (len(tokens), *values.shape)
    present = tokens.gather(1, sites)[:, None, :]
    replaced = torch.where(held[:, None, :], present, values).expand(shape)
    sequences = tokens[:, None, :].expand(-1, len(values), -1)
    return sequences.scatter(2, sites[:, None, :].expand(shape), replaced).flatten(0, 1)
