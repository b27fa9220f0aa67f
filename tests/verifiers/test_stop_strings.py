"""Verifiers of text under stop strings: what comes before the first one is judged, by masks and by values alike."""

from itertools import product

import pytest
import torch

from samplers.small_languages import LETTERS, Language, tokenization
from trialogue.data.table import Table
from trialogue.errors import InputError
from trialogue.oracles import padded
from trialogue.samplers import MaskedDecoding, TokenwiseRejection, generate
from trialogue.samplers.prefix.batch import Batch, SequenceStop
from trialogue.verifiers import All, TextVerifier, Threshold
from trialogue.verifiers.languages.stop_strings import StopStrings
from trialogue.verifiers.languages.stopped_language import StoppedLanguage
from verifiers.test_grammar import regex, schema, validated

LIMIT = 4


CASES = {
    "a letter": (regex("(ab|c)*a", 3), ("b",)),
    "within the language": (regex("(ab|c)*a", 3), ("bc", "ca")),
    "outside of it": (regex("(ab|c)*a", 3), ("bb",)),
    "long": (regex("c*", 3), ("abab",)),
    "two that overlap": (regex("[ac]*", 3), ("aab", "abc")),
    "one within the other": (regex("a?", 3), ("abc", "b")),
    "anything": (regex(".*", 3), ("ab",)),
    "inside of characters": (regex("(é|ac)*", 3), ("é",)),
    "a character at its end": (regex("a*", 3), ("bé",)),
    "JSON": (schema("choice", {"enum": [1, 12, True]}, ("1", "12", "true")), (":", "}}")),
    "JSON that is validated": (
        validated(
            "but one",
            {"enum": [1, 12, 2, True], "not": {"const": 12}},
            ("1", "2", "12", "true"),
            ("1", "2", "true"),
        ),
        (":", "}}"),
    ),
}
SMALL = [name for name in CASES if not name.startswith("JSON")]


def batch_of(language: Language, stop: tuple[str, ...], sequences: list[tuple[int, ...]]) -> Batch:
    """A batch whose completions are `sequences`, which end where they contain one of `stop`."""
    size, eos, table = language.tokenization.vocab_size, len(language.pieces), language.tokenization
    oracle = Table(lambda prefix: [1.0] * size, size, eos=eos)
    tokens, lengths = padded(sequences, LIMIT)
    start = torch.zeros_like(lengths)
    batch = Batch(
        oracle,
        len(sequences),
        LIMIT,
        stop=lambda completion: any(one.encode() in table.bytes(completion) for one in stop),
    )
    batch.add(tokens, lengths, start, start + LIMIT)
    return batch


def right(language: Language, stop: tuple[str, ...], tokens: tuple[int, ...]) -> bool | None:
    """Whether a complete completion is in the language up to its first stop string; None where it is not complete."""
    eos = len(language.pieces)
    own = tokens[:-1] if tokens[-1:] == (eos,) else tokens
    data = b"".join(language.pieces[token] if token < eos else b"" for token in own)
    places = [data.find(one.encode()) for one in stop if one.encode() in data]
    if any(token >= eos for token in own):
        return False
    if places:
        return language.member(data[: min(places)])
    return language.member(data) if own != tokens or len(own) >= LIMIT else None


def growing(language: Language, stop: tuple[str, ...], limit: int = LIMIT) -> list[tuple[int, ...]]:
    """Every completion that is not complete, without tokens that stand for nothing."""
    tokens = range(len(language.pieces))
    every = [prefix for size in range(limit) for prefix in product(tokens, repeat=size)]
    return [prefix for prefix in every if right(language, stop, prefix) is None]


def mistakes(language: Language, stop: tuple[str, ...], verifier: object, limit: int) -> dict[str, int]:
    """How often `verifier` errs on children of the prefixes shorter than `limit`, by what is wrong."""
    inner, vocab = growing(language, stop, limit), language.tokenization.vocab_size
    batch, rows = batch_of(language, stop, inner), torch.arange(len(inner))
    leaves = batch.peek(torch.arange(vocab).repeat(len(inner)), rows.repeat_interleave(vocab))
    values = (verifier.values(leaves, torch.arange(len(leaves.lengths))) > 0).view(-1, vocab)
    viable = dict(zip(inner, (verifier.values(batch, rows) > 0).tolist(), strict=True))
    children = verifier.children(batch, rows)
    complete = [[right(language, stop, (*prefix, token)) for token in range(vocab)] for prefix in inner]
    verdicts = [
        (verdict, value)
        for several, own in zip(complete, values.tolist(), strict=True)
        for verdict, value in zip(several, own, strict=True)
        if verdict is not None
    ]
    # What can still be completed to a text of the language is never refused on the way.
    lost = sum(
        not viable[prefix[:size]]
        for prefix, several in zip(inner, complete, strict=True)
        if any(several)
        for size in range(len(prefix) + 1)
    )
    # What is not refused begins a text of the language, or ends in the beginning of a stop string.
    beginnings = tuple(one.encode()[:size] for one in stop for size in range(1, len(one.encode())))
    texts = {prefix: b"".join(language.pieces[token] for token in prefix) for prefix in inner}
    loose = sum(
        viable[prefix] and not (language.viable(text) or text.endswith(beginnings))
        for prefix, text in texts.items()
    )
    # A mask of children that follow a refused prefix means nothing.
    asked = torch.tensor([viable[prefix] for prefix in inner])
    return {
        "membership": sum(verdict != value for verdict, value in verdicts),
        "lost": lost,
        "loose": loose,
        "mask": 0 if children is None else int(((children > 0) != values)[asked].sum()),
    }


NOTHING = {"membership": 0, "lost": 0, "loose": 0, "mask": 0}


@pytest.mark.parametrize("case", CASES)
def test_a_grammar_judges_what_comes_before_the_stop_string(case: str) -> None:
    language, stop = CASES[case]
    verifier = language.build(language.tokenization).up_to(stop)
    assert mistakes(language, stop, verifier, LIMIT if case in SMALL else 3) == NOTHING


@pytest.mark.parametrize("case", [name for name in SMALL if name != "anything"])
def test_a_function_of_whole_texts_judges_what_comes_before_the_stop_string(case: str) -> None:
    language, stop = CASES[case]
    verifier = TextVerifier(language.contains, language.tokenization, whole=True).up_to(stop)
    inner, vocab = growing(language, stop, 3), len(language.pieces) + 1
    batch = batch_of(language, stop, inner)
    rows = torch.arange(len(inner)).repeat_interleave(vocab)
    leaves = batch.peek(torch.arange(vocab).repeat(len(inner)), rows)
    values = verifier.values(leaves, torch.arange(len(rows))).view(-1, vocab).tolist()
    judged = 0
    for prefix, own in zip(inner, values, strict=True):
        for token, value in enumerate(own):
            verdict = right(language, stop, (*prefix, token))
            judged += verdict is not None
            assert value == (1.0 if verdict is None else verdict)
    assert judged > 50


def test_the_end_of_a_prefix_is_held_back_where_it_may_belong_to_a_stop_string() -> None:
    seen: list[str] = []
    letters = tokenization(LETTERS)
    rule = TextVerifier(lambda text: seen.append(text) or True, letters, "sequence").up_to(["bc", "é"])
    language = CASES["anything"][0]
    # Prompt ab, then: nothing; a; ab; a and half of é; abc; c.
    sequences = [(3,), (3, 0), (3, 3), (3, 0, 4), (3, 0, 7), (3, 2)]
    tokens, lengths = padded(sequences, LIMIT)
    start = torch.ones_like(lengths)
    batch = batch_of(language, ("bc", "é"), [()] * 6)
    batch.select(torch.zeros(0, dtype=torch.int64))
    batch.add(tokens, lengths, start, start + 3)
    rule.values(batch, torch.arange(6))
    # The b of the prompt is no part of a stop string.
    assert seen == ["ab", "aba", "aba", "aba", "aba", "abc"]


MUTANTS = {
    "stop strings are text": ("within the language", "mask", None, None),
    "nothing is pending": ("long", "lost", StopStrings, ("pending", lambda self, data: [])),
    "masks know of no stop string": (
        "within the language",
        "mask",
        StoppedLanguage,
        ("correct", lambda *_: None),
    ),
    "values know of no stop string": (
        "within the language",
        "membership",
        StoppedLanguage,
        ("verdict", lambda *_: None),
    ),
    "what was held is forgotten": ("long", "mask", StopStrings, ("held", lambda self, data: b"")),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mistakes_of_mutants_are_seen(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case, kind, owner, change = MUTANTS[mutant]
    language, stop = CASES[case]
    verifier = language.build(language.tokenization)
    if owner is not None:
        verifier = verifier.up_to(stop)
        monkeypatch.setattr(owner, *change)
    assert mistakes(language, stop, verifier, LIMIT)[kind] > 0


def test_samplers_accept_what_is_right_before_the_stop_string() -> None:
    language, stop = CASES["within the language"]
    size, eos = language.tokenization.vocab_size, len(language.pieces)
    oracle = Table(
        lambda prefix: [1.0] * (eos + 1) + [0.0] * (size - eos - 1), size, eos=eos, max_length=LIMIT
    )
    oracle.tokenization = language.tokenization
    # `generate` passes the stop strings on to verifiers within other verifiers too.
    verifier = All(Threshold(language.build(language.tokenization), 0.5), lambda x: True)
    settings = {"stop": stop, "num_samples": 300, "max_queries": 400}
    for sampler in (MaskedDecoding(), TokenwiseRejection()):
        samples = generate(oracle, sampler=sampler, verifier=verifier, **settings)
        accepted = [one for one, good in zip(samples, samples.accepted.tolist(), strict=True) if good]
        assert accepted
        assert all(right(language, stop, one.tokens) and language.contains(one.text) for one in accepted)


def test_stops_that_are_neither_strings_nor_functions_are_refused() -> None:
    oracle = Table(lambda prefix: [1.0, 1.0], 2, max_length=3)
    oracle.tokenization = tokenization(LETTERS)
    for stop in ("", [], ["a", ""], [3]):
        with pytest.raises(InputError, match="pass one or more non-empty strings"):
            CASES["anything"][0].build(oracle.tokenization).up_to(stop)
    for stops in ([3], [None, "a"]):
        with pytest.raises(InputError, match="give strings, or functions"):
            generate(oracle, stop=stops)


def test_strings_and_functions_stop_together() -> None:
    table = tokenization(LETTERS)
    size = table.vocab_size
    oracle = Table(lambda prefix: [1.0] * size, size, max_length=9)
    oracle.tokenization = table
    prompts = [[0], [1, 1]]
    even = SequenceStop(lambda sequence, start: len(sequence) > start and sum(sequence) % 7 == 0)
    long = generate(oracle, prompts, num_samples=50).completions()
    samples = generate(
        oracle, prompts, num_samples=50, stop=["b", even, lambda completion: len(completion) == 5]
    )

    def over(prompt: list[int], completion: tuple[int, ...]) -> bool:
        text, total = table.bytes(completion), sum(prompt) + sum(completion)
        return b"b" in text or len(completion) == 5 or bool(completion and total % 7 == 0)

    for place, whole, found in zip(samples.prompt.tolist(), long, samples.completions(), strict=True):
        lengths = (length for length in range(len(whole) + 1) if over(prompts[place], whole[:length]))
        assert found == whole[: next(lengths)]
    assert {len(completion) for completion in samples.completions()} == {1, 2, 3, 4, 5}
    assert not any("b" in text for text in samples.texts())
