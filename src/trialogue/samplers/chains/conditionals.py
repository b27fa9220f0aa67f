"""Conditional distributions of single positions and of blocks of positions, given the rest of a sequence.

The conditionals of an `Energy` model are computed from the energies of all values. A `Masked` model has conditionals of
single positions only. They do not determine the joint distribution of a block.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Energy, Joint, Masked, SequenceModel, as_model, list_sites
from trialogue.oracles.whole import compute_valid_energy, enumerate_log_weights, require_float_tensor
from trialogue.randomness import Choose

Tilt = Callable[[Tensor, Tensor], Tensor]
"""Function from sequences (n, N) and rows (n,) to terms (n,) that are added to the log-weights."""


def require_vocab_size(model: SequenceModel) -> int:
    """Return the number of token values of a model, or raise `InputError` if Markov chains cannot sample from it."""
    return int(as_model(model).vocab_size)


def site_distribution(model: SequenceModel, tokens: Tensor, sites: Tensor) -> Tensor:
    """Return the conditional distribution of one site (position) of each row, given all other sites.

    Args:
        model: The model.
        tokens: Tokens (rows, N) int64.
        sites: One site (rows,) of each row.

    Returns:
        Log-weights (rows, vocab), not necessarily normalised.
    """
    checked_model = as_model(model)
    weights = checked_model.site_log_weights(tokens, sites)
    return require_float_tensor("site_log_weights", weights, (len(tokens), int(checked_model.vocab_size)))


def site_distributions(model: SequenceModel, tokens: Tensor) -> Tensor:
    """Return the conditional distribution of every site (position) of each row, given all other sites.

    Args:
        model: The model.
        tokens: Tokens (rows, N) int64.

    Returns:
        Log-weights (rows, N, vocab), not necessarily normalised.
    """
    checked_model = as_model(model)
    if isinstance(checked_model, Masked):
        shape = (*tokens.shape, int(checked_model.vocab_size))
        return require_float_tensor("site_log_probs", checked_model.site_log_probs(tokens), shape)
    rows, sites = tokens.shape
    everywhere = torch.arange(sites, device=tokens.device).repeat(rows)
    return site_distribution(checked_model, tokens.repeat_interleave(sites, 0), everywhere).view(
        rows, sites, -1
    )


def block_distribution(
    model: SequenceModel,
    tokens: Tensor,
    sites: Tensor,
    held: Tensor | None = None,
    tilt: Tilt | None = None,
) -> Tensor:
    """Return the joint conditional distribution of some sites (positions) of each row, given all other sites.

    Args:
        model: The model.
        tokens: Tokens (rows, N) int64.
        sites: Sites (rows, k) of each row.
        held: Whether sites (rows, k) keep their tokens (default: none). Such sites must come first. Joint values that
            are not zero at these sites have log-weight -inf.
        tilt: Function from sequences (n, N) and rows (n,) to terms (n,) that are added to the log-weights (default:
            none).

    Returns:
        Log-weights (rows, vocab^k) of the joint values, in the order of `itertools.product`.

    Raises:
        InputError: If there are more than `TABLE_STATES` values, the model has conditionals of single sites only, or
            energies are NaN.
    """
    checked_model = as_model(model)

    def log_weights(sequences: Tensor, rows: Tensor) -> Tensor:
        weights = _log_weights(checked_model, tokens, sites, held, sequences, rows)
        return weights if tilt is None else weights + tilt(sequences, rows)

    return enumerate_log_weights(log_weights, tokens, sites, require_vocab_size(checked_model), held)


def _log_weights(
    model: SequenceModel, tokens: Tensor, sites: Tensor, held: Tensor | None, sequences: Tensor, rows: Tensor
) -> Tensor:
    """Return the log-weights (n,) of candidate sequences (n, N).

    Candidate i equals row `rows[i]` of `tokens`, except for new values at `sites`.
    """
    if isinstance(model, Energy):
        return -compute_valid_energy(model, sequences)
    drawn = torch.ones_like(sites, dtype=torch.bool) if held is None else ~held
    block = torch.zeros_like(tokens, dtype=torch.bool).scatter_(1, sites, drawn)
    weights = model.block_log_weights(sequences, block[rows])
    if weights is None and sites.shape[1] == 1:
        first_rows = rows[:: require_vocab_size(model)]
        weights = site_distribution(model, tokens[first_rows], sites[first_rows, 0]).flatten()
    if weights is None:
        raise _no_block_distribution(model, sites.shape[1])
    return weights


def write_block(tokens: Tensor, sites: Tensor, held: Tensor, index: Tensor, vocab: int) -> Tensor:
    """Write new values at some sites (positions) of each row.

    Args:
        tokens: Tokens (rows, N) int64.
        sites: Sites (rows, k) of each row.
        held: Whether sites (rows, k) keep their tokens.
        index: Index (rows,) of the joint value of the k sites, in the order of `block_distribution`.
        vocab: Number of values of a site.

    Returns:
        A new tensor (rows, N).
    """
    places = vocab ** torch.arange(sites.shape[1] - 1, -1, -1, device=tokens.device)
    values = index[:, None] // places % vocab
    return tokens.scatter(1, sites, torch.where(held, tokens.gather(1, sites), values))


def draw_block(model: SequenceModel, tokens: Tensor, block: Tensor, choose: Choose) -> Tensor:
    """Resample a block of sites (positions) of each row jointly, given all other tokens.

    Args:
        model: The model.
        tokens: Tokens (rows, N) int64.
        block: Sites (rows, N) bool of the block.
        choose: Function that draws one index per row in proportion to given weights.

    Returns:
        The new tokens (rows, N).

    Raises:
        InputError: If the model has no joint distribution of the block, or too many values to enumerate.
    """
    checked_model = as_model(model)
    if isinstance(checked_model, Joint):
        return checked_model.draw_block(tokens, block, choose)
    rows = block.any(1).nonzero()[:, 0]
    if not len(rows):
        return tokens
    sites, held = list_sites(block[rows])
    index = choose(block_distribution(checked_model, tokens[rows], sites, held), rows)
    drawn = tokens.clone()
    drawn[rows] = write_block(tokens[rows], sites, held, index, require_vocab_size(checked_model))
    return drawn


def _no_block_distribution(model: SequenceModel, size: int) -> InputError:
    return InputError(
        "block",
        size,
        f"use `ChainRule(model)`, which draws the sites in sequence, or single-site updates, because "
        f"{type(model).__name__} has conditionals of single sites only",
    )
