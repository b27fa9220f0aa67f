"""Scene 3: spins in two cliques, drawn jointly in blocks or all at once and each by itself."""

from typing import Any

import torch
from torch import Tensor

from trialogue.data import Ising
from trialogue.samplers import BlockGibbs, IndependentParallel, run_chain
from trialogue.samplers.exact import transition_matrix
from trialogue_lab.gallery.embedding import in_characters, without_rounding

CLIQUE = 4
FIELD = 0.1
COUPLINGS = (0.1, 0.5, 1.2)
COPIES = 200
STEPS = 100
PLAYERS = {
    "Jointly": (
        BlockGibbs(6),
        "six of the eight, chosen at random, settle on a new set of answers together",
    ),
    "All at once": (
        IndependentParallel(),
        "all eight answer at the same moment, each seeing only what the others said before",
    ),
}
"""The chains of the scene and what they do, by name."""


def model(coupling: float) -> Ising:
    """Two cliques of `CLIQUE` spins with equal couplings inside and none between, and a field on all."""
    inside = torch.full((CLIQUE, CLIQUE), coupling, dtype=torch.float64).fill_diagonal_(0.0)
    field = torch.full((2 * CLIQUE,), FIELD, dtype=torch.float64)
    return Ising(torch.block_diag(inside, inside), field)


def counts(states: Tensor) -> Tensor:
    """How many spins are up in either clique, as one number (..., ) int64: first * (CLIQUE + 1) + second."""
    cliques = states.unflatten(-1, (2, CLIQUE)).sum(-1)
    return cliques[..., 0] * (CLIQUE + 1) + cliques[..., 1]


def scene(seed: int = 0) -> dict[str, Any]:
    """For every coupling the exact law of counts, and of either chain what `COPIES` copies of it do from all down.

    `copies` are the counts (see `counts`) of all copies by step, a character each (the number in base 36), `spins` the
    first copy's spins by step, `distance` the exact total variation, by step, between a copy's law and the target, and
    `in_the_end` what it comes to.
    """
    levels = []
    for coupling in COUPLINGS:
        ising = model(coupling)
        states, law = ising.states(), ising.probabilities()
        target = torch.zeros((CLIQUE + 1) ** 2, dtype=torch.float64).index_add_(0, counts(states), law)
        start = states[:1].expand(COPIES, -1)
        chains = []
        for chain, _ in PLAYERS.values():
            run = run_chain(chain, ising, start=start, steps=STEPS, seed=seed, thin=1, require_ergodic=False)
            visited = torch.cat((start[None], run.samples))
            transitions = transition_matrix(chain, ising)
            chains.append(
                {
                    "copies": in_characters(counts(visited)),
                    "spins": in_characters(visited[:, 0]),
                    "distance": _distances(transitions, law),
                    "in_the_end": _last_distance(transitions, law),
                }
            )
        levels.append({"coupling": coupling, "target": target.tolist(), "chains": chains})
    players = [{"name": name, "says": says, "code": repr(chain)} for name, (chain, says) in PLAYERS.items()]
    return {"clique": CLIQUE, "players": players, "levels": levels}


def _distances(transitions: Tensor, law: Tensor) -> list[float]:
    """Total variation to `law` (states,) after 0, 1, ..., STEPS steps from the first state."""
    at = torch.zeros_like(law)
    at[0] = 1.0
    distances = []
    for _ in range(STEPS + 1):
        distances.append(without_rounding(float((at - law).abs().sum()) / 2))
        at = at @ transitions
    return distances


def _last_distance(transitions: Tensor, law: Tensor) -> float:
    """Total variation to `law` (states,) of what the first state comes to: 2^60 steps, by squaring."""
    after = transitions
    for _ in range(60):
        after = after @ after
        after = after / after.sum(1, keepdim=True)
    return without_rounding(float((after[0] - law).abs().sum()) / 2)
