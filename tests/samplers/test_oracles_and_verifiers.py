"""Calls of oracles and verifiers on given sequences, objects with their methods, and checks of the first result."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from models.tiny_pretrained import tiny_oracle
from refusals import expect_error
from samplers.chains.small_models import FunctionEnergy
from samplers.stateful_tree import ReadingVerifier, StoredTree
from trialogue import run_chain, stream
from trialogue.data import Dyck
from trialogue.errors import InputError
from trialogue.oracles import (
    Context,
    Masked,
    PrefixOracle,
    as_context,
    as_oracle,
    next_log_probs,
    pad_sequences,
)
from trialogue.samplers import (
    Ancestral,
    Backtracking,
    BlockBestOfN,
    Gibbs,
    Metropolis,
    Rejection,
    TokenwiseRejection,
    ValueGuided,
    generate,
    truncated,
    values,
)
from trialogue.samplers.exact import chain_transitions, exact_distribution, prefix_tree
from trialogue.testing.trees import RandomTree
from trialogue.verifiers import FunctionVerifier, RandomVerifier, as_verifier
from trialogue.verifiers.combination import Product

TREE = RandomTree(101, vocab=3, horizon=6, eos=2)
PREFIXES = [(), (0, 1), (1,), (0, 0, 1, 1, 0), (0, 1)]


@pytest.mark.parametrize("batch_size", [1, 2, 4096])
@pytest.mark.parametrize("oracle", [TREE.table(), StoredTree(TREE)], ids=["table", "stored"])
def test_an_oracle_is_evaluated_on_given_prefixes(oracle, batch_size):
    log_probs = next_log_probs(oracle, *pad_sequences(PREFIXES), batch_size=batch_size)
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


class FunctionOracle(PrefixOracle):
    """An oracle that returns `function(rows)`."""

    vocab_size = 2
    max_length = 3

    def __init__(self, function: Callable[[int], Any], vocab_size: int = 2) -> None:
        self.function, self.vocab_size = function, vocab_size
        self.calls = 0

    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        self.calls += 1
        result: Tensor = self.function(len(lengths))
        return result


def uniform(rows: int, vocab: int = 2) -> Tensor:
    return torch.full((rows, vocab), -math.log(vocab))


WRONG = {
    "two columns for three tokens": (
        FunctionOracle(uniform, 3),
        r"oracle=\(\d+, 2\): return log-prob.*\(\d+, 3\)",
    ),
    "one column": (
        FunctionOracle(lambda n: torch.zeros(n, 1)),
        r"oracle=\(\d+, 1\): return log-probabilities of shape",
    ),
    "one row": (
        FunctionOracle(lambda n: uniform(1 if n > 1 else 2)),
        r"oracle=\([12], 2\): return a tensor with one row",
    ),
    "a list": (FunctionOracle(lambda n: [[-0.7, -0.7]] * n), "oracle='list': return a tensor"),
    "integers": (
        FunctionOracle(lambda n: torch.zeros(n, 2).long()),
        "oracle=torch.int64: return log-prob.*floating",
    ),
    "all zero": (
        FunctionOracle(lambda n: torch.zeros(n, 2)),
        "oracle=2.0: the probabilities of a row must sum to 1.*softmax",
    ),
}
RUNS: dict[str, Callable[[PrefixOracle], object]] = {
    "generate": lambda oracle: generate(oracle, num_samples=3),
    "stream": lambda oracle: list(stream(oracle, num_samples=3)),
    "truncated": lambda oracle: generate(truncated(oracle, top_p=0.9), num_samples=3),
    "exact distribution": lambda oracle: exact_distribution(Ancestral(), oracle),
    "prefix tree": lambda oracle: prefix_tree(oracle),
    "next_log_probs": lambda oracle: next_log_probs(oracle, torch.zeros(2, 1).long()),
}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize(("oracle", "line"), WRONG.values(), ids=WRONG)
def test_an_invalid_first_result_is_rejected(oracle, line, run):
    expect_error(f"^{line}", run, oracle)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_results_normalised_up_to_rounding_are_accepted(dtype):
    logits = torch.linspace(-8, 8, 1000).to(dtype)
    oracle = FunctionOracle(lambda rows: logits.log_softmax(-1).expand(rows, -1), 1000)
    assert next_log_probs(oracle, torch.zeros(1, 1).long()).dtype == dtype
    if dtype in (torch.float64, torch.float32):
        assert generate(oracle, num_samples=4).lengths.tolist() == [3] * 4


class FunctionMasked(Masked):
    """A masked oracle of two values that returns `function(shape)`."""

    vocab_size = 2

    def __init__(self, function: Callable[[tuple[int, ...]], Any]) -> None:
        self.function = function

    def log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        result: Tensor = self.function(tuple(tokens.shape))
        return result


START = torch.zeros(2, 12).long()
"""A start with too many states for enumeration, so that only the run calls the model."""
MODELS = {
    "three values": (FunctionMasked(lambda shape: torch.zeros(*shape, 3)), r"log_probs=\(1, 12, 3\)"),
    "a list": (FunctionMasked(lambda shape: [0.0]), "log_probs='list': return a tensor"),
    "all zero": (
        FunctionMasked(lambda shape: torch.zeros(*shape, 2)),
        "log_probs=2.0: the probabilities of a row must sum to 1",
    ),
    "complex": (
        FunctionMasked(lambda shape: torch.zeros(*shape, 2) * 1j),
        "log_probs=torch.complex64: return a tensor of real",
    ),
    "energy as a list": (FunctionEnergy(lambda x: [0.0] * len(x)), "energy='list'"),
    "energy NaN": (FunctionEnergy(lambda x: torch.full((len(x),), math.nan)), "energy=nan"),
}


@pytest.mark.parametrize(("model", "line"), MODELS.values(), ids=MODELS)
def test_a_model_of_sequences_is_checked_before_a_chain_runs(model, line):
    chain = Gibbs() if isinstance(model, Masked) else Metropolis()
    expect_error(f"^{line}", run_chain, chain, model, start=START, steps=1)
    expect_error(f"^{line.replace('12', '2')}", chain_transitions, chain, model, sites=2)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("sampler", [Ancestral(), ValueGuided(), TokenwiseRejection()], ids=repr)
def test_oracles_of_half_precision_can_be_sampled(sampler, dtype):
    oracle = FunctionOracle(lambda rows: uniform(rows).to(dtype))
    samples = generate(oracle, sampler=sampler, verifier=lambda prefix: True, num_samples=4, max_new_tokens=3)
    assert samples.lengths.tolist() == [3] * 4


def test_only_the_first_result_of_a_run_is_checked(monkeypatch):
    checked = []
    for module in ("trialogue.samplers.prefix.batch.view", "trialogue.oracles.prefixes"):
        monkeypatch.setattr(f"{module}.require_log_probs", lambda *arguments: checked.append(arguments))
    oracle = FunctionOracle(uniform)
    generate(oracle, num_samples=4, batch_size=1)
    assert oracle.calls > 3
    assert len(checked) == 1
    generate(truncated(oracle, top_p=0.9), num_samples=1)
    assert len(checked) == 3  # the distributions before and after truncation


def test_counts_beyond_int64_are_rejected():
    for field, make in {
        "max_rejections": lambda number: TokenwiseRejection(max_rejections=number),
        "block_tokens": lambda number: BlockBestOfN(candidates=2, block_tokens=number),
        "quota": lambda number: Backtracking(quota=number),
        "stride": lambda number: Backtracking(stride=number),
    }.items():
        make(10**18)
        expect_error(f"^{field}=1000.*: use at most", make, 10**19)


def test_a_budget_beyond_int64_is_unlimited():
    samples = generate(FunctionOracle(uniform), num_samples=2, max_new_tokens=3, max_queries=10**30)
    assert samples.lengths.tolist() == [3, 3]
