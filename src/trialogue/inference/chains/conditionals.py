"""Conditional laws of sites and blocks, from whatever a model can answer.

A model that is an `Energy` only gives them by the energies of all values; one that is `Masked` only gives those of
single sites, and its blocks are refused: conditionals of single sites do not say how the sites of a block depend on
each other.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Energy, Joint, Masked, sites_of, whole_sequences
from trialogue.randomness import Choose

Model = Masked | Energy | Joint
"""What a chain runs on."""

TABLE_STATES = 2**16
"""A block of more states is not drawn from a table of its energies."""
_ENTRIES_AT_ONCE = 2**22

Tilt = Callable[[Tensor, Tensor], Tensor]
"""`tilt(sequences (n, N), rows (n,)) -> (n,)`: what the row adds to the log-weight of a sequence."""


def vocab_of(model: Model) -> int:
    """Number of values a site takes; raises `InputError` where `model` is nothing a chain can run on."""
    if not isinstance(model, Masked | Energy | Joint) or not hasattr(model, "vocab_size"):
        raise InputError(
            "model", type(model).__name__, "give a masked oracle, or an energy (see trialogue.oracles)"
        )
    return int(model.vocab_size)


def every_row(tokens: Tensor) -> Tensor:
    """The numbers (rows,) of the rows of `tokens`, where these lie."""
    return torch.arange(len(tokens), device=tokens.device)


def site_law(model: Model, tokens: Tensor, sites: Tensor) -> Tensor:
    """Log-weights (rows, vocab) of the values of one site of each row given its others; `sites` (rows,)."""
    own = getattr(model, "site_log_weights", None)
    if own is not None:
        return _answer("site_log_weights", own(tokens, sites), (len(tokens), vocab_of(model)))
    if isinstance(model, Masked):
        masked = torch.zeros_like(tokens, dtype=torch.bool).scatter_(1, sites[:, None], True)
        laws = _answer("log_probs", model.log_probs(tokens, masked), (*tokens.shape, vocab_of(model)))
        return laws[every_row(tokens), sites]
    if not isinstance(model, Energy):
        raise InputError("model", type(model).__name__, "single sites need a masked oracle, or an energy")
    return block_law(model, tokens, sites[:, None])


def site_laws(model: Model, tokens: Tensor) -> Tensor:
    """Log-weights (rows, N, vocab) of the values of every site given all others."""
    if isinstance(model, Masked):
        return _answer("site_log_probs", model.site_log_probs(tokens), (*tokens.shape, vocab_of(model)))
    rows, sites = tokens.shape
    everywhere = torch.arange(sites, device=tokens.device).repeat(rows)
    return site_law(model, tokens.repeat_interleave(sites, 0), everywhere).view(rows, sites, -1)


def block_law(
    model: Model, tokens: Tensor, sites: Tensor, held: Tensor | None = None, tilt: Tilt | None = None
) -> Tensor:
    """Log-weights (rows, vocab^k) of the values of the `sites` (rows, k) of each row, in `itertools.product` order.

    Sites where `held` (rows, k) is True, which come first, keep their tokens: of the values, only those that begin with
    zeros there have weight. `tilt(sequences (n, N), rows (n,)) -> (n,)` is added to the log-weights. Raises
    `InputError` for a table of more than `TABLE_STATES` states, for a block of a model that knows single sites only,
    and for energies that are no numbers.
    """
    size, vocab = sites.shape[1], vocab_of(model)
    of_block = getattr(model, "block_log_weights", None)
    if not isinstance(model, Energy) and of_block is None and size > 1:
        raise _no_joint_law(model, size)
    if vocab**size > TABLE_STATES and size > 1:
        raise InputError(
            "block",
            size,
            f"the joint law of the block would list {vocab}^{size} states (at most {TABLE_STATES}): use smaller "
            "blocks, or, of a masked oracle, draw site after site with `ChainRule`",
        )
    held = torch.zeros_like(sites, dtype=torch.bool) if held is None else held
    values = whole_sequences(vocab, size, tokens.device)
    repeated = (held[:, None, :] & (values > 0)).any(2)
    parts = []
    for rows in every_row(tokens).split(max(1, _ENTRIES_AT_ONCE // (len(values) * tokens.shape[1]))):
        sequences = _with_values(tokens[rows], sites[rows], held[rows], values)
        if isinstance(model, Energy):
            energies = _answer("energy", model.energy(sequences), (len(sequences),))
            if bool(torch.isnan(energies).any()):
                mend = "give an energy that is a number or +inf for every sequence"
                raise InputError("energy", math.nan, mend)
            weights = -energies
        elif of_block is None:
            weights = site_law(model, tokens[rows], sites[rows, 0]).flatten()
        else:
            block = torch.zeros_like(tokens[rows], dtype=torch.bool).scatter_(1, sites[rows], ~held[rows])
            weights = of_block(sequences, block.repeat_interleave(len(values), 0))
        if tilt is not None:
            weights = weights + tilt(sequences, rows.repeat_interleave(len(values)))
        parts.append(weights.view(len(rows), -1))
    return torch.cat(parts).masked_fill(repeated, -math.inf)


def with_block(tokens: Tensor, sites: Tensor, held: Tensor, index: Tensor, vocab: int) -> Tensor:
    """Tokens (rows, N) whose `sites` (rows, k) have the values numbered `index` (rows,), as `block_law` lists them.

    Sites where `held` (rows, k) is True keep their tokens.
    """
    places = vocab ** torch.arange(sites.shape[1] - 1, -1, -1, device=tokens.device)
    values = index[:, None] // places % vocab
    return tokens.scatter(1, sites, torch.where(held, tokens.gather(1, sites), values))


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
    index = choose(block_law(model, tokens[rows], sites, held), rows)
    drawn = tokens.clone()
    drawn[rows] = with_block(tokens[rows], sites, held, index, vocab_of(model))
    return drawn


def _with_values(tokens: Tensor, sites: Tensor, held: Tensor, values: Tensor) -> Tensor:
    """Sequences (rows * v, N): each row with each of the `values` (v, k) at its `sites` (rows, k), unless held."""
    shape = (len(tokens), *values.shape)
    own = tokens.gather(1, sites)[:, None, :]
    chosen = torch.where(held[:, None, :], own, values).expand(shape)
    sequences = tokens[:, None, :].expand(-1, len(values), -1)
    return sequences.scatter(2, sites[:, None, :].expand(shape), chosen).flatten(0, 1)


def _answer(field: str, answer: Tensor, shape: tuple[int, ...]) -> Tensor:
    """What a model answered, as floating point; raises `InputError` for another shape than was asked for."""
    if answer.shape != shape:
        raise InputError(field, tuple(answer.shape), f"answer with a tensor of shape {shape}")
    return answer if answer.is_floating_point() else answer.double()


def _no_joint_law(model: Model, size: int) -> InputError:
    return InputError(
        "block",
        size,
        f"{type(model).__name__} answers for single sites, which gives no joint law of a block: draw its sites one "
        "after another with `ChainRule(model)`, or use single-site updates",
    )
