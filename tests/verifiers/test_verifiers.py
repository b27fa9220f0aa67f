"""Verifiers: functions, thresholds, random values, and masks of children."""

import math

import pytest
import torch

from batches import AllChildrenVerifier, batch_of
from mutants.verifiers import ForgetfulRandomVerifier, LengthKeyedRandomVerifier, StrictThreshold
from refusals import expect_error
from samplers.reference_distributions import largest_difference
from trialogue.data.table import Table
from trialogue.samplers import MaskedDecoding, Rejection, ValueGuided, generate
from trialogue.samplers.exact import exact_distribution
from trialogue.testing.trees import TREES, RandomTree
from trialogue.verifiers.functions.function import FunctionVerifier, Threshold
from trialogue.verifiers.random import RandomVerifier

COINS = Table(lambda prefix: [0.5, 0.5], 2, max_length=4)


def values(verifier, sequences) -> list[float]:
    return verifier.values(batch_of(COINS, sequences, 4), torch.arange(len(sequences))).tolist()


class NaNVerifier(RandomVerifier):
    """Verifier whose values are NaN."""

    def values(self, decoding, rows):
        return super().values(decoding, rows) * math.nan


@pytest.mark.parametrize(("scope", "expected"), [("sequence", [(0, 1, 1), (1,)]), ("completion", [(1,), ()])])
def test_a_function_receives_the_tokens_of_its_scope(scope, expected):
    seen = []
    verifier = FunctionVerifier(lambda prefix: seen.append(prefix) or 1.0, scope)
    batch = batch_of(COINS, [(0, 1, 1), (1, 0), (1,)], 4, [2, 1, 1])
    assert verifier.values(batch, torch.tensor([0, 2])).tolist() == [1.0, 1.0]
    assert seen == expected
    assert verifier.children(batch, torch.tensor([0])) is None


def threshold_error(threshold_type) -> int:
    """Return the number of verdicts that differ from value >= threshold, including values at the threshold."""
    given = {(0,): 0.0, (1,): 0.25, (0, 0): 0.5, (0, 1): 0.75, (1, 1): 1.0}
    verifier = FunctionVerifier(given.__getitem__)
    return sum(
        verdict != float(value >= threshold)
        for threshold in (0.0, 0.25, 0.5, 1.0)
        for verdict, value in zip(
            values(threshold_type(verifier, threshold), list(given)), given.values(), strict=True
        )
    )


def test_a_threshold_accepts_values_at_or_above_it():
    assert threshold_error(Threshold) == 0
    assert threshold_error(StrictThreshold) > 0
    inner = FunctionVerifier(lambda prefix: 0.5, "completion")
    assert Threshold(inner, 0.5).scope == "completion"
    batch, rows = batch_of(COINS, [(0,)], 4), torch.arange(1)
    assert Threshold(inner, 0.5).children(batch, rows) is None
    masking = AllChildrenVerifier(lambda prefix: 0.25 + 0.5 * prefix[-1])
    assert Threshold(masking, 0.5).children(batch, rows).tolist() == [[0.0, 1.0]]


def test_a_threshold_passes_on_nan():
    expect_error("verifier=nan", generate, COINS, sampler=Rejection(), verifier=Threshold(NaNVerifier(), 0.5))


PREFIXES = [(), (0,), (1,), (0, 0), (0, 1), (1, 0), (0, 0, 0), (0, 0, 1)]


def is_a_random_function(verifier_type) -> bool:
    """Return whether values depend on the prefix and the seed only, and differ between prefixes and seeds."""
    first, again = values(verifier_type(1), PREFIXES), values(verifier_type(1), PREFIXES)
    backwards = values(verifier_type(1), PREFIXES[::-1])[::-1]
    other = values(verifier_type(2), PREFIXES)
    return first == again == backwards and len({*first, *other}) == 2 * len(PREFIXES)


def test_random_values_are_a_function_of_the_prefix():
    assert is_a_random_function(RandomVerifier)
    assert not is_a_random_function(ForgetfulRandomVerifier)
    assert not is_a_random_function(LengthKeyedRandomVerifier)
    assert all(0 <= value < 1 for value in values(RandomVerifier(), PREFIXES))
    runs = [
        generate(COINS, sampler=ValueGuided(), verifier=RandomVerifier(3), num_samples=30, batch_size=size)
        for size in (1, 30)
    ]
    assert runs[0].sequences() == runs[1].sequences()


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_values_of_peeked_children_equal_the_mask_of_children(tree):
    for sampler in (MaskedDecoding(), ValueGuided()):
        peeked = exact_distribution(sampler, tree.table(), FunctionVerifier(tree.judges))
        given = exact_distribution(sampler, tree.table(), AllChildrenVerifier(tree.judges))
        assert largest_difference(peeked.probabilities, given.probabilities) < 1e-12
        assert largest_difference(peeked.weights, given.weights) < 1e-12
        assert (peeked.failed, peeked.expected_calls) == (
            pytest.approx(given.failed, abs=1e-12),
            pytest.approx(given.expected_calls),
        )


def test_peeked_children_are_marked_as_complete():
    seen = {}

    class RecordingVerifier(FunctionVerifier):
        def values(self, decoding, rows):
            for row in rows.tolist():
                length = int(decoding.lengths[row])
                seen[tuple(decoding.tokens[row, :length].tolist())] = bool(decoding.complete[row])
            return super().values(decoding, rows)

    tree = RandomTree(92, vocab=3, horizon=3, eos=2)
    exact_distribution(MaskedDecoding(), tree.table(), RecordingVerifier(lambda prefix: 1.0))
    assert set(seen) == set(tree.nodes()) - {()}
    assert seen == {prefix: tree.complete(prefix) for prefix in seen}
