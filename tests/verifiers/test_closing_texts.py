"""Masks that complete a text before the length limit, compared with the exact target distribution."""

import math
import re

import numpy
import pytest

from refusals import expect_error
from samplers.small_languages import JSON, LETTERS, tokenization
from trialogue.data import Table
from trialogue.randomness import numpy_generator
from trialogue.samplers import AdaptiveRejection, MaskedDecoding, Rejection
from trialogue.samplers.exact import exact_distribution, target_distribution
from trialogue.verifiers import GrammarVerifier
from trialogue.verifiers.languages import automaton
from trialogue.verifiers.languages.closing_texts import NEVER, ClosingTexts
from trialogue.verifiers.schemas.languages import json_language

NODE = {"type": "object", "properties": {"a": {"$ref": "#/$defs/node"}}, "additionalProperties": False}
RECURSIVE = {"$ref": "#/$defs/node", "$defs": {"node": NODE}}
NUMBERS = {"type": "array", "items": {"enum": [1, 12]}, "minItems": 2}
LISTS = (*JSON, b"[", b"]", b"1]")
CASES = {
    "repeated": (LETTERS, "regex", "(ab)+cc", 4),
    "unbounded": (LETTERS, "regex", "a[abc]*é", 4),
    "optional": (LETTERS, "regex", "a|b(a|bc){2,3}aé", 5),
    "choice": (LETTERS, "choice", ["ab", "abcabc", "cc", "éa"], 3),
    "recursive": (JSON, "json_schema", RECURSIVE, 8),
    "list": (LISTS, "json_schema", NUMBERS, 4),
    "object": (
        JSON,
        "json_schema",
        {"type": "object", "properties": {"a": {"enum": [1, 12, "a"]}}, "required": ["a"]},
        7,
    ),
}


def build(name):
    pieces, kind, content, limit = CASES[name]
    tokens = tokenization(pieces)
    size = tokens.vocab_size
    table = Table(
        lambda prefix: numpy_generator(2, *prefix).random(size) ** 2, size, eos=tokens.eos, memory=1
    )
    table.tokenization = tokens
    return table, getattr(GrammarVerifier, kind)(content, tokens), limit


@pytest.mark.parametrize("name", [*CASES, "repeated without an automaton"])
def test_target_is_the_distribution_of_texts_within_the_limit(name, monkeypatch):
    if name not in CASES:
        name = name.split()[0]
        monkeypatch.setattr(automaton, "_MAX_STATES", 1)
    oracle, verifier, limit = build(name)
    target = target_distribution(oracle, verifier, max_new_tokens=limit)
    limited = verifier.within_limit()
    assert limited.min_tokens == min(len(x) for x in target) - any(x[-1] == oracle.eos for x in target)
    before = exact_distribution(MaskedDecoding(), oracle, verifier, max_new_tokens=limit)
    found = exact_distribution(MaskedDecoding(), oracle, limited, max_new_tokens=limit)
    # Without the limit, masked decoding fails if no next token can complete the text.
    assert before.failed > 0
    assert found.failed == pytest.approx(0, abs=1e-12)
    # The mean weight of an output is its probability under the model.
    total = math.fsum(found.weights.values())
    assert {x: weight / total for x, weight in found.weights.items()} == pytest.approx(target)
    # Samplers that begin again visit too many states in the other languages.
    if name in ("choice", "optional"):
        sampler = AdaptiveRejection() if name == "optional" else Rejection()
        exact = exact_distribution(sampler, oracle, limited, max_new_tokens=limit)
        assert exact.probabilities == pytest.approx(target)
        assert exact.failed == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("begun", "closing"),
    [
        ("", '{"name":"","job":"    ","price":1,"tags":["",""],"kind":"bb"}'),
        ('{"nick":"x', '","name":"","job":"    ","price":1,"tags":["",""],"kind":"bb"}'),
        ('{"name":"a\\', '"","job":"    ","price":1,"tags":["",""],"kind":"bb"}'),
        ('{"name":"a\\\\","job":"abcde', '","price":1,"tags":["",""],"kind":"bb"}'),
        ('{"name":"","job":"abcd","price":2,"tags":["a","b","c', '"],"kind":"bb"}'),
    ],
)
def test_closing_texts_of_json_add_only_required_keys(begun, closing):
    words, number = {"type": "string"}, {"type": "number", "exclusiveMinimum": 0}
    tags = {"type": "array", "items": words, "minItems": 2}
    job, kind = {"type": "string", "minLength": 4}, {"enum": ["aaaaaa", "bb"]}
    properties = {"nick": words, "name": words, "job": job, "price": number, "tags": tags, "kind": kind}
    schema = {"type": "object", "properties": properties, "required": list(properties)[1:]}
    schema["additionalProperties"] = False
    tokens = tokenization([bytes([byte]) for byte in range(32, 127)])
    verifier = GrammarVerifier.json_schema(schema, tokens)
    texts = ClosingTexts(verifier.grammar, json_language(schema, "compact").names, tokens)
    assert texts.closing(begun.encode()) == closing.encode()
    assert texts.cost(begun.encode()) == len(closing)


@pytest.mark.parametrize("begun", ["", "x", "xyy"])
def test_a_string_may_end_after_a_token_if_its_pattern_matches(begun):
    pieces = [piece.encode() for piece in ("x", "y", "yy", "yyy", "xé", 'x"', *'{"a:}')]
    tokens = tokenization(pieces)
    text = {"type": "string", "pattern": "^(x|yy)*é?$"}
    schema = {"type": "object", "properties": {"a": text}, "required": ["a"], "additionalProperties": False}
    verifier = GrammarVerifier.json_schema(schema, tokens)
    texts = ClosingTexts(verifier.grammar, frozenset({"a"}), tokens)
    viable = numpy.zeros(tokens.vocab_size, dtype=bool)
    viable[:5] = True
    costs = texts.costs(f'{{"a":"{begun}'.encode(), viable)
    ends = [re.fullmatch("(x|yy)*é?", begun + piece.decode()) for piece in pieces[:5]]
    # The quotation mark and the brace are two tokens.
    assert costs[:5].tolist() == [2 if end else NEVER for end in ends]


def test_lark_grammars_and_limits_that_are_too_short():
    oracle, verifier, _ = build("repeated")
    expect_error(
        "no known shortest completion", GrammarVerifier.lark('start: "a"', oracle.tokenization).within_limit
    )
    # The shortest text has three tokens, so the mask remains as it is.
    plain, limited = (
        exact_distribution(MaskedDecoding(), oracle, one, max_new_tokens=2)
        for one in (verifier, verifier.within_limit())
    )
    assert limited.probabilities == plain.probabilities
