"""Bounds and closed forms, and what measures a model: bad numbers are one line with field, value and hint."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

from trialogue.data import Ising, PottsChain, Table
from trialogue.errors import InputError
from trialogue.inspection.coherence import Runs, coherence
from trialogue_lab.data.puzzles.arithmetic import SemiprimeTuples
from trialogue_lab.theory.cliques.bounds import (
    hitting_bound,
    least_block_size,
    least_parameters,
    one_step_corollary,
    stuck_bound,
)
from trialogue_lab.theory.cliques.chains import (
    block_chain,
    escape_probability,
    hitting_probability,
    log_hitting_times,
    parallel_chain,
)
from trialogue_lab.theory.factoring.overlap import cheating_generator, overlap_bound, semiprime_masses
from trialogue_lab.theory.factoring.prime_density import density_integral, mean_density, uniform_variation
from trialogue_lab.theory.factoring.randomized_algorithms import derandomized, law_over_coins, randomness_test
from trialogue_lab.theory.factoring.reduction import factor_by_generating
from trialogue_lab.theory.masking.block_laws import block_dynamics, block_law
from trialogue_lab.theory.masking.mixing import chi_square, chi_square_decay, dirichlet_form, mixing_time
from trialogue_lab.theory.masking.product_kernels import closest_in_divergence, factorization_gap, joint_law
from trialogue_lab.theory.masking.pseudolikelihood import (
    asymptotic_covariance,
    information_equality,
    pseudolikelihood_information,
    pseudolikelihood_loss,
)
from trialogue_lab.theory.masking.sample_bound import empirical_law_bound, sample_bound
from trialogue_lab.theory.potts.domain_walls import (
    crossing_length,
    one_wall,
    stored_pattern_count,
    stored_sequences,
)
from trialogue_lab.theory.potts.greedy_patterns import greedy_patterns
from trialogue_lab.theory.potts.map import autoregressive_of, hamiltonian_of
from trialogue_lab.theory.potts.nearest_neighbour import NearestNeighbourPotts
from trialogue_lab.theory.potts.pattern_survival import PatternSurvival

SPINS = Ising(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.zeros(2))
PAIR = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
LAW = torch.full((4,), 0.25)
BLOCKS = block_law(2, 2, block_size=1)
MATRIX = block_dynamics(LAW, BLOCKS)
TUPLES = SemiprimeTuples(1)
RUNS = Runs(np.array([1, 2]), np.array([True, False]))
BOUND = {"sites": 2, "vocab_size": 2, "samples": 9, "masks": 1}
BOUND |= {"tensorization": 1.0, "loss": 1.0, "beta": 0.1, "cells": 1.0, "eps": 0.1, "delta": 0.1}


def looking_back(distance: int) -> Table:
    """Two tokens, the next one by the one `distance` tokens back alone."""

    def law(prefix: tuple[int, ...]) -> list[float]:
        return [0.3, 0.7] if len(prefix) >= distance and prefix[-distance] else [0.6, 0.4]

    return Table(law, 2)


CALLS: list[tuple[Callable[[], object], str]] = [
    (lambda: crossing_length(2, "1", 1.0, 2), "max_energy='1': use a finite number of at least 0"),
    (lambda: crossing_length(2, True, 1.0, 2), "max_energy=True: use a finite number of at least 0"),
    (lambda: crossing_length(2, 10**400, 1.0, 2), "max_energy=100.*: use a finite number"),
    (lambda: stored_sequences(None, 3), "chain='NoneType': give a PottsChain"),
    (lambda: stored_pattern_count(PAIR * 1j, 3), "energies=torch.complex64: give real numbers"),
    (lambda: one_wall(PAIR, None, 1.0), "patterns=None: give tokens"),
    (lambda: greedy_patterns(None), r"log_probs=None: use the shape \(V\^w, V\)"),
    (lambda: hamiltonian_of(looking_back(3), 1), "context=1: what stands 2 tokens further back changes"),
    (lambda: hamiltonian_of(looking_back(7), 1), "context=1: what stands 6 tokens further back changes"),
    (lambda: hamiltonian_of(looking_back(7), 0), "context=0: what stands 7 tokens further back changes"),
    (lambda: hamiltonian_of(None, 1), "oracle='NoneType': give an Autoregressive oracle"),
    (lambda: autoregressive_of(None, 4, 1.0), "chain='NoneType': give a PottsChain"),
    (lambda: autoregressive_of(PottsChain(1e308 * PAIR.double()), 4, 1.0), r"energies=1e\+308: .*overflow"),
    (lambda: NearestNeighbourPotts(2, "1", 1.0), "coupling='1': use a number of at least 0"),
    (lambda: NearestNeighbourPotts(2, True, 1.0), "coupling=True: use a number of at least 0"),
    (lambda: PatternSurvival([[0, 1]], 1, 0).curve(None, 3), "log_probs=None: give log-probabilities"),
    (lambda: PatternSurvival([[0, 1]], 1, 0).decay_rate(PAIR.log(), tolerance="1"), "tolerance='1'"),
    (lambda: hitting_bound(6, 3, 4, "1", 1.0), "excess='1': Assumption 4.1.5 needs a finite number above 0"),
    (lambda: hitting_bound(6, 3, 4, 1.0, True), "clique_field=True: Assumption 4.1.5 needs"),
    (lambda: stuck_bound(6, 1.0, "0.5"), "delta='0.5': use a probability between 0 and 1"),
    (lambda: least_parameters(6, delta=None, steps=1), "delta=None: use a probability between 0 and 1"),
    (lambda: least_block_size(6, 3, np.complex64(0.5 + 1j)), "delta=.*: use a probability between 0 and 1"),
    (
        lambda: one_step_corollary(60, 60, "60", 30.0, 30.0, delta=0.5, steps=2),
        "block_size='60': use a whole",
    ),
    (lambda: block_chain(4, 3, "1", 0.1, 2), "coupling='1': use a finite number"),
    (lambda: parallel_chain(3, 1.0, 1j), "field=1j: use a finite number"),
    (lambda: log_hitting_times(None), "log_matrix=None: give the logarithms"),
    (lambda: hitting_probability(PAIR * 1j, 2), "log_matrix=torch.complex64: give real numbers"),
    (lambda: escape_probability(parallel_chain(3, 1.0, 0.1), -1, 2), "up=-1: use at least 0"),
    (
        lambda: escape_probability(parallel_chain(3, 1.0, 0.1), 1.5, 2),
        "up=1.5: use a whole number from 0 to 3",
    ),
    (lambda: block_law(2, 2.0, block_size=1), "vocab_size=2.0: use a whole number"),
    (lambda: block_law(2, -1, block_size=1), "vocab_size=-1: use at least 1"),
    (lambda: mixing_time([[1, 2], [3]]), r"transitions=\[\[1, 2\], \[3\]\]: use a square matrix"),
    (lambda: dirichlet_form(MATRIX, None, LAW), r"f=None: use the shape \(4,\)"),
    (lambda: dirichlet_form(MATRIX, LAW * 1j, LAW), "f=torch.complex64: give real numbers"),
    (lambda: chi_square(LAW, None), "second=None: give a law"),
    (lambda: chi_square_decay(MATRIX, LAW, ["1"]), r"times=\['1'\]: use finite times"),
    (lambda: chi_square_decay(MATRIX, LAW, [1.0], discrete="no"), "discrete='no': use True or False"),
    (lambda: closest_in_divergence(np.array([0.5, 0.5 + 1j])), "law=.*complex128.*: give real numbers"),
    (lambda: joint_law("ab"), r"sites='ab': give finite numbers of at least 0, shape \(sites, vocab\)"),
    (lambda: factorization_gap([["a"]], 1), r"transitions=\[\['a'\]\]: use a square matrix"),
    (
        lambda: pseudolikelihood_loss(LAW, None, BLOCKS),
        r"log_weights=None: give numbers below infinity, shape \(states,\)",
    ),
    (
        lambda: pseudolikelihood_information(LAW, "ab", BLOCKS),
        "features='ab': give finite numbers, shape \\(states, parameters\\)",
    ),
    (lambda: asymptotic_covariance(SPINS, 1, masks_per_sample="2"), "masks_per_sample='2': use a number"),
    (lambda: information_equality(SPINS, BLOCKS, shift=None), "shift=None: give one number"),
    (lambda: information_equality(SPINS, BLOCKS, shift=math.nan), r"shift=\(\): give one number"),
    (lambda: sample_bound(**BOUND | {"loss": "1"}), "loss='1': use a finite number of at least 0"),
    (lambda: sample_bound(**BOUND | {"cells": True}), "cells=True: use a finite number"),
    (lambda: sample_bound(**BOUND | {"tensorization": "1"}), "tensorization='1': C_AT is at least 1"),
    (lambda: empirical_law_bound(sites=2, vocab_size=2, samples=9, delta="0.1"), "delta='0.1': use a number"),
    (lambda: overlap_bound("ab"), "success='ab': give one chance for each semiprime"),
    (lambda: overlap_bound(np.array([0.5j])), "success=.*complex128.*: give real numbers"),
    (lambda: cheating_generator(TUPLES, None), "success=None: give a chance"),
    (
        lambda: cheating_generator(TUPLES, dict.fromkeys(semiprime_masses(TUPLES), "1")),
        "success='1': use a prob",
    ),
    (lambda: mean_density(1.5, 9), "first=1.5: use a whole number"),
    (lambda: density_integral("ab"), "numbers='ab': give numbers"),
    (lambda: uniform_variation([2]), r"digits=\[2\]: use a whole number"),
    (lambda: derandomized(None, 2, 2, 2), "function=None: give a function"),
    (lambda: law_over_coins(lambda prefix, coins: coins, 2, 2, fresh="no"), "fresh='no': use True or False"),
    (lambda: randomness_test(None), "numbers=None: give a list of numbers"),
    (lambda: factor_by_generating(TUPLES, None), "products=None: give a list"),
    (lambda: RUNS.hazard(1.5), "after=1.5: use a whole number"),
    (lambda: RUNS.survival(np.array([1j])), "lengths=.*complex128.*: give real numbers"),
    (lambda: coherence(torch.zeros(1, 4).long(), None, 2), "patterns=None: give a list of patterns"),
    (lambda: coherence(torch.full((1, 4), -1), [[0, 1]], 2), "tokens=-1: use token ids from 0 to 1"),
    (
        lambda: coherence(torch.zeros(1, 4).long(), [[0, 1]], 2, start=None),
        "start=None: give one whole number",
    ),
]


@pytest.mark.parametrize(("call", "message"), CALLS, ids=[message for _, message in CALLS])
def test_bad_input_is_one_line(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}") as error:
        call()
    assert "\n" not in str(error.value)


def test_an_oracle_is_asked_as_far_back_as_its_window_needs() -> None:
    for distance in (1, 2, 3):
        assert hamiltonian_of(looking_back(distance), distance).chain.window == distance + 1
    # Of larger vocabularies not all contexts are listed: some are drawn.
    wide = Table(lambda prefix: np.roll(np.arange(1, 31), prefix[-3] if len(prefix) > 2 else 0), 30)
    with pytest.raises(InputError, match=r"^context=1: what stands 2 tokens further back changes"):
        hamiltonian_of(wide, 1)
