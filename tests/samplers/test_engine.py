"""The engine of prefix samplers: prompts, budgets, refills, call counts and errors for invalid input."""

import math
from collections import Counter
from functools import partial
from typing import NamedTuple

import pytest
import torch

from refusals import calls_without_expected_error, expect_error
from trialogue.data.table import Table
from trialogue.oracles import Decoding, PrefixOracle
from trialogue.samplers import (
    AdaptiveRejection,
    Ancestral,
    Backtracking,
    BestOfN,
    MaskedDecoding,
    Rejection,
    Sampler,
    TokenwiseRejection,
    ValueGuided,
    generate,
    truncated,
)
from trialogue.samplers.exact import exact_distribution, target_distribution, transition_matrix
from trialogue.samplers.prefix.batch import Batch, view
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.samplers.prefix.engine.run import RunSettings, start_run
from trialogue.testing.trees import TREES, RandomTree, viable
from trialogue.verifiers import power

TREE = RandomTree(71, horizon=6, eos=1)
LONG = viable(RandomTree(3, vocab=3, horizon=6))
COINS = Table(lambda prefix: [0.5, 0.5], 2, max_length=3)
ENDLESS = Table(lambda prefix: [0.5, 0.5], 2)


def test_the_default_is_one_sample_of_the_oracle():
    run = generate(TREE.table())
    assert len(run.sequences()) == 1
    assert TREE.complete(run.sequences()[0])
    assert run.trace is None
    assert run.verifier_calls.tolist() == [0]
    assert run.log_weight.tolist() == [0.0]


def test_prompts_may_be_lists_or_a_tensor_or_padded_tokens_with_lengths():
    sequences = [(0, 0), (0,), ()]
    padded = torch.tensor([[0, 0, 7], [0, 7, 7], [7, 7, 7]])  # entries beyond a length are padding
    lengths = torch.tensor([2, 1, 0])
    runs = [
        generate(TREE.table(), prompts)
        for prompts in (sequences, [list(s) for s in sequences], (padded, lengths))
    ]
    assert runs[0].sequences() == runs[1].sequences() == runs[2].sequences()
    equal = torch.zeros(2, 2, dtype=torch.int32)
    assert generate(TREE.table(), equal).sequences() == generate(TREE.table(), [(0, 0)] * 2).sequences()


def test_a_prompt_that_ends_in_eos_is_continued_if_the_oracle_allows_it():
    def distribution(prefix):
        return [1.0, 2.0, 3.0]

    oracle = Table(distribution, 3, eos=0, max_length=6)
    assert generate(oracle, [(2, 0)], num_samples=5).completions() == [()] * 5
    oracle.prompts_go_on = True
    for sampler in (Ancestral(), Backtracking(1, 2), BestOfN(2), Rejection()):
        run = generate(oracle, [(2, 0), (0,)], sampler=sampler, verifier=lambda x: len(x) < 3, num_samples=40)
        for completion in run.completions():
            assert completion
            assert 0 not in completion[:-1]
        # An end-of-sequence token after the prompt still ends the sequence.
        assert (0,) in run.completions()
    # This sampler returns to the end of the prompt and stays there.
    again = generate(oracle, [(2, 0)], sampler=ValueGuided(), verifier=lambda x: 1.0, num_samples=20)
    assert all(again.completions())
    nested = truncated(truncated(oracle, temperature=0.5), top_k=2)
    assert all(generate(nested, [(0,)], num_samples=20).completions())


def test_samples_are_identified_by_seed_and_id():
    first = generate(COINS, num_samples=30, seed=1)
    assert generate(COINS, num_samples=30, seed=1).sequences() == first.sequences()
    assert generate(COINS, num_samples=30, seed=2).sequences() != first.sequences()
    late = generate(COINS, num_samples=10, seed=1, sample_ids=range(20, 30))
    assert late.sequences() == first.sequences()[20:]


def test_a_complete_prompt_is_returned_unchanged():
    table = Table(lambda prefix: [0.5, 0.5], 2, eos=1, max_length=2)
    run = generate(table, [(0, 0), (1,)])
    assert run.sequences() == [(0, 0), (1,)]
    assert (run.queries.tolist(), run.stopped) == ([0, 0], ["", ""])
    for prompt in ((0, 0), (1,)):
        distribution = exact_distribution(Ancestral(), table, prompt=prompt)
        assert (distribution.probabilities, distribution.expected_calls) == ({prompt: 1.0}, 0.0)


def test_new_tokens_are_counted_from_the_end_of_the_prompt():
    run = generate(ENDLESS, [(), (0, 1)], max_new_tokens=4)
    assert run.lengths.tolist() == [4, 6]
    assert generate(COINS, [(), (0, 1)], max_new_tokens=2).lengths.tolist() == [2, 3]


def test_rows_are_refilled_until_every_sample_is_drawn():
    run = generate(
        TREE.table(), sampler=Rejection(), verifier=TREE.judges, num_samples=57, batch_size=4, progress=True
    )
    assert len(run.sequences()) == 57
    assert bool(run.accepted.all())
    assert all(TREE.judges(sequence) for sequence in run.sequences())


def test_queries_count_the_tokens_requested_from_the_oracle():
    requested = Counter()

    class Counting(Table):
        def next_log_probs(self, tokens, lengths):
            requested.update(
                tuple(row[:length]) for row, length in zip(tokens.tolist(), lengths.tolist(), strict=True)
            )
            return super().next_log_probs(tokens, lengths)

    oracle = Counting(TREE.conditional, 2, eos=1, max_length=6)
    settings = {"sampler": TokenwiseRejection(), "verifier": TREE.allows, "num_samples": 40}
    run = generate(oracle, batch_size=1, **settings)
    assert bool((run.queries >= run.lengths).all())
    # Distributions are cached, so that each prefix is evaluated once.
    assert set(requested.values()) == {1}
    assert len(requested) == run.total.positions == int(run.distinct_queries.sum()) < int(run.queries.sum())
    requested.clear()
    forgetful = generate(oracle, batch_size=7, memory=1, **settings)
    assert forgetful.total.positions >= requested.total() > len(requested)
    assert forgetful.sequences() == run.sequences()
    assert torch.equal(forgetful.queries, run.queries)


@pytest.mark.parametrize("bound", [1, 2, 5])
def test_a_budget_stops_a_sample_and_is_reported(bound):
    def reject(prefix):
        return False

    by_queries = generate(
        COINS, sampler=TokenwiseRejection(), verifier=reject, num_samples=5, max_queries=bound
    )
    assert by_queries.queries.tolist() == [bound] * 5
    assert by_queries.stopped == ["max_queries"] * 5
    by_steps = generate(COINS, sampler=TokenwiseRejection(), verifier=reject, num_samples=5, max_steps=bound)
    assert by_steps.queries.tolist() == [bound] * 5
    assert by_steps.stopped == ["max_steps"] * 5


def test_the_default_number_of_steps_is_proportional_to_the_longest_completion(monkeypatch):
    monkeypatch.setattr("trialogue.samplers.prefix.engine.run.STEPS_PER_TOKEN", 4)
    stuck = generate(COINS, [(0, 0), ()], sampler=TokenwiseRejection(), verifier=lambda prefix: False)
    assert stuck.queries.tolist() == [12, 12]
    assert stuck.stopped == ["max_steps"] * 2


def test_steps_are_counted_from_the_start_of_each_sample():
    run = generate(COINS, num_samples=50, batch_size=2, max_steps=4)
    assert set(run.stopped) == {""}
    cut = generate(COINS, num_samples=50, batch_size=2, max_steps=2)
    assert set(cut.stopped) == {"max_steps"}
    assert cut.lengths.tolist() == [2] * 50
    one_stuck = generate(
        COINS,
        [(1,)] + [(0,)] * 30,
        sampler=TokenwiseRejection(),
        verifier=lambda prefix: prefix[0] == 0,
        batch_size=2,
        max_steps=10,
    )
    assert one_stuck.stopped == ["max_steps"] + [""] * 30


def test_a_sampler_that_continues_after_a_leaf_is_stopped_by_max_steps():
    run = generate(
        COINS,
        sampler=ValueGuided(stop_at_leaf=False),
        verifier=lambda prefix: True,
        num_samples=300,
        max_steps=40,
    )
    assert {bool(accepted) for accepted in run.accepted} == {True, False}
    for accepted, stopped, length in zip(
        run.accepted.tolist(), run.stopped, run.lengths.tolist(), strict=True
    ):
        assert accepted == (length == 3)
        assert stopped == ("" if accepted else "max_steps")


class OneColumnVerifier:
    """A verifier that returns values of children in the wrong shape."""

    scope, layers = "sequence", ()

    def values(self, decoding, rows):
        return torch.ones(len(rows))

    def children(self, decoding, rows):
        return torch.ones(len(rows), 1)


INTEGERS = ("max_new_tokens", "num_samples", "batch_size", "memory", "max_queries", "max_steps", "seed")
ZEROS = torch.zeros(2, 2, dtype=torch.int64)
INPUTS = [
    ({"prompts": [[0, 2]]}, r"prompts\[0\]\[1\]=2: use token ids from 0 to 1"),
    ({"prompts": [[], [-1]]}, r"prompts\[1\]\[0\]=-1"),
    ({"prompts": [[0, 0, 0, 0]]}, "prompts=4: use prompts of at most 3"),
    ({"prompts": [0, 1]}, "prompts=0: give a sequence of integer token ids"),
    ({"prompts": ["01"]}, "prompts='texts'"),
    ({"prompts": [[0.0, 1.0]]}, r"prompts=\[0.0, 1.0\]: give a sequence of integer token ids"),
    ({"prompts": (torch.zeros(2, 2), torch.tensor([1, 1]))}, "prompts=torch.float32: give integer tokens"),
    ({"prompts": (ZEROS, [1, 3])}, r"prompts=\(2, 2\)"),
    ({"prompts": []}, r"prompts=\[\]"),
    ({"prompts": torch.zeros(2).long()}, r"prompts=\(2,\)"),
    ({"prompts": (ZEROS, torch.tensor([1]))}, r"prompts=\(2, 2\)"),
    ({"prompts": (ZEROS, torch.tensor([1, -1]))}, r"prompts=\(2, 2\)"),
    ({"max_new_tokens": 0}, "max_new_tokens=0"),
    ({"sample_ids": [1, 2, 3]}, "sample_ids=3: give 1"),
    ({"sample_ids": [0.5]}, r"sample_ids=\[0.5\]: give 1 different integers"),
    *[({field: 2.5}, f"^{field}=2.5: use an integer") for field in INTEGERS],
    ({"seed": -1}, "seed=-1: use at least 0"),
    ({"sampler": Ancestral}, r"sampler='Ancestral': give an instance: Ancestral\(\)"),
    ({"sampler": Rejection()}, "verifier=None: Rejection needs a verifier"),
    ({"verifier": 3}, "verifier=3"),
    ({"verifier": lambda prefix: "yes"}, "returned 'yes'"),
    ({"verifier": lambda prefix: None}, "returned None"),
    ({"sampler": ValueGuided(), "verifier": OneColumnVerifier()}, r"verifier=\(1, 1\): .*shape \(1, 2\)"),
]


def test_invalid_input_is_reported_in_one_line():
    calls = [(message, partial(generate, COINS, **arguments)) for arguments, message in INPUTS]
    assert not calls_without_expected_error([*calls, ("max_new_tokens=None", lambda: generate(ENDLESS))])


@pytest.mark.parametrize("distribution", [exact_distribution, transition_matrix])
def test_a_chain_with_too_many_states_is_rejected(distribution):
    arguments = (Rejection(), TREES[1].table(), TREES[1].allows)
    states = exact_distribution(*arguments).states
    distribution(*arguments, max_states=states)
    expect_error(f"max_states={states - 1}", distribution, *arguments, max_states=states - 1)


class Mark(NamedTuple):
    mark: torch.Tensor


class SecondRowSampler(Sampler[Mark]):
    """A sampler in which both rows of a group continue from the second row.

    The appended token is the state, which is the row's initial place in its group.
    """

    rows_per_sample = 2

    def init(self, decoding):
        return Mark(torch.arange(len(decoding.lengths)) % 2)

    def step(self, decoding, state, verifier, choose):
        rows = torch.arange(len(decoding.lengths))
        second = torch.where(decoding.complete, rows, rows // 2 * 2 + 1)
        token = state.mark.masked_fill(decoding.complete, -1)
        return Moves(second, decoding.lengths[second], token, decoding.complete), state


def test_states_move_with_the_rows_that_continue():
    assert (
        generate(COINS, sampler=SecondRowSampler(), num_samples=3, batch_size=4).sequences()
        == [(1, 1, 1)] * 3
    )
    assert exact_distribution(SecondRowSampler(), COINS).probabilities == {(1, 1, 1): 1.0}


INVALID_DISTRIBUTIONS = [
    (r"prompts\[0\]\[0\]=5", lambda: exact_distribution(Ancestral(), COINS, prompt=(5,))),
    ("max_new_tokens=None", lambda: exact_distribution(Ancestral(), ENDLESS)),
    (r"verifier=0\.0", lambda: target_distribution(COINS, lambda prefix: False)),
    ("max_states=3", lambda: target_distribution(COINS, lambda prefix: True, max_states=3)),
]


def test_exact_distributions_report_invalid_input():
    assert not calls_without_expected_error(INVALID_DISTRIBUTIONS)


def test_the_distribution_after_a_prompt_contains_only_its_completions():
    tree = RandomTree(72, horizon=5)
    for sampler in (Ancestral(), MaskedDecoding(), Backtracking(1, 2), ValueGuided()):
        distribution = exact_distribution(sampler, tree.table(), tree.value, prompt=(0, 1))
        assert math.fsum(distribution.probabilities.values()) == pytest.approx(1.0, abs=1e-12)
        assert {x[:2] for x in distribution.probabilities} == {(0, 1)}


@pytest.mark.parametrize("sampler", [MaskedDecoding(), TokenwiseRejection(), ValueGuided()], ids=repr)
@pytest.mark.parametrize("weight", [0.0, float("nan")])
def test_an_oracle_without_a_possible_token_is_reported(sampler, weight):
    class Nothing(PrefixOracle):
        vocab_size, max_length = 2, 3

        def next_log_probs(self, tokens, lengths):
            return torch.full((len(lengths), 2), weight).log()

    expect_error("probability zero", generate, Nothing(), sampler=sampler, verifier=lambda prefix: True)


class InvalidMoves(Ancestral):
    """A faulty sampler with moves that cannot be applied."""

    def __init__(self, **wrong):
        object.__setattr__(self, "wrong", wrong)

    def step(self, decoding, state, verifier, choose):
        moves, state = super().step(decoding, state, verifier, choose)
        wrong = {name: torch.full_like(getattr(moves, name), value) for name, value in self.wrong.items()}
        return moves._replace(**wrong), state


@pytest.mark.parametrize(
    "wrong",
    [{"token": 2}, {"length": 4}, {"length": -1}, {"token": 1, "done": False}, {"length": 1}],
    ids=str,
)
def test_moves_that_cannot_be_applied_are_rejected(wrong):
    expect_error(r"^moves=\(.*tokens of row 0", generate, COINS, sampler=InvalidMoves(**wrong), max_steps=9)


@pytest.mark.parametrize(("candidates", "queries"), [(1, 3), (4, 12)])
def test_a_budget_of_exactly_the_required_queries_suffices(candidates, queries):
    run = generate(COINS, sampler=BestOfN(candidates), verifier=lambda x: True, max_queries=queries)
    assert (run.stopped, run.accepted.tolist(), run.queries.tolist()) == ([""], [True], [queries])
    run = generate(
        COINS, sampler=BestOfN(candidates), verifier=lambda x: True, max_queries=queries - candidates
    )
    assert (run.stopped, run.accepted.tolist()) == (["max_queries"], [False])


def test_samples_can_be_used_in_training_and_modified():
    samples = generate(COINS, num_samples=3)
    samples.tokens.add_(1)
    samples.accepted[0] = False
    weight = torch.ones(3, requires_grad=True)
    (weight[:, None] * samples.tokens).sum().backward()
    assert weight.grad is not None


LEARNING = {
    "oracle": LONG.table(),
    "prompts": [(), (0,), (1,), (0, 1)],
    "sampler": AdaptiveRejection(),
    "verifier": LONG.allows,
    "num_samples": 8,
    "seed": 4,
}


@pytest.mark.parametrize("max_steps", [None, 9])
def test_rows_at_cached_prefixes_move_first_without_changing_the_samples(max_steps):
    one_by_one = generate(**LEARNING, max_steps=max_steps, batch_size=1)
    together = generate(**LEARNING, max_steps=max_steps, batch_size=32)
    for name in ("tokens", "lengths", "calls", "accepted"):
        assert torch.equal(getattr(together, name), getattr(one_by_one, name)), name
    assert bool(together.accepted.all()) == (max_steps is None)


def test_new_prefixes_of_several_rows_are_evaluated_in_one_pass(monkeypatch):
    waiting = generate(**LEARNING, batch_size=32).total.forward_passes
    monkeypatch.setattr(Batch, "ready", Decoding.ready)
    assert waiting < 0.75 * generate(**LEARNING, batch_size=32).total.forward_passes


def test_a_row_waits_for_a_bounded_number_of_steps(monkeypatch):
    monkeypatch.setattr(view, "_MAX_WAIT", 1)
    batch = Batch(LONG.table(), 2, 4)
    batch.waited = torch.zeros(0, dtype=torch.int64)
    prompts = torch.tensor([[0, 0, 0, 0], [1, 0, 0, 0]])
    batch.add(prompts, torch.tensor([1, 1]), torch.tensor([1, 1]), torch.tensor([4, 4]))
    rows = torch.arange(2)
    assert batch.ready(rows).tolist() == [True, True]
    batch.log_probs(rows[:1])
    assert batch.ready(rows).tolist() == [True, False]
    assert batch.ready(rows).tolist() == [True, True]


@pytest.mark.parametrize(
    ("sampler", "verifier", "is_stored"),
    [(Ancestral(), None, False), (Ancestral(), power(2.0), True), (Backtracking(1, 1), lambda x: True, True)],
)
def test_distributions_are_stored_if_rows_may_need_them_again(sampler, verifier, is_stored):
    settings = RunSettings(sampler=sampler, verifier=verifier)
    batch = start_run(LONG.table(), None, settings).running._groups.batch
    assert bool(batch.shared.distributions) == is_stored
