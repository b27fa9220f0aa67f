"""The judge: values of single continuations, and products that skip rejected continuations."""

import math

import pytest
import torch

from batches import AllChildrenVerifier, batch_of, prefixes_of
from refusals import expect_error
from samplers.stateful_tree import ReadingVerifier, StoredContext, StoredTree
from trialogue.samplers import MaskedDecoding, generate
from trialogue.samplers.prefix.contract.cached_verifier import CachedVerifier
from trialogue.testing.trees import RandomTree
from trialogue.verifiers.combination import Product
from trialogue.verifiers.functions.function import FunctionVerifier

TREE = RandomTree(97, vocab=3, horizon=4, eos=2)
OTHER = RandomTree(98, vocab=3, horizon=4, eos=2)


class Recording(FunctionVerifier):
    """A verifier that records the prefixes it is called with."""

    def __init__(self, function):
        self.calls = []
        super().__init__(lambda prefix: (self.calls.append(prefix), function(prefix))[1])


class Masking(AllChildrenVerifier):
    """A verifier of all children at once that records its calls."""

    def __init__(self, function, dtype=torch.float64):
        super().__init__(function)
        self.calls, self.dtype, self.visits = [], dtype, 0

    def values(self, decoding, rows):
        self.calls += prefixes_of(decoding, rows)
        return super().values(decoding, rows)

    def children(self, decoding, rows):
        self.visits += len(rows)
        return super().children(decoding, rows).to(self.dtype)


PREFIXES = [(0,), (1, 0), (0,), ()]


def test_each_candidate_is_judged_once():
    verifier = Recording(TREE.value)
    batch = batch_of(TREE.table(), PREFIXES, 4)
    judge = CachedVerifier(verifier, batch)
    tokens = torch.tensor([1, 2, 1, 0])
    rows = torch.arange(4)
    expected = [TREE.value((*prefix, token)) for prefix, token in zip(PREFIXES, tokens.tolist(), strict=True)]
    assert judge.candidates(rows, tokens).tolist() == expected
    assert verifier.calls == [(0, 1), (1, 0, 2), (0,)]
    assert judge.candidates(rows[1:2], tokens[1:2]).tolist() == [expected[1]]
    assert judge.values(rows[:1]).tolist() == [TREE.value((0,))]  # the third candidate is this prefix
    assert len(verifier.calls) == 3
    assert batch.meter.verifier_calls.tolist() == [1, 1, 0, 1]
    assert batch.lengths.tolist() == [1, 2, 1, 0]


def narrowing_error(judge_type, parts):
    """Return the error of the values of children plus the number of unnecessary verifier calls."""
    batch = batch_of(TREE.table(), [(0,), (1, 0)], 4)
    rows, support = torch.arange(2), torch.ones(2, 3, dtype=torch.bool)
    support[0, 1] = False
    values = judge_type(Product(*parts), batch).children(rows, support)
    expected, needed = torch.zeros(2, 3, dtype=torch.float64), 0
    for row, prefix in enumerate([(0,), (1, 0)]):
        for token in range(3):
            child = (*prefix, token)
            if support[row, token]:
                factors = [float(part.function(child)) for part in parts if isinstance(part, Masking)]
                needed += all(factors)
                expected[row, token] = math.prod(factors) * OTHER.value(child)
    (calls,) = [part.calls for part in parts if not isinstance(part, Masking)]
    return float((values - expected).abs().max()) + abs(len(calls) - needed)


@pytest.mark.parametrize("dtype", [torch.bool, torch.float64])
@pytest.mark.parametrize("masks_first", [True, False])
def test_masks_reduce_the_calls_of_other_verifiers(dtype, masks_first):
    masks = [Masking(TREE.judges, dtype), Masking(TREE.value)]
    parts = [*masks, Recording(OTHER.value)] if masks_first else [Recording(OTHER.value), *masks]
    assert narrowing_error(CachedVerifier, parts) < 1e-12
    assert [mask.visits for mask in masks] == [2, 2]
    assert [mask.calls for mask in masks] == [[], []]


def test_only_the_children_that_are_kept_have_values():
    verifier = Recording(lambda prefix: True)
    judge = CachedVerifier(verifier, batch_of(TREE.table(), PREFIXES[:2], 4))
    log_probs = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3]]).log()

    def most_likely(weights):
        return weights.masked_fill(weights < weights.amax(1, keepdim=True), -math.inf)

    values = judge.leading_children(torch.arange(2), log_probs, verdicts=True, cut=most_likely)
    assert values.tolist() == [[1, 0, 0], [0, 1, 0]]
    assert verifier.calls == [(0, 0), (1, 0, 1)]


def test_children_are_evaluated_in_small_batches_of_their_own_length():
    forks, values, tree = [], [], RandomTree(99, vocab=7, horizon=4)

    class Watched(StoredContext):
        def fork(self, rows, stop):
            forks.append((len(rows), stop))
            return super().fork(rows, stop)

    for at_once in (2, 1024):
        oracle = StoredTree(tree, Watched)
        oracle.batch_size = at_once
        judge = CachedVerifier(ReadingVerifier(tree.value), batch_of(oracle, [(0,), (1, 0)], 4))
        values.append(judge.children(torch.arange(2), torch.ones(2, 7, dtype=torch.bool)))
    assert torch.equal(*values)
    assert values[0][1].tolist() == [tree.value((1, 0, token)) for token in range(7)]
    assert forks == [(2, 2)] * 3 + [(2, 3)] * 4 + [(14, 3)]


def test_a_product_counts_one_call_per_row_and_one_per_judged_child():
    other = Recording(OTHER.value)
    run = generate(
        TREE.table(), sampler=MaskedDecoding(), verifier=Product(Masking(TREE.allows), other), num_samples=30
    )
    inner = int((run.lengths - run.prompt_lengths).sum())
    assert len(other.calls) == len(set(other.calls))
    assert int(run.verifier_calls.sum()) == inner + len(other.calls)


class AboveMaximum(Masking):
    """A verifier that returns 5 although its stated maximum is 1."""

    def __init__(self):
        super().__init__(lambda prefix: 5.0)
        self.most = 1.0

    def values(self, decoding, rows):
        return torch.full((len(rows),), 5.0)


def test_a_value_above_the_stated_maximum_is_rejected():
    judge = CachedVerifier(AboveMaximum(), batch_of(TREE.table(), PREFIXES, 4))
    rows = torch.arange(4)
    for call in (
        lambda: judge.values(rows),
        lambda: judge.children(rows, torch.ones(4, 3, dtype=torch.bool)),
    ):
        expect_error(r"verifier=5\.0: the verifier declares most=1", call)
