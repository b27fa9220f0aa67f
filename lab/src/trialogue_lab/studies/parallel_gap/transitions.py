"""Measurements on transitions: products, joint steps, and networks that imitate them."""

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
from trialogue.models.transformer import Transformer, TransformerConfig
from trialogue.oracles import Chain, whole_sequences
from trialogue.randomness import generator, seed_of
from trialogue.samplers import BlockGibbs, Gibbs, IndependentParallel, run_chain
from trialogue.samplers.exact import transition_matrix
from trialogue.training import TrainingConfig, train
from trialogue.training.masking import masked_token_loss
from trialogue_lab.studies.parallel_gap.config import GIBBS, PARALLEL
from trialogue_lab.theory.masking import product_kernels
from trialogue_lab.theory.masking.block_laws import BlockLaw, block_dynamics
from trialogue_lab.theory.masking.mixing import stationary_law

Array = NDArray[np.float64]
PRODUCT = 1e-12
"""A law nearer than this to the product of its marginals, in nats, counts as one."""


@dataclass(frozen=True)
class Imitation:
    """A network is trained on `steps` batches of `batch_size` transitions of `chain` on a clique of `sites` spins.

    `chain` is `GIBBS` (k-Gibbs with k = `sites`) or `PARALLEL`; starts are uniformly random.
    """

    chain: str
    sites: int
    coupling: float
    steps: int
    batch_size: int

    def model(self) -> Ising:
        """The clique, without a field: two modes of equal weight."""
        return Ising.clique(self.sites, self.sites, self.coupling, 0.0)

    def sampler(self) -> Chain[Any]:
        """The chain whose single steps are imitated."""
        return BlockGibbs(self.sites) if self.chain == GIBBS else IndependentParallel()

    def transitions(self) -> Array:
        """Its transition matrix (states, states)."""
        matrix: Array = transition_matrix(self.sampler(), self.model()).numpy()
        return matrix


def two_mode_rows(sizes: Sequence[int]) -> Iterator[dict[str, Any]]:
    """The best product laws for the law that is all up or all down, with probability one half each."""
    for sites in sizes:
        law = np.zeros(2**sites)
        law[[0, -1]] = 0.5
        law = law.reshape((2,) * sites)
        yield {"kind": "two modes", "sites": sites, **distances(law)}


def distances(law: Array) -> dict[str, float]:
    """From a law, one axis per site, to the product laws closest in KL (nats) and in total variation (TV).

    `best_divergence` is the least KL, `likely_variation` the TV of the product that attains it, `best_variation` the
    least TV that was found.
    """
    likely = product_kernels.closest_in_divergence(law)
    variation = float(np.abs(law - product_kernels.joint_law(likely.sites)).sum()) / 2
    # A product law is its own best product, and there is nothing to search.
    best = variation if likely.distance < PRODUCT else product_kernels.closest_in_variation(law).distance
    return {"best_divergence": likely.distance, "likely_variation": variation, "best_variation": best}


@cache
def best_products(imitation: Imitation) -> dict[str, float]:
    """`distances` of a step from every state, mean over states."""
    # Equal rows have equal best products: a step of the whole clique is the same from every state, but for rounding.
    rows, counts = np.unique(imitation.transitions().round(14), axis=0, return_counts=True)
    by_row = [distances(row.reshape((2,) * imitation.sites)) for row in rows]
    return {name: float(np.average([each[name] for each in by_row], weights=counts)) for name in by_row[0]}


def kernel_rows(sizes: Sequence[int], coupling: float) -> Iterator[dict[str, Any]]:
    """How far the steps of each chain are from products, the most over states."""
    for sites in sizes:
        model = Ising.clique(sites, sites, coupling, 0.0)
        first = torch.zeros(1, sites, dtype=torch.bool)
        first[0, 0] = True
        fixed = BlockLaw(first, torch.ones(1, 1, dtype=torch.float64), 2)
        kernels = {
            PARALLEL: transition_matrix(IndependentParallel(), model),
            "one fixed site": block_dynamics(model.probabilities(), fixed),
            "one random site": transition_matrix(Gibbs(), model),
        } | {
            f"{GIBBS}, k = {size}": transition_matrix(BlockGibbs(size), model) for size in range(2, sites + 1)
        }
        for name, matrix in kernels.items():
            gap = product_kernels.factorization_gap(matrix.numpy(), sites)
            most = {"divergence": float(gap.divergence.max()), "variation": float(gap.variation.max())}
            yield {"kind": "kernel", "sites": sites, "chain": name, **most}


def network_row(imitation: Imitation, seed: int) -> dict[str, Any]:
    """Train one network and hold its transitions against those it imitates, mean over states.

    KL in nats from the step's law to the network's, and TV; the same of the best product laws; and the TV between the
    model and what steps of the network tend to.
    """
    truth = imitation.transitions()
    network = product_kernels.product_transitions(predictions(imitation, seed))
    limit = stationary_law(torch.from_numpy(network))
    return {
        "chain": imitation.chain,
        "sites": imitation.sites,
        "divergence": float(rel_entr(truth, network).sum(1).mean()),
        "variation": float(np.abs(truth - network).sum(1).mean()) / 2,
        **best_products(imitation),
        "limit_variation": float((limit - imitation.model().probabilities()).abs().sum()) / 2,
    }


def predictions(imitation: Imitation, seed: int) -> Array:
    """What a network trained with `seed` predicts for every site of every state: (states, sites, 2)."""
    shape = TransformerConfig(
        vocab_size=2, layers=2, heads=2, width=32, mlp_width=64, max_length=imitation.sites, causal=False
    )
    network = Transformer(shape, seed)
    before, after = steps_of(imitation, seed)
    asked = torch.ones(imitation.batch_size, imitation.sites, dtype=torch.bool)

    def batch(step: int) -> tuple[Tensor, Tensor, Tensor]:
        rows = slice(step * imitation.batch_size, (step + 1) * imitation.batch_size)
        return before[rows], after[rows], asked

    recipe = TrainingConfig(
        steps=imitation.steps,
        batch_size=imitation.batch_size,
        weight_decay=0.0,
        warmup_steps=imitation.steps // 10,
        seed=seed,
        bf16=False,
    )
    train(network, batch, recipe, progress=False, loss=masked_token_loss)
    states = whole_sequences(2, imitation.sites)
    rows, sites = torch.ones_like(states, dtype=torch.bool).nonzero().unbind(1)
    with torch.no_grad():
        laws = network.masked_logits(states, rows, sites).double().softmax(1)
    answer: Array = laws.view(*states.shape, 2).numpy()
    return answer


def steps_of(imitation: Imitation, seed: int) -> tuple[Tensor, Tensor]:
    """States, uniformly random, and where one step of the chain leads, both (steps * batch_size, sites)."""
    count = imitation.steps * imitation.batch_size
    random = generator(seed, "parallel-gap", "states", imitation.sites)
    before = torch.randint(0, 2, (count, imitation.sites), generator=random)
    stream = seed_of(seed, "parallel-gap", "transitions", imitation.sites, imitation.chain)
    moved = run_chain(imitation.sampler(), imitation.model(), start=before, steps=1, seed=stream)
    return before, moved.tokens
