"""Comparison of the nucleus without sorting with its definition in exact arithmetic."""

import math
from fractions import Fraction
from functools import cache

import pytest
import torch

from trialogue.randomness import numpy_generator
from trialogue.samplers.nucleus import nucleus

VOCAB = 3000
SETTINGS = (1e-9, 0.1, 0.5, 0.9, 0.95, 0.999)


def distributions() -> torch.Tensor:
    """Return flat and peaked distributions with many ties and with impossible tokens."""
    draw = numpy_generator(0, "large distributions")
    rows = [draw.normal(size=VOCAB) * scale for scale in (0.01, 1.0, 3.0, 8.0)]
    rows += [draw.integers(0, 4, VOCAB) * scale for scale in (0.0, 1.0, 5.0)]
    rows = [torch.tensor(row, dtype=torch.float32) for row in rows]
    for row in rows[:3]:
        rows.append(row.clone().index_fill_(0, torch.arange(0, VOCAB, 3), -math.inf))
    return torch.stack(rows).log_softmax(-1)


@cache
def by_definition(row: int, top_p: float) -> list[int]:
    """Return the tokens of a row's nucleus, from float weights that are summed exactly."""
    distribution = distributions()[row]
    weights = [Fraction(weight) for weight in (distribution - distribution.max()).exp().tolist()]
    reach, total, kept = Fraction(top_p * float(sum(weights))), Fraction(0), []
    for token in sorted(range(VOCAB), key=lambda token: (-weights[token], token)):
        if total >= reach:
            break
        kept.append(token)
        total += weights[token]
    return sorted(kept)


def count_differences(cut, top_p: float) -> int:
    """Return the number of rows whose nucleus differs from the definition."""
    return sum(
        row.isfinite().nonzero()[:, 0].tolist() != by_definition(place, top_p)
        for place, row in enumerate(cut(distributions(), top_p))
    )


@pytest.mark.parametrize("top_p", SETTINGS)
def test_the_nucleus_agrees_with_the_definition(top_p):
    assert count_differences(nucleus, top_p) == 0


def _without_the_boundary(log_probs, top_p):
    cut = nucleus(log_probs, top_p)
    cut.scatter_(1, cut.masked_fill(~cut.isfinite(), math.inf).argmin(-1, keepdim=True), -math.inf)
    return cut


def _all_ties(log_probs, top_p):
    cut = nucleus(log_probs, top_p)
    smallest = log_probs.masked_fill(~cut.isfinite(), math.inf).amin(-1, keepdim=True)
    return log_probs.masked_fill(log_probs < smallest, -math.inf)


def _highest_tie(log_probs, top_p):
    return nucleus(log_probs.flip(-1), top_p).flip(-1)


@pytest.mark.parametrize("mutant", [_without_the_boundary, _all_ties, _highest_tie])
def test_faulty_nuclei_are_detected(mutant):
    assert sum(count_differences(mutant, top_p) for top_p in SETTINGS) > 0


def test_threads_and_memory_layout_change_nothing():
    threads, expected = torch.get_num_threads(), nucleus(distributions(), 0.9)
    many = distributions().repeat(20, 1)
    try:
        torch.set_num_threads(4)
        assert torch.equal(nucleus(many, 0.9), expected.repeat(20, 1))
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(nucleus(distributions().T.contiguous().T, 0.9), expected)
