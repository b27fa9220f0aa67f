"""Requests that join an open run: each result equals the result of the request alone."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from operator import attrgetter
from typing import Any

import pytest

from models.tiny_pretrained import tiny_oracle
from refusals import expect_error
from trialogue import generate, truncated
from trialogue.data import Table
from trialogue.randomness import numpy_generator
from trialogue.samplers import (
    Ancestral,
    Backtracking,
    BestOfN,
    BlockBestOfN,
    MaskedDecoding,
    OpenRun,
    Rejection,
    Samples,
    SequentialMonteCarlo,
    Terms,
    TokenwiseRejection,
    ValueGuided,
    WeightedRejection,
)
from trialogue.samplers.prefix.engine import running
from trialogue.verifiers import FunctionVerifier, GrammarVerifier


def distribution(prefix: tuple[int, ...]) -> tuple[float, ...]:
    """Return the weights of six tokens, of which 5 is the end of sequence, given the last two tokens."""
    draw = numpy_generator(7, "law", *prefix)
    return (*(draw.dirichlet([0.6] * 5) * 0.9), 0.1)


ORACLE = Table(distribution, vocab_size=6, eos=5, max_length=12, memory=2)


def no_pair(prefix: tuple[int, ...]) -> bool:
    return all(a != b for a, b in pairwise(prefix))


def at_most_one_zero(prefix: tuple[int, ...]) -> bool:
    return prefix.count(0) < 2


def weight(prefix: tuple[int, ...]) -> float:
    return (1 + prefix.count(1)) / 20


VERIFIERS = [
    *(FunctionVerifier(one) for one in (no_pair, at_most_one_zero, weight)),
    FunctionVerifier(at_most_one_zero, whole=True),
]
TRUNCATIONS: list[dict[str, Any]] = [
    {},
    {"temperature": 0.7},
    {"top_p": 0.8},
    {"temperature": 1.6, "top_k": 3},
    {"min_p": 0.1},
]


class RandomRequest:
    """A random request, with the result of `generate` for the request alone."""

    def __init__(self, number: int, sampler: Any) -> None:
        draw = numpy_generator(number, "request")
        self.prompt = draw.integers(0, 5, draw.integers(0, 4)).tolist()
        self.sampler = sampler
        self.settings: dict[str, Any] = {
            "num_samples": int(draw.integers(1, 4)),
            "seed": int(draw.integers(0, 3)),
            "max_steps": 200,
            "token_log_probs": True,
        }
        verifier = None if sampler.uses == "nothing" and draw.random() < 0.5 else VERIFIERS[draw.integers(4)]
        max_new_tokens = int(draw.integers(2, 9))
        self.truncation = TRUNCATIONS[draw.integers(len(TRUNCATIONS))]
        self.terms = Terms(verifier, max_new_tokens, **self.truncation)
        self.settings["max_queries"] = None if draw.random() < 0.8 else int(draw.integers(1, 9))

    def alone(self) -> Samples:
        oracle, verifier = truncated(ORACLE, **self.truncation), self.terms.verifier
        own = {"sampler": self.sampler, "verifier": verifier, "max_new_tokens": self.terms.max_new_tokens}
        return generate(oracle, [self.prompt], **own, **self.settings)

    def join(self, run: OpenRun) -> Any:
        return run.submit(self.prompt, self.terms, **self.settings)


FIELDS = attrgetter("index", "tokens", "accepted", "stopped", "log_prob", "log_weight", "queries")


def comparable(samples: Samples) -> list[tuple[object, ...]]:
    """Return the fields of the samples that must not depend on other requests."""
    return [(*FIELDS(sample), tuple(sample.token_log_probs or ())) for sample in samples]


def results_of(
    run: OpenRun, requests: list[RandomRequest], leave: Callable[[int], bool] = lambda _: False
) -> Iterator[Any]:
    """Submit the requests a few steps apart, withdraw those for which `leave` is true, and yield the results."""
    draw, waiting = numpy_generator(5, "arrivals"), list(enumerate(requests))
    joined: dict[Any, int] = {}
    found: dict[int, list[tuple[object, ...]]] = {}
    while waiting or run.busy:
        while waiting and (not run.busy or draw.random() < 0.4):
            number, one = waiting.pop(0)
            joined[one.join(run)] = number
        for submission, samples in run.step():
            found.setdefault(joined[submission], []).extend(comparable(samples))
        for submission, number in list(joined.items()):
            if leave(number) and draw.random() < 0.3:
                run.withdraw(submission)
                del joined[submission]
    for number, one in enumerate(requests):
        yield number, one, sorted(found.get(number, []))


SAMPLERS = [
    Ancestral(),
    Rejection(),
    TokenwiseRejection(),
    MaskedDecoding(),
    MaskedDecoding(mask_first=False),
    WeightedRejection(),
    Backtracking(2, 2),
    SequentialMonteCarlo(3),
    SequentialMonteCarlo(3, proposal="mask"),
    BestOfN(2),
    BlockBestOfN(2, delimiters=(2,)),
    ValueGuided(),
    ValueGuided(candidates=3),
]


def count_differences(sampler: Any, requests: int = 8) -> int:
    """Return how many requests have a different result than alone."""
    requests = [RandomRequest(number, sampler) for number in range(requests)]
    run = OpenRun(ORACLE, sampler, batch_size=7)
    return sum(found != sorted(comparable(one.alone())) for _, one, found in results_of(run, requests))


@pytest.mark.parametrize("sampler", SAMPLERS, ids=repr)
def test_requests_have_the_same_results_as_single_requests(sampler):
    assert count_differences(sampler) == 0


@pytest.mark.parametrize(
    "forgotten", [("max_new_tokens",), ("temperature", "top_p", "top_k", "min_p"), ("verifier",)]
)
def test_the_check_rejects_different_terms_that_compare_equal(forgotten):
    class EqualTerms(Terms):
        def __eq__(self, other: object) -> bool:
            mine, theirs = dict(vars(self)), dict(vars(other))
            unseen = dict.fromkeys(forgotten)
            return mine | unseen == theirs | unseen

        def __hash__(self) -> int:
            return 0

    # The value of a complete sequence and the value of the same tokens as a prefix are cached separately.
    sampler = TokenwiseRejection()
    requests = [RandomRequest(number, sampler) for number in range(40)]
    for one in requests:
        one.terms = EqualTerms(**vars(one.terms))
        one.prompt = one.prompt[:1]
    assert any(
        found != sorted(comparable(one.alone()))
        for _, one, found in results_of(OpenRun(ORACLE, sampler), requests)
    )


def test_a_withdrawn_request_does_not_affect_the_others():
    for sampler in (MaskedDecoding(), SequentialMonteCarlo(3)):
        requests = [RandomRequest(number, sampler) for number in range(9)]
        run = OpenRun(ORACLE, sampler, batch_size=7)
        for number, one, found in results_of(run, requests, leave=lambda number: number % 3 == 0):
            alone = sorted(comparable(one.alone()))
            assert found == alone if number % 3 else set(found) <= set(alone)
        assert not run.busy
        assert not run._settings
        assert not run._running.requests
        assert not run._truncations


def test_finished_requests_leave_no_state():
    run = OpenRun(ORACLE, MaskedDecoding(), batch_size=8)
    sizes = []
    for _ in range(3):
        for number in range(12):
            RandomRequest(number, run.sampler).join(run)
        while run.busy:
            run.step()
        sizes.append(run._running._groups.batch.shared.tree.size)
        assert not run._running.requests
        assert not run._verifier._verifiers
    assert max(sizes) <= 2048


def test_each_request_has_separate_stop_strings_and_parsers():
    oracle = tiny_oracle()
    number = GrammarVerifier.json_schema({"type": "integer"}, oracle.tokenization)
    word = GrammarVerifier.regex("[a-c]+", oracle.tokenization)
    prompt = oracle.tokenization.encode("the cat")
    terms = [
        Terms(number, 6),
        Terms(word, 6, temperature=0.8),
        Terms(word, 6, stop=("b",)),
        Terms(word, 4, top_p=0.7),
    ]
    run = OpenRun(oracle, MaskedDecoding(), batch_size=8, capacity=64)
    submissions = {run.submit(prompt, one, num_samples=3, seed=2): one for one in terms}
    found: dict[Terms, list[Any]] = {one: [] for one in terms}
    while run.busy:
        for submission, samples in run.step():
            found[submissions[submission]] += list(samples)
    for one in terms:
        alone = generate(
            truncated(oracle, one.temperature, one.top_p),
            [prompt],
            sampler=MaskedDecoding(),
            verifier=one.verifier,
            max_new_tokens=one.max_new_tokens,
            stop=list(one.stop) or None,
            num_samples=3,
            seed=2,
        )
        drawn = sorted(found[one], key=lambda sample: sample.index)
        assert [sample.text for sample in drawn] == alone.texts()
        assert [sample.accepted for sample in drawn] == alone.accepted.tolist()
    assert all(isinstance(sample.parsed, int) for sample in found[terms[0]] if sample.accepted)
    assert all("b" not in sample.text for sample in found[terms[2]])


@pytest.mark.parametrize(
    ("submit", "field"),
    [
        (lambda run: run.submit([9]), "prompts[0][0]"),
        (lambda run: run.submit([0] * 13), "prompts"),
        (lambda run: run.submit([0], max_queries=0), "max_queries"),
        (lambda run: run.submit([0], sample_ids=[1, 1], num_samples=2), "sample_ids"),
        (lambda run: run.submit([0], Terms(max_new_tokens=0)), "max_new_tokens"),
        (lambda run: run.submit([0], Terms(top_p=0.0)), "top_p"),
        (lambda run: run.submit([0], Terms(temperature=-1.0)), "temperature"),
        (lambda run: run.submit([0], Terms(stop=("a",))), "stop"),
        (lambda run: OpenRun(ORACLE, Rejection()).submit([0]), "verifier"),
        (lambda run: OpenRun(truncated(ORACLE, top_p=0.5)), "oracle"),
        (lambda run: OpenRun(Table(distribution, vocab_size=6)), "capacity"),
    ],
)
def test_invalid_requests_are_rejected_and_change_nothing(submit, field):
    run = OpenRun(ORACLE)
    assert expect_error("", submit, run).field == field
    assert not run.busy
    assert not run._running.requests


@pytest.mark.parametrize(("tokens", "steps"), [(7, [2, 2, 1]), (1, [1, 1, 1, 1, 1]), (1000, [5])])
def test_prompts_start_within_a_budget_of_tokens_per_step(tokens, steps, monkeypatch):
    """Requests under way wait for a bounded number of prompt tokens of new requests."""
    monkeypatch.setattr(running, "_ADMIT_TOKENS", tokens)
    run = OpenRun(ORACLE, batch_size=40)
    long = Terms(max_new_tokens=9)
    run.submit([0], long, seed=1)
    run.step()
    prompts = [[one, 1, 2] for one in range(5)]
    submitted = [run.submit(prompt, long, num_samples=3, seed=2) for prompt in prompts]
    started, samples = list[int](), dict[Any, list[Samples]]()
    while run.busy:
        under_way = {one for one in submitted if one.num_admitted}
        for submission, finished in run.step():
            samples.setdefault(submission, []).append(finished)
        started.append(len({one for one in submitted if one.num_admitted} - under_way))
    assert [number for number in started if number] == steps
    for submission, prompt in zip(submitted, prompts, strict=True):
        drawn = generate(ORACLE, [prompt], max_new_tokens=9, num_samples=3, seed=2)
        texts = {one.index: one.tokens for batch in samples[submission] for one in batch}
        assert [texts[place] for place in range(3)] == [one.tokens for one in drawn]
