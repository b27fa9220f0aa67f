"""Verifiers: functions, thresholds, random values, masks of children, products and `All`."""

import math

import pytest
import torch

from batches import AllChildrenVerifier, batch_of
from refusals import expect_error
from samplers.reference_distributions import largest_difference
from trialogue.data.table import Table
from trialogue.generation.verifiers.graded import CachedGradedVerifier
from trialogue.models.networks.probe import Probe
from trialogue.oracles import Verifier
from trialogue.samplers import MaskedDecoding, Rejection, ValueGuided, generate
from trialogue.samplers.exact import exact_distribution
from trialogue.testing.trees import TREES, RandomTree
from trialogue.verifiers import All, FunctionVerifier, ProbeVerifier, Product, Threshold
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


def test_a_threshold_accepts_values_at_or_above_it():
    given = {(0,): 0.0, (1,): 0.25, (0, 0): 0.5, (0, 1): 0.75, (1, 1): 1.0}
    for threshold in (0.0, 0.25, 0.5, 1.0):
        verdicts = values(Threshold(FunctionVerifier(given.__getitem__), threshold), list(given))
        assert verdicts == [float(value >= threshold) for value in given.values()]
    inner = FunctionVerifier(lambda prefix: 0.5, "completion")
    assert Threshold(inner, 0.5).scope == "completion"
    batch, rows = batch_of(COINS, [(0,)], 4), torch.arange(1)
    assert Threshold(inner, 0.5).children(batch, rows) is None
    masking = AllChildrenVerifier(lambda prefix: 0.25 + 0.5 * prefix[-1])
    assert Threshold(masking, 0.5).children(batch, rows).tolist() == [[0.0, 1.0]]


def test_a_threshold_passes_on_nan():
    expect_error("verifier=nan", generate, COINS, sampler=Rejection(), verifier=Threshold(NaNVerifier(), 0.5))


PREFIXES = [(), (0,), (1,), (0, 0), (0, 1), (1, 0), (0, 0, 0), (0, 0, 1)]


def test_random_values_are_a_function_of_the_prefix_and_the_seed():
    first, again = values(RandomVerifier(1), PREFIXES), values(RandomVerifier(1), PREFIXES)
    assert first == again == values(RandomVerifier(1), PREFIXES[::-1])[::-1]
    assert len({*first, *values(RandomVerifier(2), PREFIXES)}) == 2 * len(PREFIXES)
    assert all(0 <= value < 1 for value in first)
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


class BoolMasking(AllChildrenVerifier):
    """A verifier whose mask of children is boolean, as for an automaton."""

    def children(self, decoding, rows):
        return super().children(decoding, rows) > 0


def distribution_error(kind, tree, sampler, function, *verifiers) -> float:
    """Return the largest difference between the distributions under `kind(*verifiers)` and under a single function."""
    combined = exact_distribution(sampler, tree.table(), kind(*verifiers))
    plain = exact_distribution(sampler, tree.table(), FunctionVerifier(function))
    return max(
        largest_difference(combined.probabilities, plain.probabilities),
        largest_difference(combined.weights, plain.weights),
        abs(combined.failed - plain.failed),
    )


def verifier_pairs(tree):
    """Yield the same two verifiers, with and without masks of children."""
    for first in (FunctionVerifier, AllChildrenVerifier, BoolMasking):
        for second in (FunctionVerifier, AllChildrenVerifier):
            yield first(tree.allows), second(tree.value)


@pytest.mark.parametrize("tree", [TREES[0], TREES[3]], ids=str)
@pytest.mark.parametrize("sampler", [Rejection(), MaskedDecoding(), ValueGuided()], ids=repr)
def test_combinations_have_the_distribution_of_an_equivalent_function(tree, sampler):
    for verifiers in verifier_pairs(tree):
        assert (
            distribution_error(Product, tree, sampler, lambda p: tree.allows(p) * tree.value(p), *verifiers)
            < 1e-12
        )
        assert distribution_error(All, tree, sampler, tree.allows, *verifiers) < 1e-12


def test_a_product_and_all_have_different_distributions():
    tree, sampler = TREES[0], ValueGuided()
    verifiers = next(verifier_pairs(tree))
    assert distribution_error(Product, tree, sampler, tree.allows, *verifiers) > 1e-3


SEQUENCES = [(0,), (1,), (0, 0), (0, 1), (1, 1)]
ROWS = torch.arange(len(SEQUENCES))


def product_values(verifier) -> list[float]:
    return verifier.values(batch_of(COINS, SEQUENCES, 4), ROWS).tolist()


def test_combined_values():
    last, half, long = lambda p: p[-1], lambda p: 0.5, lambda p: len(p) > 1
    assert product_values(Product(last, half)) == [0, 0.5, 0, 0.5, 0.5]
    assert product_values(All(last, half)) == [0, 1, 0, 1, 1]
    assert product_values(All(Product(last, half), long)) == [0, 0, 0, 1, 1]
    assert product_values(Product(All(half, half), Product(half, long))) == [0, 0, 0.5, 0.5, 0.5]
    assert product_values(All(Threshold(FunctionVerifier(half), 0.6), last)) == [0] * 5
    assert all(isinstance(kind(last), Verifier) for kind in (Product, All))


def test_a_part_is_evaluated_only_on_prefixes_with_positive_values_so_far():
    seen = []
    product_values(Product(lambda p: p[-1], lambda p: seen.append(p) or 1.0))
    assert seen == [(1,), (0, 1), (1, 1)]


def test_children_have_a_mask_if_all_parts_have_a_mask():
    batch, rows = batch_of(COINS, [(0,), (1,)], 4), torch.arange(2)
    weights, mask = AllChildrenVerifier(lambda p: 0.25 + 0.5 * p[-1]), BoolMasking(lambda p: p[-1] == p[0])
    assert Product(weights, mask).children(batch, rows).tolist() == [[0.25, 0], [0, 0.75]]
    assert Product(mask, mask).children(batch, rows).dtype == torch.bool
    assert All(weights, mask).children(batch, rows).tolist() == [[1, 0], [0, 1]]
    assert Product(weights, FunctionVerifier(len)).children(batch, rows) is None


def test_scope_layers_and_parts_are_combined():
    completion = FunctionVerifier(len, "completion")
    probes = [ProbeVerifier(Probe(4), layer) for layer in (2, 0, 2)]
    for kind in (Product, All):
        assert kind(completion, completion).scope == "completion"
        assert kind(completion, *probes).scope == "sequence"
        assert tuple(kind(completion, *probes).layers) == (2, 0)
    assert len(All(Product(completion, completion), completion).parts) == 3
    expect_error("verifiers=", Product)
    expect_error("verifier=3", All, len, 3)


def test_notes_and_the_first_parser_are_passed_on():
    class Parsing(FunctionVerifier):
        def __init__(self, name):
            super().__init__(len)
            self.notes, self.parser = (f"{name} is slow",), lambda text: (name, text)

    first, second = Parsing("a"), Parsing("b")
    for kind in (Product, All):
        combined = kind(len, Product(first), second).up_to("x")
        assert combined.notes == ("a is slow", "b is slow")
        assert combined.parser("t") == ("a", "t")
    for one in (Threshold(first, 1), Threshold(first, 1).up_to("x"), CachedGradedVerifier(first)):
        assert (one.notes, one.parser) == (first.notes, first.parser)
    assert (Product(len).notes, Product(len).parser) == ((), None)


def test_invalid_values_are_passed_on():
    class Wrong(FunctionVerifier):
        def values(self, decoding, rows):
            return torch.full((len(rows),), self._function(()), dtype=torch.float64)

    for wrong in (math.nan, -1.0):
        results = product_values(All(Wrong(lambda prefix, wrong=wrong: wrong)))
        assert all(result < 0 or math.isnan(result) for result in results)
