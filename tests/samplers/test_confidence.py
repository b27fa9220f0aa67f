"""Confidence of the fields of JSON texts, compared with the sum over all token sequences."""

import math
from functools import cache, partial

import pytest
import torch

import trialogue.samplers.confidence as module
from models.tiny_pretrained import tiny_oracle
from refusals import calls_without_expected_error
from trialogue import confidence
from trialogue.data import Table
from trialogue.models.wrappers.spelled import SpelledTokenization
from trialogue.oracles import next_log_probs
from trialogue.randomness import numpy_generator
from trialogue.samplers.confidence import confidence_parts
from trialogue.samplers.truncation import truncated
from trialogue.verifiers import FunctionVerifier, GrammarVerifier
from trialogue.verifiers.languages.language_verifier import Invalid
from trialogue.verifiers.schemas.fields import find_fields, open_field

SPELLINGS = [*'{}":,abk12[] ', '":"', '","', '"a', "ab", "1,", '"}', '","a', "$"]
TOKENS = SpelledTokenization(SPELLINGS, eos=len(SPELLINGS) - 1)
PAIR = {
    "type": "object",
    "properties": {"k": {"enum": ["a", "ab", "ba"]}, "a": {"type": "integer", "minimum": 1, "maximum": 22}},
    "required": ["k", "a"],
    "additionalProperties": False,
}
WORDS = [f'"{word}"' for word in ("a", "ab", "ba")]
NUMBERS = [str(number) for number in range(1, 23)]
TEXT = ["{", '"', "k", '":"', "ab", '","a', '"', ":", "1", "2", "}"]


@cache
def oracle():
    """Return a model with random probabilities that depend on the last two tokens."""
    table = Table(
        lambda prefix: numpy_generator(4, *prefix).random(len(SPELLINGS)) ** 3,
        len(SPELLINGS),
        eos=TOKENS.eos,
        memory=2,
    )
    table.tokenization = TOKENS
    return table


def encode(spellings):
    return [SPELLINGS.index(spelling) for spelling in spellings]


def continuation(tokens, text):
    """Return the probability that the model continues tokens with a text, by summing over all token sequences."""
    probabilities = next_log_probs(oracle(), torch.tensor([tokens])).exp()[0].tolist()
    total = probabilities[TOKENS.eos] if text == "$" else 0.0
    for token, spelling in enumerate(SPELLINGS[:-1]):
        if spelling.startswith(text):
            total += probabilities[token]
        elif text.startswith(spelling):
            total += probabilities[token] * continuation([*tokens, token], text[len(spelling) :])
    return total


def shares(before, opening, values, delimiter):
    masses = [continuation(encode(before), f"{opening}{value}{delimiter}") for value in values]
    return {value: mass / math.fsum(masses) for value, mass in zip(values, masses, strict=True)}


LIST = ["[", '"', "a", '","', "b", '"', "]"]
CASES = {
    "object": (PAIR, TEXT, {"/k": (TEXT[:3], '":', WORDS, ","), "/a": (TEXT[:8], "", NUMBERS, "}")}),
    "list": (
        {"type": "array", "items": {"type": "string", "pattern": "^[ab]{1,2}$"}, "minItems": 2},
        LIST,
        {
            "/0": (LIST[:1], "", [f'"{word}"' for word in ("a", "b", "aa", "ab", "ba", "bb")], ","),
            "/1": (LIST[:3], '",', [f'"{word}"' for word in ("a", "b", "aa", "ab", "ba", "bb")], "]"),
        },
    ),
    "end": ({"enum": ["a", "ab", 1, 12]}, ['"a', '"', "$"], {"": ([","], "", [*WORDS[:2], "1", "12"], "$")}),
}


@pytest.mark.parametrize("name", CASES)
def test_alternatives_are_sums_over_all_tokenizations(name, monkeypatch):
    monkeypatch.setattr(module, "_TOLERANCE", 0.0)
    schema, text, fields = CASES[name]
    verifier = GrammarVerifier.json_schema(schema, TOKENS)
    for model in (oracle(), truncated(oracle(), temperature=0.5, top_k=3)):
        found = confidence(model, encode([","]), encode(text), verifier)
        assert list(found) == list(fields)
        for pointer, (before, opening, values, delimiter) in fields.items():
            before = before if name == "end" else [",", *before]
            expected = shares(before, opening, values, delimiter)
            assert found[pointer].alternatives == pytest.approx(expected, rel=1e-9)
            assert found[pointer].probability in found[pointer].alternatives.values()
            assert (found[pointer].standard_error, found[pointer].redraws) == (0, 0)


@pytest.mark.parametrize("name", CASES)
def test_redraws_estimate_the_same_probability(name, monkeypatch):
    schema, text, fields = CASES[name]
    verifier = GrammarVerifier.json_schema(schema, TOKENS)
    exact = confidence(oracle(), encode([","]), encode(text), verifier)
    monkeypatch.setattr(module, "_MOST_VALUES", 0)
    monkeypatch.setattr(module, "_TOLERANCE_OF_ESTIMATES", 0.0)
    found = confidence(oracle(), encode([","]), encode(text), verifier, redraws=400, seed=3)
    for pointer in fields:
        estimate, error = found[pointer].probability, found[pointer].standard_error
        assert 0 < error < 0.15
        assert abs(estimate - exact[pointer].probability) < 3.5 * error
        assert (found[pointer].redraws, found[pointer].alternatives) == (400, None)


def test_first_token_has_another_probability():
    # After "y", 1 of 10 continuations is not "yes". After "n", 7 of 10 are not "no".
    names = ['"', "y", "n", "es", "o", "x", "$"]
    rows = {"y": {"es": 0.9, "x": 0.1}, "n": {"o": 0.3, "x": 0.7}, "es": {'"': 1.0}, "o": {'"': 1.0}}
    rows |= {"x": {"x": 1.0}, "$": {'"': 1.0}}

    def distribution(prefix):
        row = rows.get(names[prefix[-1]], {"y": 0.73, "n": 0.27} if len(prefix) == 2 else {"$": 1.0})
        return [row.get(name, 0.0) for name in names]

    tokens = SpelledTokenization(names, eos=6)
    model = Table(distribution, len(names), eos=6)
    model.tokenization = tokens
    verifier = GrammarVerifier.json_schema({"enum": ["yes", "no"]}, tokens)
    found = confidence(model, [6], '"yes"', verifier)[""]
    assert found.probability == pytest.approx(0.73 * 0.9 / (0.73 * 0.9 + 0.27 * 0.3))
    assert round(found.probability, 2) == 0.89


def test_fields_of_a_text():
    text = ' {"a/b~": [1, "x,]", {}], "\\u00e9": {"é": true , "": null}} '.encode()
    found = {one.pointer: (text[one.start : one.stop], text[one.stop : one.end]) for one in find_fields(text)}
    assert found == {
        "/a~1b~0/0": (b"1", b","),
        "/a~1b~0/1": (b'"x,]"', b","),
        "/é/é": (b"true", b" ,"),
        "/é/": (b"null", b"}"),
    }
    assert find_fields(b" {} ") == []
    assert [tuple(one) for one in find_fields(b"-1.5e3")] == [("", 0, 6, 6)]
    for broken in (b"", b"{", b'{"a":1,}', b"[1 2]", b"nul", b'"\xff"', b"[" * 100_000):
        with pytest.raises(Invalid):
            find_fields(broken)


def test_unfinished_field_of_a_text():
    for begun, pointer in {
        "": None,
        "12": None,
        '{"a": 1': "/a",
        '{"a": {"b/": [1, "x,]", {"c': "/a/b~1/2/",
        '{"a": {"b": ["x,", ': "/a/b/1",
        '{"a": {"b": 1}, "c": "d': "/c",
        "{}": None,
    }.items():
        assert open_field(begun) == pointer


def test_pretrained_models(monkeypatch):
    monkeypatch.setattr(module, "_TOLERANCE", 1e-6)
    model = tiny_oracle()
    verifier = GrammarVerifier.json_schema(PAIR, model.tokenization, whitespace="flexible")
    text = '{"k": "ab",\n "a": 21 }'
    found = confidence(model, "the cat", text, verifier)
    uncached = confidence(tiny_oracle(recompute=True), "the cat", text, verifier)
    again = confidence(
        model, model.tokenization.encode("the cat"), model.tokenization.encode_completion(text), verifier
    )
    for pointer, field in found.items():
        assert math.fsum(field.alternatives.values()) == pytest.approx(1)
        assert field.alternatives == pytest.approx(uncached[pointer].alternatives, rel=1e-4)
        assert again[pointer].probability == pytest.approx(field.probability, rel=1e-3)


def test_parts_take_one_forward_pass_each():
    """Between two parts, a server can advance other requests."""
    model, passes = tiny_oracle(), []
    model.model.get_input_embeddings().register_forward_hook(lambda *_: passes.append(1))
    schema = {"type": "array", "items": {"type": "string", "pattern": "^(a|ab|[x-z]{6})$"}}
    verifier = GrammarVerifier.json_schema(schema, model.tokenization)
    parts, passes_of_parts = confidence_parts(model, "the cat", '["ab","a"]', verifier, redraws=4), []
    with torch.inference_mode():
        for _ in parts:
            passes_of_parts.append(len(passes))
            passes.clear()
    assert sum(passes_of_parts) > 10
    assert max(passes_of_parts) == 1


def test_bad_arguments():
    verifier, plain = GrammarVerifier.json_schema(PAIR, TOKENS), Table([0.5, 0.5])
    single = Table(lambda _: [1.0] * len(SPELLINGS), len(SPELLINGS))
    single.tokenization = TOKENS
    assert not calls_without_expected_error(
        (expected, partial(confidence, *arguments))
        for expected, *arguments in (
            ("use a model with a tokenization", plain, [], [0], verifier),
            ("JSON grammar", oracle(), [0], "{}", FunctionVerifier(bool)),
            ("it is not valid JSON", oracle(), [0], '{"k"', verifier),
            ("does not allow the value of the field '/k'", oracle(), [0], '{"k":1,"a":1}', verifier),
            ("no text of the grammar begins", oracle(), [0], '{"b":"a"}', verifier),
            ("=99: use token ids from 0 to 20", oracle(), [0], [99], verifier),
            ("end-of-sequence", single, [], "1", GrammarVerifier.json_schema({"enum": [1, 2]}, TOKENS)),
        )
    )
