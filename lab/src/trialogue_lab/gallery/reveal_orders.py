"""Scene 4 of the gallery: spins (±1) in two groups of coupled spins, revealed in a few passes by unmasking samplers."""

from typing import Any

import torch
from torch import Tensor

from trialogue import exact_distribution, total_variation, unmask
from trialogue.data import Ising
from trialogue.oracles import Masked
from trialogue.samplers.exact import kullback_leibler
from trialogue.samplers.unmasking import Confidence, Fixed, LeftToRight, Ordered, Random
from trialogue_lab.gallery.embedding import encode_base_36
from trialogue_lab.gallery.two_cliques import CLIQUE, count_up_spins, make_model

COUPLING = 0.5
POSITIONS = (1, 2, 4)
SAMPLES = 200
ORDERS = {
    "Random": (Random(), "random friends answer next"),
    "In a row": (LeftToRight(), "the friends of group A answer first, then those of group B"),
    "Most certain": (Confidence("random"), "the friends whose answer is easiest to guess answer next"),
}
"""The orders of the scene and their descriptions, by name."""


class RecordedModel(Masked):
    """A masked model that stores which positions are masked in each call.

    Args:
        model: The model.
    """

    def __init__(self, model: Ising) -> None:
        self._model, self.vocab_size, self.sites = model, model.vocab_size, model.sites
        self.masked: list[Tensor] = []

    def log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """Return the log-probabilities (rows, length, vocab) of the model, with its arguments."""
        self.masked.append(masked)
        return self._model.log_probs(tokens, masked)


def make_scene(seed: int = 0) -> dict[str, Any]:
    """Sample an Ising model with several orders and numbers of positions per pass, and return the data of the scene.

    Args:
        seed: Seed of the samples (default: 0).

    Returns:
        Dictionary with JSON values. "target" is the exact distribution of the numbers of up spins. For each number of
        positions per pass, each order has the spins of all samples ("spins") and the pass that reveals each of them
        ("passes"), as digits. It also has the exact output distribution of the numbers of up spins ("output"), and the
        total variation distance ("distance") and the Kullback-Leibler divergence ("divergence", in nats) of the exact
        output distribution of the spins from the distribution of the model.
    """
    ising = make_model(COUPLING)
    states, probabilities = ising.states(), ising.probabilities()
    target = dict(zip(map(tuple, states.tolist()), probabilities.tolist(), strict=True))
    levels = []
    for positions in POSITIONS:
        orders = []
        for order, _ in ORDERS.values():
            sampler, recorded = Ordered(order, Fixed(positions)), RecordedModel(ising)
            samples = unmask(recorded, sampler, num_samples=SAMPLES, seed=seed, batch_size=SAMPLES)
            output = exact_distribution(sampler, ising).probabilities
            orders.append(
                {
                    "spins": encode_base_36(samples.tokens),
                    "passes": encode_base_36(torch.stack(recorded.masked).sum(0)),
                    "output": _count(torch.tensor(list(output)), torch.tensor(list(output.values()))),
                    # Without rounding, equal distributions would have a distance above 0.
                    "distance": round(total_variation(output, target), 12),
                    "divergence": round(kullback_leibler(output, target), 12),
                }
            )
        levels.append({"positions": positions, "orders": orders})
    described = [
        {"name": name, "description": description, "code": repr(order)}
        for name, (order, description) in ORDERS.items()
    ]
    target_counts = _count(states, probabilities)
    return {"clique": CLIQUE, "orders": described, "target": target_counts, "levels": levels}


def _count(states: Tensor, probabilities: Tensor) -> list[float]:
    """Return the distribution of the numbers of up spins, given `probabilities` (n,) of `states` (n, sites)."""
    counts = torch.zeros((CLIQUE + 1) ** 2, dtype=torch.float64)
    return counts.index_add_(0, count_up_spins(states), probabilities.double()).tolist()
