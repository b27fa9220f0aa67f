"""Test that invalid arguments of distributions raise one-line errors with field, value and hint."""

import math
from collections.abc import Callable

import numpy as np
import torch

from refusals import expect_error
from trialogue.data import Dyck, Ising, PottsChain, Table
from trialogue.samplers import generate

PAIR = torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64)
HUGE = PottsChain(1e308 * PAIR)
CHAIN = PottsChain(PAIR, [[0, 1]])
SPINS = Ising(PAIR, torch.zeros(2))
COMPLEX = torch.tensor([[0, 1j], [1j, 0]])


def raising(prefix: tuple[int, ...]) -> list[float]:
    raise KeyError("no such\nprefix")


CALLS: list[tuple[Callable[[], object], str]] = [
    (lambda: Dyck(8, type_probs=0.5), "type_probs=0.5: must be positive and sum to 1"),
    (lambda: Dyck(8, type_probs=np.array([0.5 + 1j, 0.5])), "type_probs=.*complex128.*: give real numbers"),
    (lambda: Dyck(8, open_prob="1"), "open_prob='1': use a number"),
    (lambda: Dyck(8, max_depth=1.5), "max_depth=1.5: use an integer"),
    (lambda: Dyck(8).sample_prompts(2, lengths=(1.5, 3)), r"lengths=\(1.5, 3\): must be a range"),
    (lambda: Dyck(8).errors(torch.zeros(1, 8).long(), eos=math.nan), "eos=nan: must not be a bracket"),
    (
        lambda: Table([1e308, 1e308]),
        "distribution=inf: give non-negative probabilities .* positive and finite",
    ),
    (lambda: Table(np.array([0.5, 0.5j])), "distribution=.*complex128.*: give real numbers"),
    (lambda: generate(Table(raising, 2, max_length=2)), r"distribution=\(\): .* KeyError: .*no such"),
    (
        lambda: generate(Table(lambda p: [1e308, 1e308], 2, max_length=2)),
        r"distribution=\[1e\+308, 1e\+308\]",
    ),
    (lambda: PottsChain(COMPLEX), "energies=torch.complex64: give real numbers, not complex ones"),
    (lambda: HUGE.energy(torch.tensor([[0, 1, 0]])), r"energies=1e\+308: .* overflow"),
    (
        lambda: HUGE.log_partition(4, 1.0),
        r"energies=1e\+308: use smaller energies, .* over 3 windows overflows",
    ),
    (lambda: HUGE.sample(1, 4, 1.0), r"energies=1e\+308: use smaller energies, .* over 3 windows overflows"),
    (
        lambda: PottsChain(1e300 * PAIR).at(200, 1e-6),
        r"energies=1e\+300: use smaller energies, .* over 199 windows",
    ),
    (lambda: CHAIN.at(4, 10**400), "temperature=1000.*000: use a number"),
    (lambda: Ising(COMPLEX, torch.zeros(2)), "coupling=torch.complex64: give real numbers"),
    (lambda: Ising.clique(4, 2, 1.0, "0"), "field='0': give one number"),
    (lambda: SPINS.to("nope"), "device='nope': it cannot be used here"),
]


def test_invalid_input_is_reported_in_one_line():
    for call, message in CALLS:
        expect_error(f"^{message}", call)


def test_numpy_and_tensor_numbers_are_accepted():
    dyck = Dyck(np.int64(8), np.array([0.25, 0.75], np.float32), np.float64(0.5), torch.tensor(2))
    assert (dyck.length, dyck.max_depth, dyck.type_probs) == (8, 2, (0.25, 0.75))
    assert dyck.sample(np.int32(3)).shape == (3, 8)
    assert CHAIN.at(np.int64(4), np.float32(0.5)).sites == 4
    assert Table(np.array([0.5, 0.5])[::-1], max_length=np.int64(1)).max_length == 1
