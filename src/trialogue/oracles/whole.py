"""What a Markov chain may ask of a model of whole sequences, and what a chain is: that half of the contract.

A model of whole sequences is `Masked`, an `Energy` or `Joint`, or several of them; each states what it must and
inherits what follows from that. Objects that have the methods without the base classes are taken for such models too
(`as_model`, `as_chain`).

Names of dimensions: `rows` sequences of a batch, `N` sites of a sequence, `vocab` values of a site. Logarithms are
natural.
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
"""A block of more states is not listed."""
_ENTRIES_AT_ONCE = 2**22


class SequenceModel(ABC):
    """What `Masked`, `Energy` and `Joint` have in common: how many values a site takes, and what chains may ask.

    `sites` is N where the model has a number of its own, and None where sequences may have any. `device` is where the
    tokens that it is asked about must lie, and None where it answers wherever it is asked.
    """

    vocab_size: int
    sites: int | None = None
    device: torch.device | None = None

    def free(self, tokens: Tensor) -> Tensor:
        """Which sites (rows, N) bool of `tokens` can change: all, unless a model says that some have one token."""
        return torch.ones_like(tokens, dtype=torch.bool)

    def site_log_weights(self, tokens: Tensor, sites: Tensor) -> Tensor:
        """Log-weights (rows, vocab) of the values of one site of each row given its others; `sites` (rows,).

        Raises `InputError` unless the model says what they are, as masked oracles and energies do.
        """
        del tokens, sites
        raise InputError("model", type(self).__name__, "single sites need a masked oracle, or an energy")

    def block_log_weights(self, tokens: Tensor, block: Tensor) -> Tensor | None:
        """log p(x_block | the rest) (rows,) up to a constant of the rest, of the `tokens` (rows, N) as they are.

        `block` (rows, N) bool. None, the default, where the model does not know how the sites of a block depend on
        each other.
        """
        del tokens, block
        return None


class Masked(SequenceModel):
    """An oracle that answers with the distribution of a token given others on both sides of it.

    Its conditionals need not belong to any joint distribution. It states `vocab_size` and `log_probs`.
    """

    @abstractmethod
    def log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """log p(x_i | x outside the mask) (rows, N, vocab) of each masked site i by itself.

        `tokens` (rows, N) int64, `masked` (rows, N) bool. Tokens at masked sites do not matter; what the answer
        holds at other sites means nothing.
        """

    def site_log_probs(self, tokens: Tensor) -> Tensor:
        """log p(x_i | all others) (rows, N, vocab) of every site i; by default N questions, each with one mask."""
        every_site = range(tokens.shape[1])
        distributions = [
            self.site_log_weights(tokens, torch.full_like(tokens[:, 0], site)) for site in every_site
        ]
        return torch.stack(distributions, 1)

    def refined_log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """Log-probabilities (rows, N, vocab) of every token when all of what `tokens` now are is known but at `masked`.

        What refinement asks for: a model that was trained on spoilt sequences reads the token at a site too, and knows
        that it may be wrong. By default the site itself is masked as well, which takes N questions more.
        """
        distributions = self.log_probs(tokens, masked).clone()
        for site in range(tokens.shape[1]):
            alone = masked.clone()
            alone[:, site] = True
            distributions[:, site] = self.log_probs(tokens, alone)[:, site]
        return distributions

    def site_logits(self, tokens: Tensor) -> Tensor:
        """What `site_log_probs` normalises (rows, N, vocab), as the model gives it; by default it is normalised.

        Models that differ in a constant of each site have one distribution and different logits: a choice of gauge.
        """
        return self.site_log_probs(tokens)

    def token_logits(self, tokens: Tensor) -> Tensor:
        """What `site_logits` gives the token at each site (rows, N), which a model may know without all others."""
        return self.site_logits(tokens).gather(2, tokens[:, :, None])[:, :, 0]

    def site_log_weights(self, tokens: Tensor, sites: Tensor) -> Tensor:
        """log p(x_i | all others) (rows, vocab) of one site of each row; by default one question with its mask."""
        masked = torch.zeros_like(tokens, dtype=torch.bool).scatter_(1, sites[:, None], True)
        distributions = answered(
            "log_probs", self.log_probs(tokens, masked), (*tokens.shape, self.vocab_size)
        )
        return distributions[every_row(tokens), sites]


class Energy(SequenceModel):
    """A distribution p(x) ∝ exp(-E(x)) over whole sequences; E may be +inf where p is zero.

    It states `vocab_size` and `energy`; conditionals follow from the energies of all values of a site or block.
    """

    @abstractmethod
    def energy(self, tokens: Tensor) -> Tensor:
        """E(x) (rows,) of `tokens` (rows, N)."""

    def site_log_weights(self, tokens: Tensor, sites: Tensor) -> Tensor:
        """-E (rows, vocab) of the sequences that have each value at one site of each row; `sites` (rows,)."""

        def log_weights(sequences: Tensor, rows: Tensor) -> Tensor:
            del rows
            return -checked_energy(self, sequences)

        return listed(log_weights, tokens, sites[:, None], self.vocab_size)

    def block_log_weights(self, tokens: Tensor, block: Tensor) -> Tensor:
        """-E(x) (rows,), whatever the block."""
        del block
        return -checked_energy(self, tokens)


class Joint(SequenceModel):
    """A model whose blocks of sites can be drawn together; it states `vocab_size` and `draw_block`."""

    @abstractmethod
    def draw_block(self, tokens: Tensor, block: Tensor, choose: Choose) -> Tensor:
        """Tokens (rows, N) after a joint draw of x_block given the rest; `block` (rows, N) bool."""


StateT = TypeVar("StateT", bound=tuple[Tensor, ...])
"""What a sampler or a chain keeps per row: a NamedTuple of row-leading tensors.

That of a chain has a field `tokens` (rows, N).
"""


class Sequences(NamedTuple):
    """The state of a chain that keeps nothing but its sequences."""

    tokens: Tensor


class StepInfo(NamedTuple):
    """What happened in one step of a chain; a field is None if it has no meaning for the chain."""

    accepted: Tensor | None = None
    """(rows,) float64: share of the step's proposals that were accepted; 0 or 1 for a single proposal"""
    block_size: Tensor | None = None
    """(rows,) int64: number of sites that were drawn jointly"""


class Chain(ABC, Generic[StateT]):
    """A sampler on whole sequences: a Markov chain, of which every row of the batch is a copy.

    A `heat_bath` may give any site any value of positive conditional probability, and covers all sites: where all
    conditionals are positive it is ergodic, which then needs no check. A chain keeps no clock, cache or counter, in
    itself or in its state: what it does next is a function of the state and of what it chooses.
    """

    heat_bath: ClassVar[bool] = False

    def init(self, model: Any, tokens: Tensor) -> StateT:
        """Return the state of chains that stand at `tokens` (rows, N), a function of them: by default `Sequences`.

        Raises `InputError` where the chain cannot run on such sequences, such as for a block larger than N.
        """
        del model
        return cast(StateT, Sequences(tokens))

    def energies(self, state: StateT) -> Tensor | None:
        """The energies (rows,) float64 of the sequences of `state`, where the chain keeps them; None otherwise."""
        del state
        return None

    @abstractmethod
    def step(self, model: Any, state: StateT, choose: Choose) -> tuple[StateT, StepInfo]:
        """Return the state after one step, and what happened in it: `StepInfo()` if there is nothing to report.

        `state` stays as it is. Row i chooses as row i.
        """


def answered(field: str, answer: Tensor, shape: tuple[int, ...]) -> Tensor:
    """What a model answered, as floating point; raises `InputError` for another shape than was asked for."""
    if not isinstance(answer, Tensor) or answer.is_complex():
        given = getattr(answer, "dtype", type(answer).__name__)
        raise InputError(field, given, f"return a tensor of real numbers, of shape {shape}")
    if answer.shape != shape:
        raise InputError(field, tuple(answer.shape), f"answer with a tensor of shape {shape}")
    return answer if answer.is_floating_point() else answer.double()


def checked_energy(model: Energy, sequences: Tensor) -> Tensor:
    """E(x) (rows,) of `sequences` (rows, N); raises `InputError` for other shapes, and where it is no number."""
    energies = answered("energy", model.energy(sequences), (len(sequences),))
    wrong = energies[~(energies > -torch.inf)]  # NaN is not greater than anything
    if len(wrong):
        raise InputError(
            "energy", float(wrong[0]), "give an energy that is a number or +inf for every sequence"
        )
    return energies


def require_valid_output(model: SequenceModel, tokens: Tensor) -> None:
    """Evaluate the model on the first row of `tokens` (rows, N) and validate the output.

    A masked oracle returns normalised log-probabilities of a masked site, an energy one number. Chains call this once
    before they run; it calls the model once in each of these roles, with one row.

    Raises:
        InputError: If an output has another shape or type, or is not normalised.
    """
    row, vocab = tokens[:1], int(model.vocab_size)
    if isinstance(model, Masked):
        sites = model.free(row).long().argmax(1)
        weights = answered("site_log_weights", model.site_log_weights(row, sites), (1, vocab))
        # A model may define weights of its own, which need not be normalised.
        own = "site_log_weights" in vars(model) or type(model).site_log_weights is not Masked.site_log_weights
        if not own:
            require_log_probs("log_probs", weights, (1, vocab))
    if isinstance(model, Energy):
        checked_energy(model, row)


def every_row(tokens: Tensor) -> Tensor:
    """The numbers (rows,) of the rows of `tokens`, where these lie."""
    return torch.arange(len(tokens), device=tokens.device)


def listed(
    log_weights: Callable[[Tensor, Tensor], Tensor],
    tokens: Tensor,
    sites: Tensor,
    vocab: int,
    held: Tensor | None = None,
) -> Tensor:
    """Log-weights (rows, vocab^k) of the values of the `sites` (rows, k) of each row, in `itertools.product` order.

    `log_weights(sequences (n, N), rows (n,)) -> (n,)` gives that of each sequence, which is made of the row named.
    Sites where `held` (rows, k) is True, which come first, keep their tokens: of the values, only those that begin with
    zeros there have weight. Raises `InputError` for a table of more than `TABLE_STATES` states.
    """
    size = sites.shape[1]
    if vocab**size > TABLE_STATES and size > 1:
        raise InputError(
            "block",
            size,
            f"the joint distribution of the block would list {vocab}^{size} states (at most {TABLE_STATES}): use "
            "smaller "
            "blocks, or, of a masked oracle, draw site after site with `ChainRule`",
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
    """Sequences (rows * v, N): each row with each of the `values` (v, k) at its `sites` (rows, k), unless held."""
    shape = (len(tokens), *values.shape)
    present = tokens.gather(1, sites)[:, None, :]
    replaced = torch.where(held[:, None, :], present, values).expand(shape)
    sequences = tokens[:, None, :].expand(-1, len(values), -1)
    return sequences.scatter(2, sites[:, None, :].expand(shape), replaced).flatten(0, 1)
