"""Measurements on single steps of samplers: their distance to independent updates, and networks that imitate them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import rel_entr
from torch import Tensor

from trialogue.data import Ising
from trialogue.models.networks.transformer import Transformer, TransformerConfig
from trialogue.oracles import Chain, enumerate_sequences
from trialogue.randomness import derive_seed, generator
from trialogue.samplers import BlockGibbs, Gibbs, IndependentParallel, run_chain
from trialogue.samplers.exact import transition_matrix
from trialogue.training import TrainingConfig, train
from trialogue.training.masking import masked_token_loss
from trialogue_lab.studies.parallel_gap.config import GIBBS, PARALLEL
from trialogue_lab.theory.masking import product_kernels
from trialogue_lab.theory.masking.block_laws import BlockDistribution, block_dynamics
from trialogue_lab.theory.masking.mixing import stationary_probabilities

Array = NDArray[np.float64]
PRODUCT = 1e-12
"""A distribution counts as a product if its KL divergence to the product of its marginals is below this, in nats."""


@dataclass(frozen=True)
class ImitationTask:
    """Task of training a network to imitate single steps of a sampler.

    The sampler runs on an Ising model in which all spins are coupled. Training starts every step from a uniformly
    random state.

    Args:
        chain: Name of the sampler. "k-Gibbs" resamples all spins jointly, and "independent parallel" updates all spins
            independently.
        sites: Number of spins.
        coupling: Coupling between each pair of spins. There are no fields.
        steps: Number of training steps.
        batch_size: Number of transitions in a batch.
    """

    chain: str
    sites: int
    coupling: float
    steps: int
    batch_size: int

    def model(self) -> Ising:
        """Return the Ising model.

        Without fields, its two modes (all spins up, all down) have equal probability.
        """
        return Ising.clique(self.sites, self.sites, self.coupling, 0.0)

    def sampler(self) -> Chain[Any]:
        """Return the sampler that the network imitates."""
        return BlockGibbs(self.sites) if self.chain == GIBBS else IndependentParallel()

    def transitions(self) -> Array:
        """Return the transition matrix (states, states) of the imitated sampler."""
        matrix: Array = transition_matrix(self.sampler(), self.model()).numpy()
        return matrix


def measure_two_modes(sizes: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Compute how closely independent spins can approximate a distribution with two opposite states.

    The distribution has all spins up with probability 1/2, and all spins down with probability 1/2.

    Args:
        sizes: Numbers of spins.

    Yields:
        One row per number of spins.

        - "best_divergence": smallest KL divergence in nats to any distribution of independent spins.
        - "likely_variation": total variation distance to the distribution that attains it.
        - "best_variation": smallest total variation distance that was found.
    """
    for sites in sizes:
        distribution = np.zeros(2**sites)
        distribution[[0, -1]] = 0.5
        distribution = distribution.reshape((2,) * sites)
        yield {"kind": "two modes", "sites": sites, **compute_product_distances(distribution)}


def compute_product_distances(distribution: Array) -> dict[str, float]:
    """Return distances from a distribution to the closest product distributions.

    All sites are independent in a product distribution.

    Args:
        distribution: Probabilities with one axis per site.

    Returns:
        Distances by name.

        - "best_divergence": smallest KL divergence in nats.
        - "likely_variation": total variation distance to the product that attains it.
        - "best_variation": smallest total variation distance that was found.
    """
    closest = product_kernels.closest_in_divergence(distribution)
    variation = float(np.abs(distribution - product_kernels.joint_distribution(closest.sites)).sum()) / 2
    # The search for the smallest TV is skipped for products, which are at distance zero from themselves.
    is_product = closest.distance < PRODUCT
    best = variation if is_product else product_kernels.closest_in_variation(distribution).distance
    return {"best_divergence": closest.distance, "likely_variation": variation, "best_variation": best}


@cache
def compute_best_products(imitation: ImitationTask) -> dict[str, float]:
    """Return the distance between the steps of a sampler and the closest steps with independent spins.

    Given the current state, the distribution of the next state is compared with product distributions, in which all
    spins are independent. Distances are averaged over current states.

    Args:
        imitation: Settings with the sampler.

    Returns:
        Distances by name.

        - "best_divergence": smallest KL divergence in nats.
        - "likely_variation": total variation distance to the product that attains it.
        - "best_variation": smallest total variation distance that was found.
    """
    # Steps of the whole clique are the same from every state up to rounding, so equal rows are computed once.
    rows, counts = np.unique(imitation.transitions().round(14), axis=0, return_counts=True)
    by_row = [compute_product_distances(row.reshape((2,) * imitation.sites)) for row in rows]
    return {name: float(np.average([each[name] for each in by_row], weights=counts)) for name in by_row[0]}


def measure_kernels(sizes: Sequence[int], coupling: float) -> Iterator[dict[str, Any]]:
    """Compute the distance between the steps of several samplers and independent updates of all spins.

    Args:
        sizes: Numbers of spins.
        coupling: Coupling between each pair of spins of the Ising model.

    Yields:
        One row per number of spins and sampler. "divergence" and "variation" compare the distribution of the next state
        with the product of its marginals. They are the KL divergence in nats and the total variation, each for the
        current state with the largest value.
    """
    for sites in sizes:
        model = Ising.clique(sites, sites, coupling, 0.0)
        first = torch.zeros(1, sites, dtype=torch.bool)
        first[0, 0] = True
        fixed = BlockDistribution(first, torch.ones(1, 1, dtype=torch.float64), 2)
        kernels = {
            PARALLEL: transition_matrix(IndependentParallel(), model),
            "one fixed site": block_dynamics(model.probabilities(), fixed),
            "one random site": transition_matrix(Gibbs(), model),
        }
        for size in range(2, sites + 1):
            kernels[f"{GIBBS}, k = {size}"] = transition_matrix(BlockGibbs(size), model)
        for name, matrix in kernels.items():
            gap = product_kernels.factorization_gap(matrix.numpy(), sites)
            largest = {"divergence": float(gap.divergence.max()), "variation": float(gap.variation.max())}
            yield {"kind": "kernel", "sites": sites, "chain": name, **largest}


def measure_network(imitation: ImitationTask, seed: int) -> dict[str, Any]:
    """Train a network to imitate a sampler, and compare its steps with those of the sampler.

    Args:
        imitation: The sampler and the settings of the training.
        seed: Seed of the training.

    Returns:
        Distances by name. All except the last one are averaged over current states.

        - "divergence", "variation": KL divergence in nats and total variation distance between the next states of the
          sampler and of the network.
        - "best_divergence", "likely_variation", "best_variation": distances between the sampler and its best
          approximations by independent spins (see `compute_product_distances`).
        - "limit_variation": total variation distance between the Ising model and the stationary distribution of the
          network.
    """
    truth = imitation.transitions()
    network = product_kernels.product_transitions(train_and_predict(imitation, seed))
    limit = stationary_probabilities(torch.from_numpy(network))
    return {
        "chain": imitation.chain,
        "sites": imitation.sites,
        "divergence": float(rel_entr(truth, network).sum(1).mean()),
        "variation": float(np.abs(truth - network).sum(1).mean()) / 2,
        **compute_best_products(imitation),
        "limit_variation": float((limit - imitation.model().probabilities()).abs().sum()) / 2,
    }


def train_and_predict(imitation: ImitationTask, seed: int) -> Array:
    """Train a network to imitate a sampler, and return its predictions for the next value of every spin.

    Args:
        imitation: The sampler and the settings of the training.
        seed: Seed of the training.

    Returns:
        Probabilities (states, sites, 2) of the two values of each spin, for every current state.
    """
    shape = TransformerConfig(
        vocab_size=2, layers=2, heads=2, width=32, mlp_width=64, max_length=imitation.sites, causal=False
    )
    network = Transformer(shape, seed)
    before, after = sample_transitions(imitation, seed)
    every_site = torch.ones(imitation.batch_size, imitation.sites, dtype=torch.bool)

    def batch(step: int) -> tuple[Tensor, Tensor, Tensor]:
        rows = slice(step * imitation.batch_size, (step + 1) * imitation.batch_size)
        return before[rows], after[rows], every_site

    recipe = TrainingConfig(
        steps=imitation.steps,
        batch_size=imitation.batch_size,
        weight_decay=0.0,
        warmup_steps=imitation.steps // 10,
        seed=seed,
        bf16=False,
    )
    train(network, batch, recipe, progress=False, loss=masked_token_loss)
    states = enumerate_sequences(2, imitation.sites)
    rows, sites = torch.ones_like(states, dtype=torch.bool).nonzero().unbind(1)
    with torch.no_grad():
        probabilities = network.masked_logits(states, rows, sites).double().softmax(1)
    predicted: Array = probabilities.view(*states.shape, 2).numpy()
    return predicted


def sample_transitions(imitation: ImitationTask, seed: int) -> tuple[Tensor, Tensor]:
    """Sample the transitions that a network is trained on.

    Args:
        imitation: The sampler and the settings of the training.
        seed: Seed of the transitions.

    Returns:
        Uniformly random states and the states after one step, both (steps * batch_size, sites).
    """
    count = imitation.steps * imitation.batch_size
    random = generator(seed, "parallel-gap", "states", imitation.sites)
    before = torch.randint(0, 2, (count, imitation.sites), generator=random)
    stream = derive_seed(seed, "parallel-gap", "transitions", imitation.sites, imitation.chain)
    after = run_chain(imitation.sampler(), imitation.model(), start=before, steps=1, seed=stream)
    return before, after.tokens
