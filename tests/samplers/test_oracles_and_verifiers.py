"""Calls of oracles and verifiers on given sequences, and objects that only provide their methods."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from models.tiny_pretrained import tiny_oracle
from refusals import expect_error
from samplers.stateful_tree import ReadingVerifier, StoredTree
from trialogue.data import Dyck
from trialogue.errors import InputError
from trialogue.oracles import Context, as_context, as_oracle, next_log_probs, padded
from trialogue.samplers import Ancestral, Rejection, generate, truncated, values
from trialogue.samplers.exact import exact_distribution
from trialogue.testing.trees import RandomTree
from trialogue.verifiers import FunctionVerifier, RandomVerifier, as_verifier
from trialogue.verifiers.combination import Product

TREE = RandomTree(101, vocab=3, horizon=6, eos=2)
PREFIXES = [(), (0, 1), (1,), (0, 0, 1, 1, 0), (0, 1)]


@pytest.mark.parametrize("batch_size", [1, 2, 4096])
@pytest.mark.parametrize("oracle", [TREE.table(), StoredTree(TREE)], ids=["table", "stored"])
def test_an_oracle_is_evaluated_on_given_prefixes(oracle, batch_size):
    log_probs = next_log_probs(oracle, *padded(PREFIXES), batch_size=batch_size)
    assert log_probs.exp().tolist() == [pytest.approx(TREE.conditional(prefix)) for prefix in PREFIXES]
    found = next_log_probs(oracle, torch.tensor([[0, 1], [1, 1]]))
    assert found.exp().tolist() == [pytest.approx(TREE.conditional(prefix)) for prefix in ((0, 1), (1, 1))]
    assert next_log_probs(oracle, torch.zeros(0, 3, dtype=torch.int64)).shape == (0, 3)


def test_invalid_prefixes_are_reported():
    tokens = torch.zeros(2, 3, dtype=torch.int64)
    for lengths, wrong in (([1, 4], "4"), ([-1, 2], "-1")):
        expect_error(f"lengths={wrong}", next_log_probs, TREE.table(), tokens, torch.tensor(lengths))
    with pytest.raises(InputError, match="cannot evaluate the empty prefix"):
        next_log_probs(tiny_oracle(), tokens, torch.tensor([1, 0]))

    class NaNTable(type(TREE.table())):
        def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
            return torch.full((len(lengths), 3), math.nan)

    expect_error("returned NaN", next_log_probs, NaNTable(TREE.conditional, 3), tokens)


@pytest.mark.parametrize("batch_size", [1, 3, None])
def test_a_verifier_is_evaluated_on_given_sequences(batch_size):
    sequences = [(), (0,), (0, 1, 1, 0, 1, 0), (0, 2)]
    found = values(TREE.value, TREE.table(), sequences, batch_size=batch_size)
    assert found.tolist() == [TREE.value(x) for x in sequences]
    read = values(ReadingVerifier(TREE.value), StoredTree(TREE), sequences, batch_size=batch_size)
    assert read.tolist() == found.tolist()
    assert values(TREE.value, TREE.table(), []).tolist() == []


def test_complete_sequences_are_judged_as_complete():
    verifier = FunctionVerifier(lambda prefix: 0.25, whole=True)
    sequences = [(0, 1), (0, 2), (0, 1, 1)]
    assert values(verifier, TREE.table(), sequences).tolist() == [1.0, 0.25, 1.0]
    assert values(verifier, TREE.table(), sequences, max_length=3).tolist() == [1.0, 0.25, 0.25]


def test_the_prompt_is_not_part_of_a_completion():
    seen: list[tuple[int, ...]] = []
    verifier = FunctionVerifier(lambda completion: seen.append(completion) is None, "completion")
    values(verifier, TREE.table(), [(0, 1), (1, 1, 0)], prompt_lengths=[1, 0])
    assert seen == [(1,), (1, 1, 0)]
    expect_error("prompt_lengths", values, verifier, TREE.table(), [(0, 1)], prompt_lengths=3)
    expect_error("sequences=4", values, verifier, TREE.table(), [(0, 1, 1, 1)], max_length=3)
    expect_error(r"verifier=-1\.0", values, ReadingVerifier(lambda prefix: -1.0), StoredTree(TREE), [(0,)])


class Methods:
    """An object with the methods of an oracle, but no common base class."""

    vocab_size, max_length, eos = 3, 6, 2

    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        log_probs: Tensor = TREE.table().next_log_probs(tokens, lengths)
        return log_probs


@pytest.mark.parametrize("thing", [Methods(), StoredTree(TREE)], ids=["evaluated", "opened"])
def test_an_object_with_the_methods_of_an_oracle_is_an_oracle(thing):
    settings: dict[str, Any] = {"sampler": Rejection(), "verifier": TREE.judges, "num_samples": 20}
    assert generate(thing, **settings).sequences() == generate(TREE.table(), **settings).sequences()
    distribution = exact_distribution(Ancestral(), thing).probabilities
    assert distribution == pytest.approx(exact_distribution(Ancestral(), TREE.table()).probabilities)
    cut = generate(truncated(thing, top_k=1))
    assert cut.sequences() == generate(truncated(TREE.table(), top_k=1)).sequences()
    oracle = as_oracle(thing)
    assert as_oracle(oracle) is oracle
    facts = (oracle.prompts_go_on, oracle.batch_size, oracle.tokenization)
    assert facts == (False, 1024, None)
    context = as_context(StoredTree(TREE).open(1, 2))
    assert isinstance(context.fork(torch.tensor([0]), 2), Context)
    assert (context.first, context.recomputes, context.passes) == (0, False, None)


class OneMethod:
    """A verifier with only the method `values`."""

    def values(self, decoding: Any, rows: Tensor) -> Tensor:
        return (decoding.lengths[rows] % 2 == 0).double()


def test_an_object_with_a_values_method_is_a_verifier_but_a_class_is_not():
    found = values(OneMethod(), TREE.table(), [(0,), (0, 1)])
    assert (
        found.tolist() == values(lambda prefix: len(prefix) % 2 == 0, TREE.table(), [(0,), (0, 1)]).tolist()
    )
    for combined in (Product(OneMethod(), OneMethod()), as_verifier(OneMethod())):
        assert (combined.scope, combined.layers) == ("sequence", ())
        assert generate(TREE.table(), sampler=Rejection(), verifier=combined).accepted.tolist() == [True]
    with pytest.raises(InputError, match=r"verifier='RandomVerifier': give an instance: RandomVerifier\(\)"):
        generate(TREE.table(), verifier=RandomVerifier)
    assert as_verifier(language := Dyck(4)) is language
