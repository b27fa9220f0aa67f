"""Conditional distributions of sites and blocks, from whatever a model can answer, each answer checked.

A model that is an `Energy` only gives them by the energies of all values; one that is `Masked` only gives those of
single sites, and its blocks are refused: conditionals of single sites do not say how the sites of a block depend on
each other.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Energy, Joint, Masked, SequenceModel, as_model, sites_of
from trialogue.oracles.whole import answered, checked_energy, listed
from trialogue.randomness import Choose

Tilt = Callable[[Tensor, Tensor], Tensor]
"""`tilt(sequences (n, N), rows (n,)) -> (n,)`: what the row adds to the log-weight of a sequence."""


def vocab_of(model: SequenceModel) -> int:
    """Number of values a site takes; raises `InputError` where `model` is nothing a chain can run on."""
    return int(as_model(model).vocab_size)


def site_law(model: SequenceModel, tokens: Tensor, sites: Tensor) -> Tensor:
    """Log-weights (rows, vocab) of the values of one site of each row given its others; `sites` (rows,)."""
    asked = as_model(model)
    weights = asked.site_log_weights(tokens, sites)
    return answered("site_log_weights", weights, (len(tokens), int(asked.vocab_size)))


def site_laws(model: SequenceModel, tokens: Tensor) -> Tensor:
    """Log-weights (rows, N, vocab) of the values of every site given all others."""
    asked = as_model(model)
    if isinstance(asked, Masked):
        shape = (*tokens.shape, int(asked.vocab_size))
        return answered("site_log_probs", asked.site_log_probs(tokens), shape)
    rows, sites = tokens.shape
    everywhere = torch.arange(sites, device=tokens.device).repeat(rows)
    return site_law(asked, tokens.repeat_interleave(sites, 0), everywhere).view(rows, sites, -1)


def listed_law(
    model: SequenceModel,
    tokens: Tensor,
    sites: Tensor,
    held: Tensor | None = None,
    tilt: Tilt | None = None,
) -> Tensor:
    """Log-weights (rows, vocab^k) of the values of the `sites` (rows, k) of each row, in `itertools.product` order.

    Sites where `held` (rows, k) is True, which come first, keep their tokens: of the values, only those that begin with
    zeros there have weight. `tilt(sequences (n, N), rows (n,)) -> (n,)` is added to the log-weights. Raises
    `InputError` for a table of more than `TABLE_STATES` states, for a block of a model that knows single sites only,
    and for energies that are no numbers.
    """
    asked = as_model(model)

    def log_weights(sequences: Tensor, rows: Tensor) -> Tensor:
        weights = _log_weights(asked, tokens, sites, held, sequences, rows)
        return weights if tilt is None else weights + tilt(sequences, rows)

    return listed(log_weights, tokens, sites, vocab_of(asked), held)


def _log_weights(
    model: SequenceModel, tokens: Tensor, sites: Tensor, held: Tensor | None, sequences: Tensor, rows: Tensor
) -> Tensor:
    """Log-weights (n,) of `sequences` (n, N), made of `rows` (n,) of `tokens` by all values of their `sites`."""
    if isinstance(model, Energy):
        return -checked_energy(model, sequences)
    drawn = torch.ones_like(sites, dtype=torch.bool) if held is None else ~held
    block = torch.zeros_like(tokens, dtype=torch.bool).scatter_(1, sites, drawn)
    weights = model.block_log_weights(sequences, block[rows])
    if weights is None and sites.shape[1] == 1:
        asked = rows[:: vocab_of(model)]
        weights = site_law(model, tokens[asked], sites[asked, 0]).flatten()
    if weights is None:
        raise _no_joint_law(model, sites.shape[1])
    return weights


def with_block(tokens: Tensor, sites: Tensor, held: Tensor, index: Tensor, vocab: int) -> Tensor:
    """Tokens (rows, N) whose `sites` (rows, k) have the values numbered `index` (rows,), as `listed_law` lists them.

    Sites where `held` (rows, k) is True keep their tokens.
    """
    places = vocab ** torch.arange(sites.shape[1] - 1, -1, -1, device=tokens.device)
    values = index[:, None] // places % vocab
    return tokens.scatter(1, sites, torch.where(held, tokens.gather(1, sites), values))


def draw_block(model: SequenceModel, tokens: Tensor, block: Tensor, choose: Choose) -> Tensor:
    """Tokens (rows, N) after a joint draw of the sites in `block` (rows, N) given the rest.

    Raises `InputError` where the model has no joint distribution to draw from, or lists too many states.
    """
    asked = as_model(model)
    if isinstance(asked, Joint):
        return asked.draw_block(tokens, block, choose)
    rows = block.any(1).nonzero()[:, 0]
    if not len(rows):
        return tokens
    sites, held = sites_of(block[rows])
    index = choose(listed_law(asked, tokens[rows], sites, held), rows)
    drawn = tokens.clone()
    drawn[rows] = with_block(tokens[rows], sites, held, index, vocab_of(asked))
    return drawn


def _no_joint_law(model: SequenceModel, size: int) -> InputError:
    return InputError(
        "block",
        size,
        f"{type(model).__name__} answers for single sites, which gives no joint distribution of a block: draw "
        "its sites one "
        "after another with `ChainRule(model)`, or use single-site updates",
    )
