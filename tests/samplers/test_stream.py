"""Streams of samples: order, indexing, verifiers per prompt, token log-probabilities and raised errors."""

import asyncio
import math
from itertools import pairwise

import pytest
import torch

from models.tiny_pretrained import tiny_oracle
from refusals import expect_error
from trialogue import generate, stream
from trialogue.data import Table
from trialogue.errors import InputError
from trialogue.samplers import (
    Backtracking,
    BestOfN,
    MaskedDecoding,
    Sample,
    SequentialMonteCarlo,
    TokenwiseRejection,
    WeightedRejection,
)
from trialogue.samplers.prefix.batch.tree import NodeTree, Root
from trialogue.verifiers import GrammarVerifier

COIN = Table(lambda prefix: (0.5, 0.3, 0.2), vocab_size=3)


def no_pair(prefix: tuple[int, ...]) -> bool:
    return all(a != b for a, b in pairwise(prefix))


def no_zero(prefix: tuple[int, ...]) -> bool:
    return 0 not in prefix[1:]


def settings(**others: object) -> dict[str, object]:
    return {
        "prompts": [[0], [1]],
        "max_new_tokens": 4,
        "num_samples": 20,
        "seed": 1,
        "batch_size": 7,
    } | others


def test_a_stream_yields_the_samples_of_generate():
    options = settings(sampler=Backtracking(quota=2, stride=1), verifier=no_pair)
    expected = list(generate(COIN, **options))
    drawn = list(stream(COIN, **options))

    def comparable_fields(sample: Sample) -> tuple[object, ...]:
        return sample.index, sample.tokens, sample.accepted, sample.log_prob, sample.queries

    assert sorted(map(comparable_fields, drawn)) == list(map(comparable_fields, expected))
    assert [sample.index for sample in drawn] != list(range(40))
    assert list(map(comparable_fields, stream(COIN, ordered=True, **options))) == list(
        map(comparable_fields, expected)
    )


def test_a_stream_can_be_iterated_asynchronously_and_left_early():
    async def first(many: int) -> list[Sample]:
        drawn = []
        async for sample in stream(COIN, ordered=True, **settings()):
            drawn.append(sample)
            if len(drawn) == many:
                break
        return drawn

    async def two() -> list[list[Sample]]:
        return await asyncio.gather(first(40), first(3))

    complete, partial = asyncio.run(two())
    expected = generate(COIN, **settings())
    assert [sample.tokens for sample in complete] == expected.completions()
    assert [sample.tokens for sample in partial] == expected.completions()[:3]


def test_partial_samples_grow_into_complete_ones():
    shown: dict[int, list[tuple[int, ...]]] = {}
    finished = []
    for sample in stream(COIN, partial=True, **settings(sampler=MaskedDecoding(), verifier=no_pair)):
        assert sample.index not in finished
        if sample.finished:
            finished.append(sample.index)
        else:
            shown.setdefault(sample.index, []).append(sample.tokens)
    assert sorted(finished) == sorted(shown) == list(range(40))
    for grown in shown.values():
        assert grown == [grown[-1][:length] for length in (1, 2, 3, 4)]


def test_partial_texts_contain_no_part_of_a_stop_string():
    oracle, message = tiny_oracle(), {}
    drawn = {"prompts": ["the cat"], "max_new_tokens": 12, "num_samples": 8, "seed": 1}
    first = generate(oracle, **drawn).texts()[0]
    stop = first[4:7]
    assert stop
    assert stop not in first[:6]
    for sample in stream(oracle, partial=True, stop=stop, **drawn):
        message.setdefault(sample.index, []).append(sample.text)
    assert message[0][-1] == first[:4]
    for texts in message.values():
        assert all(texts[-1].startswith(text) for text in texts)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ordered": 1}, "ordered=1: use True or False"),
        ({"ordered": True, "partial": True}, "ordered=True: set it to False"),
        ({"verifier": [no_pair]}, "verifier='1 verifiers': give one for each of the 2 prompts"),
        (
            {"verifier": [None, None], "sampler": TokenwiseRejection()},
            "verifier=None: TokenwiseRejection needs a verifier; pass one as `verifier`",
        ),
        ({"progress": True}, "progress=True: leave it out of stream and count the samples"),
        ({"trace": True}, "trace=True: leave it out of stream and use generate"),
    ],
)
def test_invalid_input_is_reported_before_the_first_sample(arguments, message):
    expect_error(message, stream, COIN, **settings(**arguments))


def test_two_loops_cannot_share_a_stream():
    samples = stream(COIN, **settings())
    next(iter(samples))
    expect_error("stream='in use': call stream again for another loop", list, samples)


def test_samples_can_be_indexed():
    oracle = tiny_oracle()
    verifier = GrammarVerifier.json_schema({"type": "integer"}, oracle.tokenization)
    options = {"sampler": MaskedDecoding(), "verifier": verifier, "max_new_tokens": 9, "num_samples": 12}
    samples = generate(oracle, ["the cat"], **options, seed=3)
    assert len(samples) == len(list(samples)) == 12
    accepted = samples[samples.accepted]
    assert accepted.texts() == [one.text for one in samples if one.accepted]
    assert (samples[-1].index, samples[-1].text) == (11, samples.texts()[11])
    assert [one.parsed for one in samples] == samples.parsed()
    assert samples.parser is samples.parsers[0] is not None
    assert generate(COIN, **settings()).parser is None
    several = generate(oracle, ["the", "a"], **options | {"verifier": [verifier, None], "num_samples": 1})
    expect_error("parser=2: prompts have different verifiers; use `parsers`", lambda: several.parser)
    assert samples[2:4].texts() == samples[[2, 3]].texts() == samples.texts()[2:4]
    assert samples[2:4].total.queries == int(samples.queries[2:4].sum())
    with pytest.raises(IndexError, match="sample index 12 is out of range for 12 samples"):
        samples[12]
    expect_error(r"index=\[99\]: use indices from 0 to 11", lambda: samples[[99]])
    with pytest.raises(InputError, match="parsed=None: the verifier does not define values"):
        _ = generate(oracle, ["the"], max_new_tokens=2)[0].parsed


def test_samples_keep_their_index_and_reject_invalid_indices(monkeypatch):
    monkeypatch.setattr("trialogue.samplers.prefix.output.samples._ROWS", 3)
    samples = generate(COIN, **settings(num_samples=4))
    assert [sample.index for sample in samples] == list(range(8))
    assert list(samples) == [samples[place] for place in range(8)]
    assert (samples[3:][0].index, samples[3:][2:][-1].index, samples[torch.tensor(-1)].index) == (3, 7, 7)
    assert [sample.index for sample in samples[::-1]] == [7, 6, 5, 4, 3, 2, 1, 0]
    assert [sample.index for sample in samples[[-1, 2]]] == samples[[-1, 2]].index.tolist() == [7, 2]
    assert samples[::-1].completions() == samples.completions()[::-1]
    assert len(samples[8:]) == len(samples[[]]) == 0
    with pytest.raises(IndexError, match="sample index 5 is out of range for 5 samples"):
        samples[3:][5]
    for wrong in (True, None, 1.0, "a", [True], torch.zeros(2, 2, dtype=torch.int64), slice(0.5, None)):
        with pytest.raises(InputError, match=r"index=.*: use indices from 0 to 7, or one bool per sample"):
            samples[wrong]


SAMPLERS = (
    TokenwiseRejection(),
    MaskedDecoding(),
    Backtracking(quota=2, stride=1),
    BestOfN(3),
    SequentialMonteCarlo(particles=3),
    WeightedRejection(),
)


@pytest.mark.parametrize("sampler", SAMPLERS, ids=repr)
def test_prompts_with_separate_verifiers_have_the_same_samples_as_single_prompts(sampler):
    """Equal prompts under different verifiers share neither verdicts nor distributions."""
    rules = [no_pair, no_zero, None, no_pair]
    shared = settings(prompts=[[0]] * 4, sampler=sampler, sample_ids=range(80))
    together = generate(COIN, **shared, verifier=rules)
    for place, rule in enumerate(rules):
        single_run = generate(
            COIN,
            **settings(prompts=[[0]], sampler=sampler, sample_ids=range(20 * place, 20 * place + 20)),
            verifier=rule or (lambda prefix: True),
        )
        of_prompt = together[together.prompt == place]
        assert of_prompt.completions() == single_run.completions()
        assert torch.equal(of_prompt.accepted, single_run.accepted)
        assert torch.equal(of_prompt.log_weight, single_run.log_weight)


def test_a_tree_that_ignores_verifiers_is_detected(monkeypatch):
    """With one root for both verifiers, the verdicts of the first apply to the second."""
    root = NodeTree._root
    monkeypatch.setattr(NodeTree, "_root", lambda tree, one: root(tree, Root(one.prompt)))
    with pytest.raises((AssertionError, KeyError)):
        test_prompts_with_separate_verifiers_have_the_same_samples_as_single_prompts(
            Backtracking(quota=2, stride=1)
        )


def test_token_log_probabilities_equal_those_of_the_oracle():
    samples = generate(
        COIN, **settings(sampler=Backtracking(quota=2, stride=1), verifier=no_pair), token_log_probs=True
    )
    assert samples.token_log_probs is not None
    assert torch.allclose(samples.token_log_probs.sum(1), samples.log_prob)
    for sample in samples:
        assert sample.token_log_probs == pytest.approx(
            [math.log((0.5, 0.3, 0.2)[token]) for token in sample.tokens]
        )
    assert generate(COIN, **settings()).token_log_probs is None


def test_a_raised_error_rejects_the_sequence():
    def rule(prefix: tuple[int, ...]) -> bool:
        if prefix[-2:] == (1, 1):
            raise LookupError("twice")
        return True

    def without_repeated_ones(prefix: tuple[int, ...]) -> bool:
        return prefix[-2:] != (1, 1)

    for sampler in (MaskedDecoding(), TokenwiseRejection(), Backtracking(quota=1, stride=1)):
        options = settings(sampler=sampler)
        samples = generate(COIN, **options, verifier=rule, on_error="reject")
        expected = generate(COIN, **options, verifier=without_repeated_ones)
        assert samples.completions() == expected.completions()
        assert torch.equal(samples.accepted, expected.accepted)
    judged = generate(COIN, **settings(), verifier=rule, on_error="reject")
    assert not bool(judged.accepted.all())
    for sample in judged:
        assert sample.accepted == (sample.error is None)
        assert sample.accepted or "it raised LookupError: twice (" in sample.error
    with pytest.raises(InputError, match=r"it raised LookupError: twice \(.*test_stream.py:\d+\)"):
        generate(COIN, **settings(), verifier=rule)


def broken(prefix: tuple[int, ...]) -> bool:
    raise LookupError("broken")


def test_an_error_belongs_to_the_sample_of_the_verifier_that_raised_it():
    def refuses(prefix: tuple[int, ...]) -> bool:
        return False

    for sampler in (None, MaskedDecoding()):
        samples = generate(
            COIN,
            **settings(prompts=[[0], [0]], max_new_tokens=1, sampler=sampler),
            verifier=[broken, refuses],
            on_error="reject",
        )
        assert {(sample.prompt, sample.error is None) for sample in samples} == {(0, False), (1, True)}


def test_errors_about_continuations_are_reported_for_failed_samples():
    def rule(prefix: tuple[int, ...]) -> bool:
        if prefix == (0, 1, 1):
            raise LookupError("this one")
        return len(prefix) < 3

    options = settings(prompts=[[0]], max_new_tokens=2, verifier=rule, on_error="reject")
    for sample in generate(COIN, **options, sampler=MaskedDecoding()):
        assert sample.stopped == "failed"
        if sample.tokens == (1,):
            assert sample.error.startswith("1 continuation raised: verifier rule=(0, 1, 1): it raised ")
        else:
            assert sample.error is None
