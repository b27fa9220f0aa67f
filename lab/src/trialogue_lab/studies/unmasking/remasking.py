"""Exact output distributions of remasking diffusion and of Gibbs corrections, by transitions of single positions."""

import torch
from torch import Tensor

from trialogue_lab.studies.unmasking.instances import Conditionals


def remask(model: Conditionals, passes: int, eta: float) -> tuple[Tensor, float]:
    """Compute the output distribution of `ReMDM(passes, eta, "cap")` from a completely masked sequence.

    A pass changes all positions independently, given the canvas. The distribution of canvases is multiplied by one
    matrix per pass. At `eta` 0, this is ancestral sampling of masked diffusion.

    Args:
        model: The conditional distributions.
        passes: Number of passes.
        eta: Strength of remasking.

    Returns:
        Probabilities (V, ..., V) of the texts, and the expected number of tokens per position that were masked again.
    """
    vocab, sites = model.vocab_size, model.sites
    canvases = torch.cartesian_prod(*[torch.arange(vocab + 1)] * sites)
    predicted = torch.nn.functional.pad(model.table.reshape(-1, sites, vocab).exp(), (0, 1))
    present = torch.nn.functional.one_hot(canvases, vocab + 1).double()
    hidden = present[..., -1:]
    mask = torch.nn.functional.one_hot(torch.tensor(vocab), vocab + 1).double()
    state = torch.zeros(len(canvases), dtype=torch.float64)
    state[-1] = 1.0
    remasked = 0.0
    for number in range(passes):
        before, after = number / passes, (number + 1) / passes
        masking = min(eta, (1 - after) / before) if before else eta
        revealing = (after - (1 - masking) * before) / (1 - before)
        moves = hidden * (revealing * predicted + (1 - revealing) * mask)
        moves = moves + (1 - hidden) * ((1 - masking) * present + masking * mask)
        remasked += masking * float(state @ (1 - hidden[..., 0]).mean(1))
        occupied = state > 0
        matrix = state[occupied, None]
        for site in range(sites):
            matrix = (matrix[:, :, None] * moves[occupied, site, None]).flatten(1)
        state = matrix.sum(0)
    texts = state.reshape((vocab + 1,) * sites)[(slice(0, vocab),) * sites]
    return texts, remasked


def sweep(model: Conditionals, texts: Tensor) -> Tensor:
    """Return the distribution after each position has been drawn again given all others, from left to right.

    Args:
        model: The conditional distributions.
        texts: Probabilities (V, ..., V) of the texts before the sweep.
    """
    vocab, sites = model.vocab_size, model.sites
    for site in range(sites):
        canvas = tuple(vocab if each == site else slice(0, vocab) for each in range(sites))
        drawn = model.table[canvas][..., site, :].exp().movedim(-1, site)
        texts = texts.sum(site, keepdim=True) * drawn
    return texts
