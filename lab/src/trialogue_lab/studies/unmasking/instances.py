"""Random distributions with exact or noisy conditionals of masked positions."""

from dataclasses import dataclass

import torch
from torch import Tensor

from trialogue.data import Dyck, Ising, PottsChain
from trialogue.oracles import Masked, enumerate_sequences
from trialogue.randomness import generator
from trialogue_lab.studies.unmasking.config import TWO_TOKENS, Family

_STATES = 3
"""Number of hidden states."""


def draw_joint(family: Family, seed: int, small: bool = False) -> Tensor:
    """Draw a random distribution of sequences.

    Args:
        family: Kind of distribution.
        seed: Seed.
        small: Whether to use fewer positions, for remasking (default: False).

    Returns:
        Probabilities (V, ..., V) float64 with one axis per position.
    """
    random = generator(seed, "unmasking", family)

    def uniform(low: float, high: float, *shape: int) -> Tensor:
        return low + (high - low) * torch.rand(shape, generator=random, dtype=torch.float64)

    def normal(scale: float, *shape: int) -> Tensor:
        return scale * torch.randn(shape, generator=random, dtype=torch.float64)

    sites = (5 if small else 8) if family in TWO_TOKENS else (4 if small else 6)
    if family == "clique":
        model = Ising.clique(sites, sites - 2, float(uniform(0.2, 0.6)), normal(0.3, sites))
        return model.probabilities().reshape((2,) * sites)
    if family == "Ising chain":
        neighbours = torch.diag(uniform(0.3, 1.2, sites - 1) * normal(1.0, sites - 1).sign(), 1)
        model = Ising(neighbours + neighbours.T, normal(0.3, sites))
        return model.probabilities().reshape((2,) * sites)
    if family == "Potts chain":
        energies = -PottsChain(uniform(0.0, 6.0, 3, 3)).energy(enumerate_sequences(3, sites))
        return energies.softmax(0).reshape((3,) * sites)
    if family == "brackets":
        share = float(uniform(0.2, 0.5))
        language = Dyck(sites, (share, 1 - share), open_prob=float(uniform(0.3, 0.7)))
        return language.log_prob(enumerate_sequences(4, sites)).exp().reshape((4,) * sites)
    if family == "hidden Markov":
        start, moves, emissions = (
            normal(scale, *shape).softmax(-1)
            for scale, shape in ((1.0, (_STATES,)), (3.0, (_STATES, _STATES)), (3.0, (_STATES, 3)))
        )
        forward = start[:, None] * emissions
        for _ in range(sites - 1):
            forward = torch.einsum("s...,st,tv->t...v", forward, moves, emissions)
        return forward.sum(0)
    return normal(3.0, 3**sites).softmax(0).reshape((3,) * sites)


def sum_over_masks(joint: Tensor) -> Tensor:
    """Return the probability of the revealed tokens of every canvas.

    Args:
        joint: Probabilities (V, ..., V).

    Returns:
        Probabilities (V + 1, ..., V + 1), in which index V stands for a masked position.
    """
    for site in range(joint.ndim):
        joint = torch.cat((joint, joint.sum(site, keepdim=True)), site)
    return joint


@dataclass(frozen=True, eq=False)
class Conditionals(Masked):
    """Masked model with a stored distribution for every canvas and masked position.

    Args:
        table: Log-probabilities (V + 1, ..., V + 1, L, V) by canvas, in which index V stands for a masked position.
    """

    table: Tensor

    @property
    def vocab_size(self) -> int:  # type: ignore[override]
        """Number of tokens."""
        return self.table.shape[-1]

    @property
    def sites(self) -> int:  # type: ignore[override]
        """Number of positions."""
        return self.table.shape[-2]

    def log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """Return the stored log-probabilities (rows, L, V) of a batch of `tokens` and `masked` positions."""
        return self.table[tuple(tokens.masked_fill(masked, self.vocab_size).T)]


def conditionals(joint: Tensor, noise: float = 0.0, seed: int = 0) -> Conditionals:
    """Return the conditional distributions of a joint distribution, with noise in the logits.

    The noise of a canvas, a position and a token has a normal distribution and is drawn once. Impossible tokens stay
    impossible. After an impossible context, the distribution is uniform.

    Args:
        joint: Probabilities (V, ..., V).
        noise: Standard deviation of the noise (default: 0).
        seed: Seed of the noise.
    """
    vocab, sites = joint.shape[0], joint.ndim
    sums = sum_over_masks(joint)
    table = torch.full((*sums.shape, sites, vocab), 1 / vocab, dtype=torch.float64)
    for site in range(sites):
        context = sums.select(site, vocab)[..., None]
        known = sums.narrow(site, 0, vocab).movedim(site, -1) / context
        table.select(site, vocab)[..., site, :] = torch.where(context > 0, known, 1 / vocab)
    random = generator(seed, "unmasking", "noise")
    logits = table.log() + noise * torch.randn(table.shape, generator=random, dtype=torch.float64)
    return Conditionals(logits.log_softmax(-1))
