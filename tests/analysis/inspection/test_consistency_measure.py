"""Masked conditionals: those of a joint law agree exactly, in either order; those of none do not."""

from itertools import product

import numpy as np
import pytest
import torch

from trialogue.analysis.inspection.consistency import compared_orders
from trialogue.oracles import Masked
from trialogue.randomness import Streams, numpy_generator

SITES, VOCAB = 4, 3


class Conditionals(Masked):
    """The conditionals of a random joint law, those of single sites bent by `bend` in one direction."""

    vocab_size, sites = VOCAB, SITES

    def __init__(self, bend: float = 0.0) -> None:
        law = numpy_generator(0, "joint").dirichlet(np.ones(VOCAB**SITES))
        self.joint = torch.from_numpy(law).view((VOCAB,) * SITES)
        self.bend = bend

    def log_probs(self, tokens: torch.Tensor, masked: torch.Tensor) -> torch.Tensor:
        states = torch.tensor(list(product(range(VOCAB), repeat=SITES)))
        fits = ((states == tokens[:, None]) | masked[:, None]).all(2)
        values = torch.nn.functional.one_hot(states, VOCAB).double()
        answers = (torch.einsum("rs,snv->rnv", self.joint.flatten() * fits, values) + 1e-12).log()
        alone = masked.sum(1) == 1
        answers[alone, ..., 0] += self.bend * (tokens[alone] == 1).sum(1)[:, None]
        return answers.log_softmax(-1)


def orders(bend: float, rows: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    tokens = torch.from_numpy(numpy_generator(1, "rows").integers(0, VOCAB, (rows, SITES)))
    first, second = torch.full((rows,), 1), torch.full((rows,), 3)
    streams = Streams(0, torch.arange(rows))
    return compared_orders(Conditionals(bend), tokens, first, second, streams.choose)


def test_a_joint_law_is_the_same_in_both_orders() -> None:
    text, drawn, told = orders(0.0)
    assert np.abs(text).max() < 1e-8
    assert np.abs(drawn).max() < 1e-8
    assert told.mean() > 0.02


def test_what_is_no_joint_law_is_told_from_one() -> None:
    text, drawn, _ = orders(0.7)
    assert np.abs(text).mean() > 0.05
    assert drawn.mean() > 0.005


def test_the_mean_over_draws_is_the_divergence_of_the_orders() -> None:
    model = Conditionals(0.7)
    tokens = torch.zeros(1, SITES, dtype=torch.int64)
    both = torch.tensor([[False, True, False, True]])
    start = model.log_probs(tokens, both)[0]
    exact = 0.0
    for one, other in product(range(VOCAB), repeat=2):
        filled = torch.tensor([[0, one, 0, other]])
        given_one = model.site_log_weights(filled, torch.tensor([3]))[0, other]
        given_other = model.site_log_weights(filled, torch.tensor([1]))[0, one]
        ahead, behind = start[1, one] + given_one, start[3, other] + given_other
        exact += float(ahead.exp() * (ahead - behind))
    rows = 3000
    streams = Streams(0, torch.arange(rows))
    sites = torch.full((rows,), 1), torch.full((rows,), 3)
    drawn = compared_orders(model, tokens.expand(rows, -1), *sites, streams.choose).drawn
    assert drawn.mean() == pytest.approx(exact, abs=5 * drawn.std() / rows**0.5)
    assert exact > 0.005
