"""JSON schemas: constraints enforced by the grammar or by validation, rejected schemas, and notes for the user."""

import json
import os
import re
from decimal import Decimal
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from refusals import expect_error
from samplers.judged_texts import TOKENS, value
from trialogue.errors import InputError
from trialogue.verifiers import GrammarVerifier
from trialogue.verifiers.languages.language_verifier import Invalid
from trialogue.verifiers.languages.vocabularies import END_OF_BYTES, byte_tokenizer, make_matcher
from trialogue.verifiers.schemas import grammars, validation
from trialogue.verifiers.schemas.dialects import DRAFTS, flat_metaschema
from trialogue.verifiers.schemas.languages import json_language

SUITE = "JSON_SCHEMA_TEST_SUITE"
ITEMS = {"type": "array", "items": {"enum": [1, 2, "a"]}, "maxItems": 3}
OBJECT = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}
SCHEMAS = {
    "uniqueItems": {**ITEMS, "uniqueItems": True},
    "contains": {**ITEMS, "contains": {"const": 2}, "maxContains": 1},
    "not": {"type": ["integer", "string"], "not": {"enum": [2, "ab"]}},
    "if": {**OBJECT, "if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": {"maxProperties": 0}},
    "dependentRequired": {**OBJECT, "dependentRequired": {"a": ["b"]}},
    "dependentSchemas": {**OBJECT, "dependentSchemas": {"a": {"properties": {"b": {"const": "x"}}}}},
    "unevaluatedProperties": {"allOf": [OBJECT], "type": "object", "unevaluatedProperties": False},
    "propertyNames": {"type": "object", "propertyNames": {"maxLength": 1}},
    "oneOf": {"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 2}]},
    "patterns that overlap": {
        "type": "object",
        "patternProperties": {"a": {"type": "integer"}, "^.$": {"minimum": 2}},
        "additionalProperties": False,
    },
    "minProperties": {**OBJECT, "minProperties": 2},
    "a look-ahead": {"type": "string", "pattern": "^(?=.*b)(?!x)"},
    "an anchor": {
        "type": "object",
        "properties": {"a": {"$ref": "#here"}},
        "$defs": {"x": {"$anchor": "here", "type": "integer", "not": {"const": 3}}},
    },
    "one property of several": {
        "type": "object",
        "properties": {"a": {"type": "integer", "not": {"const": 3}}, "b": {"type": "string"}},
        "additionalProperties": False,
    },
    "numbers": {"type": "number", "multipleOf": 0.5, "minimum": 0.5},
}
INSTANCES = json.loads(
    '[0, 1, 2, 3, 2.5, -1, "a", "ab", "xb", "b", null, true, [], [1], [1, 1], [1, 2], [2, 2], [1, 2, "a"], [3], {},'
    '{"a": 1}, {"a": 3}, {"b": "x"}, {"a": 1, "b": "x"}, {"a": 2, "b": "y"}, {"a": "x"}, {"a": 5, "c": 1}, {"c": 1},'
    '{"ab": 1}, {"next": {}}, {"next": {"b": "x"}}, {"b": "x", "next": {"b": "x", "next": {"b": "y"}}}]'
)


@pytest.mark.parametrize("name", SCHEMAS)
def test_constraints_outside_the_grammar_are_enforced_by_validation(name):
    """The verifier and the jsonschema library agree on all instances."""
    verifier = GrammarVerifier.json_schema(SCHEMAS[name], TOKENS)
    judge = Draft202012Validator(SCHEMAS[name])
    for instance in INSTANCES:
        text = json.dumps(instance, separators=(",", ":"))
        assert value(verifier, text) == judge.is_valid(instance), text


def test_the_other_constraints_of_a_schema_stay_in_the_grammar():
    verifier = GrammarVerifier.json_schema(SCHEMAS["one property of several"], TOKENS)
    verdicts = {
        text: value(verifier, text, False) for text in ('{"a":3', '{"a":3}', '{"a":t', '{"b":1', '{"c"')
    }
    assert verdicts == {'{"a":3': True, '{"a":3}': True, '{"a":t': False, '{"b":1': False, '{"c"': False}
    assert not value(verifier, '{"a":3}')


LATE = "the grammar does not enforce {}, which is checked when a text is complete"
NOTES = [
    ({**ITEMS, "uniqueItems": True, "items": {"not": {"const": 1}}}, LATE.format("not, uniqueItems")),
    ({"anyOf": [SCHEMAS["oneOf"], {"type": "null"}]}, LATE.format("oneOf")),
    ({"properties": {"x": {"pattern": "^(?!a)"}, "y": {"pattern": "b"}}}, LATE.format("pattern")),
    ({"type": "string", "format": "regex"}, LATE.format("format")),
    ({"type": "string", "format": "iri", "pattern": "^a"}, LATE.format("format")),
    ({"type": "string", "format": "phone"}, "the format is not checked: phone"),
    (
        {"type": "string", "minLenght": 3, "x-a": 1},
        "draft 2020-12 does not define minLenght, which is ignored",
    ),
]


def test_notes_list_constraints_that_are_checked_late_or_not_at_all():
    for schema, note in NOTES:
        assert GrammarVerifier.json_schema(schema, TOKENS).notes == (note,), schema
    plain = {
        "type": ["integer", "string"],
        "format": "iri",
        "minimum": 3,
        "title": "n",
        "$comment": "",
        "default": {"typ": 4},
    }
    assert GrammarVerifier.json_schema(plain, TOKENS).notes == ()


DRAFT = "http://json-schema.org/draft-0{}/schema#"
MISTAKES = [
    ({"properties": {"a": {"type": "text"}}}, "$.properties.a.type: 'text' is not"),
    ({"type": "object", "required": "a"}, "$.required: 'a' is not of type 'array' (draft 2020-12)"),
    ({"$schema": DRAFT.format(4), "minimum": 1, "exclusiveMinimum": 2}, "$.exclusiveMinimum: 2 is not"),
    ({"$schema": DRAFT.format(3), "type": "integer"}, "$schema: use draft 4 or later"),
    (
        {"items": {"$ref": "https://example.com/a.json"}},
        "Resource 'https://example.com/a.json' is not present",
    ),
    ({"anyOf": [{"$ref": "#/$defs/a"}]}, "Pointer '/$defs/a' does not exist"),
    ({"$ref": "#/enum/0", "enum": [3]}, "schema must be an object or boolean"),
    (
        {
            "$ref": "#/$defs/a",
            "$defs": {"a": {"properties": {"b": {"$ref": "#/$defs/a", "required": ["b"]}}}},
        },
        "circular references with sibling keys are not supported",
    ),
    ({"$ref": "#"}, "the tokenizer can produce no text that is accepted"),
    ({"type": "string", "not": {"pattern": "("}}, "'(' is not a regular expression"),
    (
        {"type": "string", "pattern": "^a{1,2}++$"},
        "'^a{1,2}++$' is not a regular expression: multiple repeat",
    ),
    ({"enum": []}, "Unsatisfiable schema"),
    (
        {"properties": {"a": False}, "required": ["a"], "type": "object"},
        "Unsatisfiable schema: required property",
    ),
    ({"type": "integer", "x-guidance": {"spaces": 1}}, "unknown field `spaces`"),
    ({"type": "integer", "x-guidance": 3}, "x-guidance: use an object with options of llguidance"),
    (
        {"patternProperties": {"a": {}}, "unevaluatedProperties": False},
        "unevaluatedProperties cannot be enforced next to patternProperties",
    ),
    (False, "it accepts nothing"),
    *(
        (schema, "it constrains nothing; specify the")
        for schema in ({}, True, {"title": "any", "$defs": {"a": {}}})
    ),
]


def test_invalid_schemas_are_reported_in_one_line():
    for schema, message in MISTAKES:
        caught = expect_error("", GrammarVerifier.json_schema, schema, TOKENS)
        assert re.match(f"json-schema='?.*'?: {re.escape(message)}", str(caught)), caught


@pytest.mark.parametrize("draft", DRAFTS, ids=DRAFTS.get)
def test_flat_metaschemas_accept_the_same_schemas(draft):
    parts = [{"type": "text"}, {"minLength": -1}, {"enum": 1}, {"required": "a"}, {"$ref": 1}, {"title": 1}]
    parts += [{"type": ["string", "null"]}, {"items": {"minimum": 0}}, {"$comment": "a"}, {"multipleOf": 0}]
    nests = [lambda x: x, lambda x: {"properties": {"a": {"not": x}}}, lambda x: {"anyOf": [{"items": x}]}]
    nests.append(
        lambda x: {"allOf": [{"additionalProperties": x}], "$defs": {"b": {"patternProperties": {"c": x}}}}
    )
    schemas = [*(nest(part) for part in parts for nest in nests), {"anyOf": []}, {"properties": []}]
    verdicts = [draft(draft.META_SCHEMA).is_valid(schema) for schema in schemas]
    assert [draft(flat_metaschema(draft)).is_valid(schema) for schema in schemas] == verdicts
    assert 0 < sum(verdicts) < len(verdicts)


def test_texts_are_invalid_if_the_schema_cannot_be_applied():
    for schema, text, reason in (
        ({"type": "integer", "not": {"$ref": "#/$defs/a"}}, "1", "cannot be applied: .*PointerToNowhere"),
        ({"$ref": "#/x/A", "x": {"A": {"not": {"required": 5}}}}, "{}", "cannot be applied: TypeError"),
    ):
        with pytest.raises(Invalid, match=reason):
            json_language(schema, "compact").parse(text)


def test_a_schema_that_is_nested_too_deeply_is_reported_in_one_line():
    text = '{"not":' * 600 + '{"type":"null"}' + "}" * 600
    with pytest.raises(InputError, match=r"nested too deeply|not valid JSON: maximum recursion"):
        GrammarVerifier.json_schema(text, TOKENS)


def test_whitespace_is_compact_by_default():
    schema = {"type": "array", "items": {"type": "integer"}}
    compact, flexible = (
        GrammarVerifier.json_schema(schema, TOKENS, whitespace=whitespace)
        for whitespace in ("compact", "flexible")
    )
    separated = GrammarVerifier.json_schema({**schema, "x-guidance": {"item_separator": ", "}}, TOKENS)
    texts = ("[1,2]", "[1, 2]", "[ 1,\n2]")
    assert [value(compact, text) for text in texts] == [True, False, False]
    assert [value(flexible, text) for text in texts] == [True, True, True]
    assert [value(separated, text) for text in texts] == [False, True, False]
    assert GrammarVerifier.json_schema(schema, TOKENS).grammar == compact.grammar
    with pytest.raises(InputError, match="whitespace='loose': use one of compact, flexible"):
        GrammarVerifier.json_schema(schema, TOKENS, whitespace="loose")


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "string", "not": {"pattern": "^(a|a|b?a)*$"}}, "{}"),
        ({"type": "object", "patternProperties": {"^(a|a|b?a)*$": False}, "minProperties": 1}, "{{{}:1}}"),
    ],
)
def test_validation_of_a_slow_pattern_is_stopped(schema, text):
    parse = json_language(schema, "compact").parse
    with pytest.raises(Invalid, match=r"takes longer than 0\.1 s"):
        parse(text.format(json.dumps("a" * 40 + "c")))


def test_validation_with_a_slow_schema_is_stopped(monkeypatch):
    """Neither many patterns that are each fast enough nor references that double at every step delay validation."""
    monkeypatch.setattr(validation, "SECONDS", 0.05)
    doubling = {str(i): {"anyOf": [{"$ref": f"#/$defs/{i + 1}"}] * 2} for i in range(60)}
    schema = {"type": "integer", "not": {"$ref": "#/$defs/0"}, "$defs": doubling | {"60": {"const": 1}}}
    parse = json_language(schema, "compact").parse
    with pytest.raises(Invalid, match=r"takes longer than 0\.05 s to validate"):
        parse("2")
    slow = [{"pattern": f"^(a|a|b?a){{{12 + i % 3}}}$"} for i in range(100)]
    parse = json_language({"type": "string", "not": {"anyOf": slow}}, "compact").parse
    with pytest.raises(Invalid, match=r"takes longer than"):
        parse(json.dumps("a" * 14 + "c"))


TEXTS: list[tuple[dict[str, object], dict[str, bool]]] = [
    # Keys are unique.
    ({"type": "object", "minProperties": 2}, {'{"a":1,"b":1}': True, '{"a":1,"a":1}': False}),
    # Numbers are compared exactly.
    (
        {"type": "number", "multipleOf": 0.01, "not": {"const": 0.3}},
        {
            "19.99": True,
            "0.07": True,
            "19.999": False,
            "0.30": False,
            "123456789012345678901234567890.01": True,
        },
    ),
    (
        {"type": "number", "not": {"multipleOf": 7}},
        {"1e999999999999": True, "1e99999999999999999999999": False},
    ),
    # The draft is detected from the keywords.
    ({"dependencies": {"a": ["b"]}, "type": "object"}, {'{"a":1}': False, '{"a":1,"b":1}': True}),
    ({"items": [{"type": "integer"}], "type": "array"}, {"[1]": True, '["a"]': False}),
    ({"minimum": 3, "exclusiveMinimum": True, "type": "integer"}, {"3": False, "4": True}),
    ({"$schema": "https://example.com/own", "type": "integer"}, {"3": True, '"a"': False}),
    (
        {"$schema": "http://json-schema.org/draft-07/schema", "items": {"type": "null"}},
        {"[null]": True, "[1]": False},
    ),
    # Formats are checked, including leap years.
    ({"type": "string", "format": "ipv4"}, {'"10.0.0.1"': True, '"10.0.0"': False}),
    ({"type": "string", "format": "date"}, {'"2020-02-29"': True, '"2023-02-29"': False}),
    (
        {"type": "string", "format": "date-time"},
        {'"2024-02-29T10:00:00Z"': True, '"2023-02-29T10:00:00Z"': False},
    ),
    ({"type": "string", "format": "email"}, {'"a@b.de"': True, '"ab"': False}),
    ({"type": "string", "format": "regex"}, {'"a(b)"': True, '"a(b"': False}),
    (
        {"type": "string", "format": "time"},
        {'"23:59:60Z"': True, '"01:29:60.5+01:30"': True, '"23:58:60Z"': False, '"23:59:60-00:01"': False},
    ),
    (
        {"type": "string", "format": "date-time"},
        {'"2016-12-31T23:59:60Z"': True, '"2016-12-31T00:00:60Z"': False},
    ),
    (
        {"type": "string", "format": "hostname"},
        {'"xn--bcher-kva.de"': True, '"xn--X.de"': False, '"a.de"': True},
    ),
    (
        {"type": "string", "format": "json-pointer"},
        {'"/a~1/0"': True, '""': True, '"a"': False, '"/~2"': False},
    ),
    (
        {"type": "string", "format": "relative-json-pointer"},
        {'"1/a"': True, '"0#"': True, '"01"': False, '"/a"': False},
    ),
    ({"format": "uri-template"}, {'"/a{?b,c*}"': True, '"/a{b"': False, '"{b:0}"': False, "3": True}),
    ({"type": "string", "format": "uri-reference"}, {'"../a?b#c"': True, '"a b"': False, '"1:a"': False}),
    (
        {"type": "string", "format": "iri"},
        {'"http://ü.de/[::1]"': False, '"http://[1::2]/ü"': True, '"ü"': False},
    ),
    # If a pattern is present or the format is negated, only the validation checks the format.
    (
        {"type": "string", "format": "iri-reference", "pattern": "^ü"},
        {'"üa"': True, '"ü a"': False, '"a"': False},
    ),
    ({"type": "string", "not": {"format": "uri"}}, {'"a:b"': False, '"b"': True}),
    # Draft 2020-12 replaces `dependencies`, but recommends that it keeps its meaning.
    *(
        (
            {"$schema": schema, "type": "object", "dependencies": {"a": ["b"], "c": {"minProperties": 2}}},
            {'{"a":1}': False, '{"a":1,"b":1}': True, '{"c":1}': False, '{"c":1,"d":1}': True},
        )
        for schema in (f"https://json-schema.org/draft/{draft}/schema" for draft in ("2019-09", "2020-12"))
    ),
]


def test_verdicts_follow_the_schema():
    for schema, texts in TEXTS:
        verifier = GrammarVerifier.json_schema(schema, TOKENS)
        assert {text: value(verifier, text) for text in texts} == texts, schema


RANGES = (
    *(
        {"minimum": low, "maximum": high}
        for low, high in ((0, 0.95), (-0.25, 0.25), (1.5, 2.75), (-0.955, 0.1))
    ),
    *({"exclusiveMinimum": low, "exclusiveMaximum": high} for low, high in ((0.05, 0.15), (-1.25, 0.955))),
    *({"minimum": 0.1, "maximum": 1, "multipleOf": factor} for factor in (0.25, 0.15, 0.125, 0.05, 0.1)),
    *({"multipleOf": factor, "maximum": 3} for factor in (1.25, 0.02, 0.5, 0.003, 2.5)),
    {"allOf": [{"minimum": 0.25}, {"maximum": 0.95}]},
    {"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 0.25, "exclusiveMinimum": True},
)


def lost_numbers(schema: dict[str, object]) -> list[str]:
    """Return valid decimals with up to two digits after the point that the grammar does not accept."""
    language = json_language({"type": "number", **schema}, "compact")
    matcher = make_matcher(byte_tokenizer(), language.grammar)
    accepts, lost = language.acceptance(), []
    for number in {Decimal(count) / unit for unit in (1, 10, 100) for count in range(-320, 321)}:
        text = f"{number.normalize():f}".encode()
        is_in_grammar = matcher.deep_copy().validate_tokens([*text, END_OF_BYTES]) == len(text) + 1
        if accepts(text) and not is_in_grammar:
            lost.append(text.decode())
    return lost


@pytest.mark.parametrize("schema", RANGES)
def test_the_grammar_accepts_every_valid_number(schema):
    assert not lost_numbers(schema)


def test_numbers_lost_by_unwidened_ranges_are_detected(monkeypatch):
    monkeypatch.setattr(grammars, "_widen_numbers", lambda schema: set())
    assert lost_numbers(RANGES[0]) == ["0.9"]


def test_bounds_that_the_grammar_can_express_stay_in_the_grammar():
    verifier = GrammarVerifier.json_schema({"type": "number", "minimum": 0.5, "maximum": 2.25}, TOKENS)
    assert verifier.notes == (LATE.format("maximum"),)
    verdicts = {text: value(verifier, text, False) for text in ("0.4", "0.5", "2.25", "2.29", "2.4", "3")}
    assert verdicts == {"0.4": False, "0.5": True, "2.25": True, "2.29": True, "2.4": False, "3": False}
    assert [value(verifier, text) for text in ("2.25", "2.29")] == [True, False]
    whole = GrammarVerifier.json_schema({"type": "integer", "minimum": 0.25}, TOKENS)
    assert not whole.notes
    assert not value(whole, "0")


PATTERNS = [
    (r"^(?=\d)", {"1": True, "a": False}),
    (r"^(?!\w[$])[^\d]*$", {"ab": True, "a$": False, "a1": False}),
    (r"^\p{Lu}(?=a)", {"Éa": True, "éa": False}),
    (r"^\p{Lu}$", {"É": True, "é": False}),
    (r"^[a-z&&x]+$", {"abc": True, "x": True, "a&": True, "A": False}),
    (r"^[a-z~~x]+$", {"abc": True, "a~": True, "A": False}),
    (r"^[[a]]$", {"[]": True, "a]": True, "a": False}),
    (r"^[^[\]]+$", {"ab": True, "[": False, "]": False}),
    (r"^[\w-]+\/$", {"-b/": True, "./": False}),
    (r"^(?<y>a)b$", {"ab": True, "b": False}),
    (r"\bfoo\b", {"foo": True, "-foo": True, "_foo": False}),
    (r"^(?:19|20)\d{2}-(0[1-9]|1[0-2])$", {"2024-12": True, "2024-13": False}),
]


def test_patterns_have_the_same_meaning_in_grammars_keys_and_validation():
    for pattern, texts in PATTERNS:
        string = {"type": "string"}
        keys = {"type": "object", "patternProperties": {pattern: {}}, "additionalProperties": False}
        plain, negated, with_keys = (
            GrammarVerifier.json_schema(schema, TOKENS)
            for schema in ({**string, "pattern": pattern}, {**string, "not": {"pattern": pattern}}, keys)
        )
        for text, valid in texts.items():
            written = json.dumps(text, ensure_ascii=False)
            found = value(plain, written), not value(negated, written), value(with_keys, f"{{{written}:1}}")
            assert found == (valid,) * 3, (pattern, text)


@pytest.mark.skipif(SUITE not in os.environ, reason=f"{SUITE} is not set to the folder of the test suite")
def test_the_results_of_the_public_test_suite_are_the_stored_ones(monkeypatch):
    """The variable names a clone of https://github.com/json-schema-org/JSON-Schema-Test-Suite."""
    benchmarks = Path(__file__).parents[2] / "benchmarks"
    monkeypatch.syspath_prepend(str(benchmarks))
    from schema_suite import differences, run_suite

    lines = (benchmarks / "rows" / "schema_suite.jsonl").read_text(encoding="utf-8").splitlines()
    stored = {
        (row["part"], row["file"], row["contender"], row["outcome"]): row["value"]
        for row in map(json.loads, lines)
        if "file" in row
    }
    assert differences(run_suite(Path(os.environ[SUITE], "tests", "draft2020-12"))) == stored
    assert not any(key[0] != "formats" and key[3] == "accepted wrongly" for key in stored)


def test_the_parser_returns_values_and_raises_reasons():
    parser = GrammarVerifier.json_schema(SCHEMAS["one property of several"], TOKENS).parser
    assert parser('{"a":2,"b":"x"}') == {"a": 2, "b": "x"}
    for text, reason in (
        ('{"a":3}', r"\$\.a: 3 should not be valid under"),
        ('{"a":1,"a":2}', "one of the keys a is duplicated"),
        ("NaN", "NaN is not a JSON number"),
        ("{", "it is not valid JSON"),
        ("[" * 100_000, "it is nested too deeply"),
    ):
        with pytest.raises(ValueError, match=reason):
            parser(text)
