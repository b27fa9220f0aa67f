"""Products of verifiers and `All`, compared by exact distributions with an equivalent single function."""

import math

import pytest
import torch

from batches import AllChildrenVerifier, batch_of
from mutants import verifiers as mutants
from refusals import expect_error
from samplers.reference_distributions import largest_difference
from trialogue.generation.verifiers.graded import Graded
from trialogue.models.networks.probe import Probe
from trialogue.oracles import Verifier
from trialogue.samplers import MaskedDecoding, Rejection, ValueGuided
from trialogue.samplers.exact import exact_distribution
from trialogue.testing.trees import TREES
from trialogue.verifiers import All, FunctionVerifier, ProbeVerifier, Product, Threshold
from verifiers.test_verifiers import COINS


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


@pytest.mark.parametrize("tree", TREES[:4], ids=str)
@pytest.mark.parametrize("sampler", [Rejection(), MaskedDecoding(), ValueGuided()], ids=repr)
def test_combinations_have_the_distribution_of_an_equivalent_function(tree, sampler):
    for verifiers in verifier_pairs(tree):
        assert (
            distribution_error(Product, tree, sampler, lambda p: tree.allows(p) * tree.value(p), *verifiers)
            < 1e-12
        )
        assert distribution_error(All, tree, sampler, tree.allows, *verifiers) < 1e-12


def test_mutants_have_other_distributions():
    tree, sampler = TREES[0], ValueGuided()
    verifiers = next(verifier_pairs(tree))
    product = lambda prefix: tree.allows(prefix) * tree.value(prefix)  # noqa: E731
    for mutant in (mutants.Sum, mutants.FirstOnly):
        assert distribution_error(mutant, tree, sampler, product, *verifiers) > 1e-3
    assert distribution_error(Product, tree, sampler, tree.allows, *verifiers) > 1e-3
    assert distribution_error(All, tree, sampler, product, *verifiers) > 1e-3


SEQUENCES = [(0,), (1,), (0, 0), (0, 1), (1, 1)]
ROWS = torch.arange(len(SEQUENCES))


def values(verifier) -> list[float]:
    return verifier.values(batch_of(COINS, SEQUENCES, 4), ROWS).tolist()


def test_combined_values():
    last, half, long = lambda p: p[-1], lambda p: 0.5, lambda p: len(p) > 1
    assert values(Product(last, half)) == [0, 0.5, 0, 0.5, 0.5]
    assert values(All(last, half)) == [0, 1, 0, 1, 1]
    assert values(All(Product(last, half), long)) == [0, 0, 0, 1, 1]
    assert values(Product(All(half, half), Product(half, long))) == [0, 0, 0.5, 0.5, 0.5]
    assert values(All(Threshold(FunctionVerifier(half), 0.6), last)) == [0] * 5
    assert all(isinstance(kind(last), Verifier) for kind in (Product, All))


def test_a_part_is_evaluated_only_on_prefixes_with_positive_values_so_far():
    seen = []
    values(Product(lambda p: p[-1], lambda p: seen.append(p) or 1.0))
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
    for one in (Threshold(first, 1), Threshold(first, 1).up_to("x"), Graded(first)):
        assert (one.notes, one.parser) == (first.notes, first.parser)
    assert (Product(len).notes, Product(len).parser) == ((), None)


def test_invalid_values_are_passed_on():
    class Wrong(FunctionVerifier):
        def values(self, decoding, rows):
            return torch.full((len(rows),), self._function(()), dtype=torch.float64)

    for wrong in (math.nan, -1.0):
        results = values(All(Wrong(lambda prefix, wrong=wrong: wrong)))
        assert all(result < 0 or math.isnan(result) for result in results)
