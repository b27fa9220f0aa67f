"""Verifiers with stop strings judge the text before the first stop string, in values and in masks."""

from itertools import product

import pytest
import torch

import batches
from refusals import expect_error
from samplers.small_languages import LETTERS, Language, tokenization
from trialogue.data.table import Table
from trialogue.errors import InputError
from trialogue.samplers import MaskedDecoding, TokenwiseRejection, generate
from trialogue.samplers.prefix.batch import Batch, SequenceStop
from trialogue.verifiers import All, TextVerifier, Threshold
from verifiers.test_grammar import regex, schema, uniform_oracle, validated

LIMIT = 4


CASES = {
    "a letter": (regex("(ab|c)*a", 3), ("b",)),
    "within the language": (regex("(ab|c)*a", 3), ("bc", "ca")),
    "outside the language": (regex("(ab|c)*a", 3), ("bb",)),
    "long": (regex("c*", 3), ("abab",)),
    "two that overlap": (regex("[ac]*", 3), ("aab", "abc")),
    "one within another": (regex("a?", 3), ("abc", "b")),
    "any text": (regex(".*", 3), ("ab",)),
    "within characters": (regex("(é|ac)*", 3), ("é",)),
    "a character at its end": (regex("a*", 3), ("bé",)),
    "JSON": (schema("choice", {"enum": [1, 12, True]}, ("1", "12", "true")), (":", "}}")),
    "JSON that is validated": (
        validated(
            "all but one",
            {"enum": [1, 12, 2, True], "not": {"const": 12}},
            ("1", "2", "12", "true"),
            ("1", "2", "true"),
        ),
        (":", "}}"),
    ),
}
SMALL = [name for name in CASES if not name.startswith("JSON")]


def batch_of(language: Language, stop: tuple[str, ...], sequences, start: int = 0) -> Batch:
    """Return a batch with the completions `sequences`, which are complete if they contain a string of `stop`."""

    def is_stopped(completion: tuple[int, ...]) -> bool:
        return any(one.encode() in language.tokenization.bytes(completion) for one in stop)

    return batches.batch_of(uniform_oracle(language), sequences, LIMIT, start, stop=is_stopped)


def is_valid(language: Language, stop: tuple[str, ...], tokens: tuple[int, ...]) -> bool | None:
    """Return whether the text before the first stop string is in the language, or None if `tokens` are incomplete."""
    eos = len(language.pieces)
    own = tokens[:-1] if tokens[-1:] == (eos,) else tokens
    data = b"".join(language.pieces[token] if token < eos else b"" for token in own)
    positions = [data.find(one.encode()) for one in stop if one.encode() in data]
    if any(token >= eos for token in own):
        return False
    if positions:
        return language.member(data[: min(positions)])
    return language.member(data) if own != tokens or len(own) >= LIMIT else None


def incomplete_completions(
    language: Language, stop: tuple[str, ...], limit: int = LIMIT
) -> list[tuple[int, ...]]:
    """Return every incomplete completion of tokens that have a text."""
    tokens = range(len(language.pieces))
    every = [prefix for size in range(limit) for prefix in product(tokens, repeat=size)]
    return [prefix for prefix in every if is_valid(language, stop, prefix) is None]


def mistakes(language: Language, stop: tuple[str, ...], verifier: object, limit: int) -> dict[str, int]:
    """Count the mistakes of `verifier` on children of the prefixes shorter than `limit`, by kind of mistake."""
    inner, vocab = incomplete_completions(language, stop, limit), language.tokenization.vocab_size
    batch, rows = batch_of(language, stop, inner), torch.arange(len(inner))
    leaves = batch.peek(torch.arange(vocab).repeat(len(inner)), rows.repeat_interleave(vocab))
    values = (verifier.values(leaves, torch.arange(len(leaves.lengths))) > 0).view(-1, vocab)
    viable = dict(zip(inner, (verifier.values(batch, rows) > 0).tolist(), strict=True))
    children = verifier.children(batch, rows)
    complete = [[is_valid(language, stop, (*prefix, token)) for token in range(vocab)] for prefix in inner]
    verdicts = [
        (verdict, value)
        for per_token, own in zip(complete, values.tolist(), strict=True)
        for verdict, value in zip(per_token, own, strict=True)
        if verdict is not None
    ]
    # A prefix of a valid completion must not be rejected.
    wrongly_rejected = sum(
        not viable[prefix[:size]]
        for prefix, per_token in zip(inner, complete, strict=True)
        if any(per_token)
        for size in range(len(prefix) + 1)
    )
    # An accepted prefix starts a text of the language or ends with the start of a stop string.
    starts = tuple(one.encode()[:size] for one in stop for size in range(1, len(one.encode())))
    texts = {prefix: b"".join(language.pieces[token] for token in prefix) for prefix in inner}
    wrongly_accepted = sum(
        viable[prefix] and not (language.viable(text) or text.endswith(starts))
        for prefix, text in texts.items()
    )
    # The mask after a rejected prefix is not used.
    used = torch.tensor([viable[prefix] for prefix in inner])
    return {
        "membership": sum(verdict != value for verdict, value in verdicts),
        "wrongly rejected": wrongly_rejected,
        "wrongly accepted": wrongly_accepted,
        "mask": 0 if children is None else int(((children > 0) != values)[used].sum()),
    }


NO_MISTAKES = {"membership": 0, "wrongly rejected": 0, "wrongly accepted": 0, "mask": 0}


@pytest.mark.parametrize("case", CASES)
def test_a_grammar_judges_the_text_before_the_stop_string(case):
    language, stop = CASES[case]
    verifier = language.build(language.tokenization).up_to(stop)
    assert mistakes(language, stop, verifier, LIMIT if case in SMALL else 3) == NO_MISTAKES


@pytest.mark.parametrize("case", [name for name in SMALL if name != "any text"])
def test_a_function_of_complete_texts_judges_the_text_before_the_stop_string(case):
    language, stop = CASES[case]
    verifier = TextVerifier(language.contains, language.tokenization, whole=True).up_to(stop)
    inner, vocab = incomplete_completions(language, stop, 3), len(language.pieces) + 1
    batch = batch_of(language, stop, inner)
    rows = torch.arange(len(inner)).repeat_interleave(vocab)
    leaves = batch.peek(torch.arange(vocab).repeat(len(inner)), rows)
    values = verifier.values(leaves, torch.arange(len(rows))).view(-1, vocab).tolist()
    judged = 0
    for prefix, own in zip(inner, values, strict=True):
        for token, value in enumerate(own):
            verdict = is_valid(language, stop, (*prefix, token))
            judged += verdict is not None
            assert value == (1.0 if verdict is None else verdict)
    assert judged > 50


def test_text_that_may_start_a_stop_string_is_withheld():
    seen: list[str] = []
    letters = tokenization(LETTERS)
    verifier = TextVerifier(lambda text: seen.append(text) or True, letters, "sequence").up_to(["bc", "é"])
    language = CASES["any text"][0]
    # The prompt is "ab". The completions are "", "a", "ab", "a" and "ab" with half of "é", "abc" and "c".
    sequences = [(3,), (3, 0), (3, 3), (3, 0, 4), (3, 3, 4), (3, 0, 7), (3, 2)]
    # The last sequence ends with half of "é".
    sequences.append((3, 3, 4, len(language.pieces)))
    verifier.values(batch_of(language, ("bc", "é"), sequences, start=1), torch.arange(8))
    # The "b" of the prompt is not part of a stop string.
    assert seen == ["ab", "aba", "aba", "aba", "aba", "aba", "abc", "abab\N{REPLACEMENT CHARACTER}"]


def test_samplers_accept_completions_with_a_valid_text_before_the_stop_string():
    language, stop = CASES["within the language"]
    size, eos = language.tokenization.vocab_size, len(language.pieces)
    oracle = Table(
        lambda prefix: [1.0] * (eos + 1) + [0.0] * (size - eos - 1), size, eos=eos, max_length=LIMIT
    )
    oracle.tokenization = language.tokenization
    # `generate` also passes the stop strings to nested verifiers.
    verifier = All(Threshold(language.build(language.tokenization), 0.5), lambda x: True)
    settings = {"stop": stop, "num_samples": 300, "max_queries": 400}
    for sampler in (MaskedDecoding(), TokenwiseRejection()):
        samples = generate(oracle, sampler=sampler, verifier=verifier, **settings)
        accepted = [one for one, good in zip(samples, samples.accepted.tolist(), strict=True) if good]
        assert accepted
        assert all(is_valid(language, stop, one.tokens) and language.contains(one.text) for one in accepted)


def test_stops_that_are_neither_strings_nor_functions_are_rejected():
    oracle = Table(lambda prefix: [1.0, 1.0], 2, max_length=3)
    oracle.tokenization = tokenization(LETTERS)
    for stop in ("", [], ["a", ""], [3]):
        with pytest.raises(InputError, match="pass one or more non-empty strings"):
            CASES["any text"][0].build(oracle.tokenization).up_to(stop)
    for stops in ([3], [None, "a"]):
        expect_error("give strings, or functions", generate, oracle, stop=stops)


def test_strings_and_functions_can_be_combined():
    table = tokenization(LETTERS)
    size = table.vocab_size
    oracle = Table(lambda prefix: [1.0] * size, size, max_length=9)
    oracle.tokenization = table
    prompts = [[0], [1, 1]]
    even = SequenceStop(lambda sequence, start: len(sequence) > start and sum(sequence) % 7 == 0)
    unstopped = generate(oracle, prompts, num_samples=50).completions()
    samples = generate(
        oracle, prompts, num_samples=50, stop=["b", even, lambda completion: len(completion) == 5]
    )

    def is_stopped(prompt: list[int], completion: tuple[int, ...]) -> bool:
        text, total = table.bytes(completion), sum(prompt) + sum(completion)
        return b"b" in text or len(completion) == 5 or bool(completion and total % 7 == 0)

    for place, whole, found in zip(samples.prompt.tolist(), unstopped, samples.completions(), strict=True):
        lengths = (length for length in range(len(whole) + 1) if is_stopped(prompts[place], whole[:length]))
        assert found == whole[: next(lengths)]
    assert {len(completion) for completion in samples.completions()} == {1, 2, 3, 4, 5}
    assert not any("b" in text for text in samples.texts())
