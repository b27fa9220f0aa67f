"""Scene 3 of the gallery: spins (±1) in two groups of coupled spins, sampled by two Markov chains.

One Markov chain resamples several spins jointly. The other resamples all spins at once, independently of each other.
"""

from typing import Any

import torch
from torch import Tensor

from trialogue.data import Ising
from trialogue.samplers import BlockGibbs, IndependentParallel, run_chain
from trialogue.samplers.exact import transition_matrix
from trialogue_lab.gallery.embedding import encode_base_36

CLIQUE = 4
FIELD = 0.1
COUPLINGS = (0.1, 0.5, 1.2)
COPIES = 200
STEPS = 100
CHAINS = {
    "Jointly": (BlockGibbs(6), "six of the eight friends, chosen at random, agree on new answers together"),
    "All at once": (
        IndependentParallel(),
        "all eight friends answer at the same time, and each of them only has the answers of the last round",
    ),
}
"""The Markov chains of the scene and their descriptions, by name."""


def make_model(coupling: float) -> Ising:
    """Return an Ising model of two groups of spins, which are coupled within but not between groups.

    Args:
        coupling: Coupling of each pair of spins in a group.
    """
    inside = torch.full((CLIQUE, CLIQUE), coupling, dtype=torch.float64).fill_diagonal_(0.0)
    field = torch.full((2 * CLIQUE,), FIELD, dtype=torch.float64)
    return Ising(torch.block_diag(inside, inside), field)


def count_up_spins(states: Tensor) -> Tensor:
    """Return the numbers of up (+1) spins in both groups as one integer.

        first * (CLIQUE + 1) + second

    Args:
        states: States (..., 2 * CLIQUE), 1 for up and 0 for down.

    Returns:
        Integers (...).
    """
    cliques = states.unflatten(-1, (2, CLIQUE)).sum(-1)
    return cliques[..., 0] * (CLIQUE + 1) + cliques[..., 1]


def make_scene(seed: int = 0) -> dict[str, Any]:
    """Run two Markov chains on Ising models with several couplings, and return the data of the scene.

    Each Markov chain is run `COPIES` times from a state with all spins down.

    Args:
        seed: Seed of the Markov chains (default: 0).

    Returns:
        Dictionary with JSON values. For each coupling, it has the exact distribution of the numbers of up spins
        ("target") and one entry per Markov chain. This entry has the numbers of up spins of all runs ("copies") and the
        spins of the first run ("spins"), by step and as base-36 digits. "distance" is the exact total variation
        distance from the target by step, and "limit" is its limit.
    """
    levels = []
    for coupling in COUPLINGS:
        ising = make_model(coupling)
        states, probabilities = ising.states(), ising.probabilities()
        target = torch.zeros((CLIQUE + 1) ** 2, dtype=torch.float64)
        target.index_add_(0, count_up_spins(states), probabilities)
        start = states[:1].expand(COPIES, -1)
        chains = []
        for chain, _ in CHAINS.values():
            run = run_chain(chain, ising, start=start, steps=STEPS, seed=seed, thin=1, require_ergodic=False)
            visited = torch.cat((start[None], run.samples))
            transitions = transition_matrix(chain, ising)
            chains.append(
                {
                    "copies": encode_base_36(count_up_spins(visited)),
                    "spins": encode_base_36(visited[:, 0]),
                    "distance": _compute_distances(transitions, probabilities),
                    "limit": _compute_limit_distance(transitions, probabilities),
                }
            )
        levels.append({"coupling": coupling, "target": target.tolist(), "chains": chains})
    described = [
        {"name": name, "description": description, "code": repr(chain)}
        for name, (chain, description) in CHAINS.items()
    ]
    return {"clique": CLIQUE, "chains": described, "levels": levels}


def _compute_distances(transitions: Tensor, target: Tensor) -> list[float]:
    """Return the total variation distances from `target` (states,) after 0, 1, ..., `STEPS` steps from state 0."""
    current = torch.zeros_like(target)
    current[0] = 1.0
    distances = []
    for _ in range(STEPS + 1):
        distances.append(_compute_total_variation(current, target))
        current = current @ transitions
    return distances


def _compute_limit_distance(transitions: Tensor, target: Tensor) -> float:
    """Return the total variation distance from `target` (states,) after 2^60 steps from state 0."""
    power = transitions
    for _ in range(60):
        power = power @ power
        power = power / power.sum(1, keepdim=True)
    return _compute_total_variation(power[0], target)


def _compute_total_variation(first: Tensor, second: Tensor) -> float:
    # Without rounding, equal distributions would have a distance above 0.
    return round(float((first - second).abs().sum()) / 2, 12)
