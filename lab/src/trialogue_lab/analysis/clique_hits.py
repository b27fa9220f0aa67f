"""Simulated time until all spins of a clique (group of coupled spins) are up (+1)."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from trialogue.data import Ising
from trialogue.oracles import Chain
from trialogue.samplers import hitting_times


class CliqueHits(NamedTuple):
    """Number of steps of a Markov chain until all spins of a clique are up (+1).

    A clique is a group of coupled spins of an Ising model.

    Attributes:
        steps: Number of steps (seeds, runs), at most the budget.
        reached: Whether all spins of the clique were up within the budget (seeds, runs).
    """

    steps: Tensor
    reached: Tensor


def clique_hits(
    chain: Chain[Any],
    model: Ising,
    clique: int,
    *,
    seeds: Sequence[int],
    runs: int,
    budget: int,
    stream: int,
    up: int = 0,
) -> CliqueHits:
    """Run a Markov chain until the first `clique` spins of an Ising model are up (+1).

    Args:
        chain: The Markov chain.
        model: The Ising model that it samples from.
        clique: Number of spins in the clique, a group of coupled spins.
        seeds: Seeds. The random numbers of a run depend only on its own seed.
        runs: Number of runs per seed.
        budget: Number of steps after which a run is stopped.
        stream: Seed of the random stream that all runs share.
        up: Number of spins that are up at the start (default: 0).
    """
    start = torch.zeros(len(seeds) * runs, model.sites, dtype=torch.int64)
    start[:, :up] = 1
    found = hitting_times(
        chain,
        model,
        start=start,
        target=lambda tokens: (tokens[:, :clique] == 1).all(1),
        budget=budget,
        seed=stream,
        chain_ids=torch.cat([seed * runs + torch.arange(runs) for seed in seeds]),
    )
    return CliqueHits(found.steps.view(-1, runs), ~found.censored.view(-1, runs))
