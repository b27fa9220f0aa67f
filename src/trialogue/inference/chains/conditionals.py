"""Conditional laws of sites and blocks, from whatever a model can answer.

A model that is an `Energy` only gives them by the energies of all values; one that is `Masked` only gives those of
single sites, and its blocks are refused: conditionals of single sites do not say how the sites of a block depend on
each other.
"""

import math

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Energy, Joint, Masked, sites_of, whole_sequences
from trialogue.randomness import Choose

Model = Masked | Energy | Joint
"""What a chain runs on."""

TABLE_STATES = 2**16
"""A block of more states is not drawn from a table of its energies."""


def vocab_of(model: Model) -> int:
    """Number of values a site takes; raises `InputError` where `model` is nothing a chain can run on."""
    if not isinstance(model, Masked | Energy | Joint) or not hasattr(model, "vocab_size"):
        raise InputError(
            "model", type(model).__name__, "give a masked oracle, or an energy (see trialogue.oracles)"
        )
    return int(model.vocab_size)


def site_law(model: Model, tokens: Tensor, sites: Tensor) -> Tensor:
    """Log-weights (rows, vocab) of the values of one site of each row given its others; `sites` (rows,)."""
    own = getattr(model, "site_log_weights", None)
    if own is not None:
        return own(tokens, sites)
    if isinstance(model, Masked):
        masked = torch.zeros_like(tokens, dtype=torch.bool).scatter_(1, sites[:, None], True)
        return model.log_probs(tokens, masked)[torch.arange(len(tokens)), sites]
    if not isinstance(model, Energy):
        raise InputError("model", type(model).__name__, "single sites need a masked oracle, or an energy")
    return block_law(model, tokens, sites[:, None])[0]


def site_laws(model: Model, tokens: Tensor) -> Tensor:
    """Log-weights (rows, N, vocab) of the values of every site given all others."""
    if isinstance(model, Masked):
        return model.site_log_probs(tokens)
    rows, sites = tokens.shape
    everywhere = torch.arange(sites).repeat(rows)
    return site_law(model, tokens.repeat_interleave(sites, 0), everywhere).view(rows, sites, -1)


def block_law(
    model: Model, tokens: Tensor, sites: Tensor, held: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Log-weights (rows, vocab^k) of the values of the `sites` (rows, k) of each row, and the sequences they make.

    The sequences are (rows, vocab^k, N). Sites where `held` (rows, k) is True, which come first, keep their tokens:
    of the values, only those that begin with zeros there have weight. Raises `InputError` for a table of more than
    `TABLE_STATES` states, for a block of a model that knows single sites only, and for NaN energies.
    """
    size, vocab = sites.shape[1], vocab_of(model)
    if not isinstance(model, Energy) and size > 1:
        raise _no_joint_law(model, size)
    if vocab**size > TABLE_STATES and size > 1:
        raise InputError(
            "block",
            size,
            f"the joint law of the block would list {vocab}^{size} states (at most {TABLE_STATES}): use smaller "
            "blocks, or draw site after site with `ChainRule`",
        )
    held = torch.zeros_like(sites, dtype=torch.bool) if held is None else held
    values = whole_sequences(vocab, size)
    shape = (len(tokens), len(values), size)
    own = tokens.gather(1, sites)[:, None, :]
    chosen = torch.where(held[:, None, :], own, values).expand(shape)
    sequences = tokens[:, None, :].expand(-1, len(values), -1)
    sequences = sequences.scatter(2, sites[:, None, :].expand(shape), chosen)
    if isinstance(model, Energy):
        weights = -model.energy(sequences.flatten(0, 1)).view(len(tokens), -1)
        if bool(torch.isnan(weights).any()):
            raise InputError("energy", math.nan, "give an energy that is a number or +inf for every sequence")
    else:
        weights = site_law(model, tokens, sites[:, 0])
    repeated = (held[:, None, :] & (values > 0)).any(2)
    return weights.masked_fill(repeated, -math.inf), sequences


def draw_block(model: Model, tokens: Tensor, block: Tensor, choose: Choose) -> Tensor:
    """Tokens (rows, N) after a joint draw of the sites in `block` (rows, N) given the rest.

    Raises `InputError` where the model has no joint law to draw from, or lists too many states.
    """
    if isinstance(model, Joint):
        return model.draw_block(tokens, block, choose)
    rows = block.any(1).nonzero()[:, 0]
    if not len(rows):
        return tokens
    sites, held = sites_of(block[rows])
    weights, sequences = block_law(model, tokens[rows], sites, held)
    drawn = tokens.clone()
    drawn[rows] = sequences[torch.arange(len(rows)), choose(weights, rows)]
    return drawn


def _no_joint_law(model: Model, size: int) -> InputError:
    return InputError(
        "block",
        size,
        f"{type(model).__name__} answers for single sites, which gives no joint law of a block: draw its sites one "
        "after another with `ChainRule(model)`, or use single-site updates",
    )
