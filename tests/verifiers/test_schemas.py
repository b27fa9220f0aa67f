"""JSON schemas as people have them: what is enforced where, what is refused and why, what a user is told."""

import json
import re
from decimal import Decimal

import pytest
from jsonschema import Draft202012Validator

from mutants import verifiers as mutants
from samplers.judged_texts import TOKENS, value
from trialogue.errors import InputError
from trialogue.verifiers import GrammarVerifier
from trialogue.verifiers.language_verifier import Invalid, NotValid
from trialogue.verifiers.schemas import relaxation, validation
from trialogue.verifiers.schemas.languages import json_language
from trialogue.verifiers.vocabularies import END_OF_BYTES, byte_tokenizer, matcher_of

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
    "a reference in a circle": {
        "$ref": "#/$defs/node",
        "$defs": {
            "node": {
                "type": "object",
                "properties": {
                    "a": True,
                    "b": {"type": "string"},
                    "next": {"allOf": [{"$ref": "#/$defs/node"}], "required": ["b"]},
                },
            }
        },
    },
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
INSTANCES = (
    *(
        0,
        1,
        2,
        3,
        2.5,
        -1,
        "a",
        "ab",
        "xb",
        "b",
        None,
        True,
        [],
        [1],
        [1, 1],
        [1, 2],
        [2, 2],
        [1, 2, "a"],
        [3],
    ),
    *(
        {},
        {"a": 1},
        {"a": 3},
        {"b": "x"},
        {"a": 1, "b": "x"},
        {"a": 2, "b": "y"},
        {"a": "x"},
        {"a": 5, "c": 1},
    ),
    *(
        {"c": 1},
        {"ab": 1},
        {"next": {}},
        {"next": {"b": "x"}},
        {"b": "x", "next": {"b": "x", "next": {"b": "y"}}},
    ),
)


def mistakes(name: str, kind: type[GrammarVerifier] = GrammarVerifier) -> int:
    """How many of the instances the verifier judges otherwise than the jsonschema library does."""
    schema = SCHEMAS[name]
    verifier, judge = kind.json_schema(schema, TOKENS), Draft202012Validator(schema)
    texts = [(json.dumps(one, separators=(",", ":")), judge.is_valid(one)) for one in INSTANCES]
    return sum(value(verifier, text) != valid for text, valid in texts)


@pytest.mark.parametrize("name", SCHEMAS)
def test_what_no_grammar_enforces_is_enforced_by_validation(name):
    assert mistakes(name) == 0


@pytest.mark.parametrize("name", sorted(set(SCHEMAS) - {"numbers", "a reference in a circle"}))
def test_a_verifier_that_does_not_validate_is_seen(name):
    assert mistakes(name, mutants.Unvalidated) > 0


def test_the_rest_of_a_schema_stays_in_the_grammar():
    verifier = GrammarVerifier.json_schema(SCHEMAS["one property of several"], TOKENS)
    verdicts = {
        text: value(verifier, text, False) for text in ('{"a":3', '{"a":3}', '{"a":t', '{"b":1', '{"c"')
    }
    assert verdicts == {'{"a":3': True, '{"a":3}': True, '{"a":t': False, '{"b":1': False, '{"c"': False}
    assert not value(verifier, '{"a":3}')


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (SCHEMAS["one property of several"], ["no grammar enforces not (at properties/a): checked when"]),
        (
            {**ITEMS, "uniqueItems": True, "items": {"not": {"const": 1}}},
            ["no grammar enforces uniqueItems (at the root), not (at items): checked when"],
        ),
        (
            {"anyOf": [SCHEMAS["oneOf"], {"oneOf": [{"type": "string"}, {"type": "null"}]}]},
            ["no grammar enforces oneOf (at anyOf/0 and 1 more): checked when"],
        ),
        (
            {"type": "object", "properties": {"x": {"pattern": "^(?!a)"}, "y": {"pattern": "b"}}},
            ["no grammar enforces pattern (at properties/x): checked when"],
        ),
        (
            {
                "properties": {
                    "a": {"type": "integer", "tsType": "X"},
                    "b": {"type": "null", "tsType": "Y", "x-a": 1},
                }
            },
            ["JSON Schema has no tsType (at properties/a and 1 more): without effect"],
        ),
        (
            {
                "$ref": "#/$defs/node",
                "$defs": {"node": {"properties": {"next": {"$ref": "#/$defs/node", "type": "object"}}}},
            },
            ["no grammar enforces type (at $defs/node/properties/next): checked when"],
        ),
        ({"type": "string", "format": "phone"}, ["nothing checks format 'phone' (at the root)"]),
        ({"type": "string", "format": "regex"}, ["no grammar enforces format (at the root): checked when"]),
        (
            {"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer", "if": {"minimum": 3}},
            ["draft 4 has no if (at the root): without effect"],
        ),
        ({"type": "integer", "minimum": 3, "title": "n", "$comment": "", "default": 4}, []),
    ],
)
def test_what_a_user_is_told(schema, said):
    notes = GrammarVerifier.json_schema(schema, TOKENS).notes
    assert len(notes) == len(said)
    assert all(note.startswith(line) for note, line in zip(notes, said, strict=True)), notes


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (
            {"type": "string", "minLenght": 3},
            "minLenght is no keyword and has no effect: 'minLength' misspelt?",
        ),
        ({"any_of": [{"const": 1}], "type": "integer"}, "any_of is no keyword and has no effect: 'anyOf'"),
        (
            {"properties": {"a": {"typ": "integer"}}},
            "properties/a/typ is no keyword and has no effect: 'type'",
        ),
        ({"anyOf": [{"const": 1}, {"items": {"patern": "a"}}]}, "anyOf/1/items/patern is no keyword"),
        (
            {"$defs": {"a": {"additionalProperties": {"require": []}}}, "$ref": "#/$defs/a"},
            "$defs/a/additionalPro",
        ),
        (
            {"properties": {"a/b": {"ref": "#/$defs/a"}}, "$defs": {"a": {}}},
            "properties/a~1b/ref is no keyword",
        ),
        ({"properties": {"a": {"type": "strin"}}}, "properties/a/type: 'strin' is not"),
        ({"type": "object", "required": "a"}, "required: 'a' is not of type 'array' (draft 2020-12)"),
        (
            {"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 1, "exclusiveMinimum": 2},
            "exclusiveMin",
        ),
        (
            {"$schema": "http://json-schema.org/draft-03/schema#", "type": "integer"},
            "$schema: draft 3 is older",
        ),
        (
            {"items": {"$ref": "https://example.com/a.json"}},
            "items/$ref leads to 'https://example.com/a.json': noth",
        ),
        (
            {"anyOf": [{"$ref": "#/$defs/a"}]},
            "anyOf/0/$ref leads to '#/$defs/a': nothing is fetched, and the sch",
        ),
        (
            {"$ref": "#/components/A", "components": {"A": {"not": {"required": 5}}}},
            "components/A/not/required: 5 is not of type 'array' (draft 2020-12)",
        ),
        (
            {
                "$schema": "http://json-schema.org/draft-07/schema#",
                "properties": {"a": {"$ref": "#/$defs/A"}},
                "$defs": {"A": {"type": "array", "contains": {"type": "foo"}}},
            },
            "$defs/A/contains/type: 'foo' is not valid under any of the given schemas (draft 7)",
        ),
        ({"anyOf": [{"$ref": "#/anyOf"}]}, "anyOf: [{'$ref': '#/anyOf'}] is not of type 'object', 'boolean'"),
        ({"$ref": "#/enum/0", "enum": [3]}, "enum/0: 3 is not of type 'object', 'boolean' (draft 2020-12)"),
        ({"$ref": "#"}, "the root: it refers to itself without end, and admits nothing"),
        ({"allOf": [{"$ref": "#"}], "type": "integer"}, "the root: it refers to itself without end"),
        (
            {
                "type": "object",
                "properties": {"a": {"$ref": "#/$defs/a"}},
                "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [True, {"$ref": "#/$defs/a"}]}},
            },
            "$defs/a: it refers to itself without end",
        ),
        ({"type": "string", "not": {"pattern": "("}}, "not/pattern: '(' is no regular expression"),
        (
            {"type": "string", "pattern": "^a{1,2}+$"},
            "pattern: '^a{1,2}+$' is no regular expression: multiple repeat",
        ),
        ({"enum": []}, "Unsatisfiable schema"),
        (
            {"type": "object", "properties": {"a": False}, "required": ["a"]},
            "Unsatisfiable schema: required property",
        ),
        ({"type": "integer", "x-guidance": {"spaces": 1}}, "unknown field `spaces`"),
        ({"type": "integer", "x-guidance": 3}, "x-guidance: give an object of llguidance's options"),
        ({}, "it constrains nothing: say what is allowed with type, properties or enum"),
        (True, "it constrains nothing"),
        ({"title": "any", "$defs": {"a": {"type": "integer"}}}, "it constrains nothing"),
        ({"type": ["object", "array", "string", "number", "boolean", "null"]}, "it constrains nothing"),
        ({"properties": {"a": {}, "b": True}, "required": [], "minLength": 0}, "it constrains nothing"),
        ({"anyOf": [{"type": "string"}, {"description": "whatever"}]}, "it constrains nothing"),
        ({"name": "x", "age": 3}, "none of its keys is a keyword of JSON Schema: say what is allowed"),
        ({"name": "f", "parameters": {}}, "it constrains nothing"),
    ],
)
def test_schemas_that_cannot_be_used_are_named_in_one_line(schema, message):
    with pytest.raises(InputError, match=f"^json-schema='.*': {re.escape(message)}") as caught:
        GrammarVerifier.json_schema(schema, TOKENS)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "schema",
    [
        {"const": {"typ": 1}, "enum": [{"typ": 1}]},
        {"properties": {"typ": {"const": 1}, "patern": True}, "default": {"requires": 1}},
        {"type": "integer", "example": 1, "x-order": 2, "note": "a", "enumNames": ["a"], "nullable": False},
        {"type": "string", "_format": "email", "patterns": 3, "formats": ["a"], "requires": "b"},
        {"enum": ["a", "a"]},
    ],
)
def test_other_keys_are_annotations(schema):
    GrammarVerifier.json_schema(schema, TOKENS)


def test_a_schema_that_is_nested_too_deeply_is_named_in_one_line():
    text = '{"not":' * 600 + '{"type":"null"}' + "}" * 600
    with pytest.raises(InputError, match=r"nested too deeply|no JSON: maximum recursion"):
        GrammarVerifier.json_schema(text, TOKENS)


def test_white_space_is_none_unless_asked_for():
    schema = {"type": "array", "items": {"type": "integer"}}
    compact, flexible = (
        GrammarVerifier.json_schema(schema, TOKENS, whitespace=whitespace)
        for whitespace in ("compact", "flexible")
    )
    own = GrammarVerifier.json_schema({**schema, "x-guidance": {"item_separator": ", "}}, TOKENS)
    texts = ("[1,2]", "[1, 2]", "[ 1,\n2]")
    assert [value(compact, text) for text in texts] == [True, False, False]
    assert [value(flexible, text) for text in texts] == [True, True, True]
    assert [value(own, text) for text in texts] == [False, True, False]
    assert GrammarVerifier.json_schema(schema, TOKENS)._grammar == compact._grammar
    with pytest.raises(InputError, match="whitespace='loose': use one of compact, flexible"):
        GrammarVerifier.json_schema(schema, TOKENS, whitespace="loose")


@pytest.mark.parametrize(
    ("wrapped", "what"),
    [
        (
            {"type": "function", "function": {"name": "f", "parameters": OBJECT}},
            "the parameters of the tool 'f'",
        ),
        (
            {"type": "function", "name": "f", "parameters": OBJECT, "strict": True},
            "the parameters of the tool 'f'",
        ),
        ({"name": "f", "description": "d", "input_schema": OBJECT}, "the parameters of the tool 'f'"),
        ({"name": "f", "inputSchema": OBJECT}, "the parameters of the tool 'f'"),
        ({"name": "f", "parameters": OBJECT}, "the parameters of the tool 'f'"),
        (
            {"type": "json_schema", "json_schema": {"name": "r", "schema": OBJECT}},
            "the schema of the response's format",
        ),
        ({"name": "r", "strict": True, "schema": OBJECT}, "the schema of the response's format"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": OBJECT}}},
            "the schema of the response",
        ),
    ],
)
def test_definitions_of_tools_and_formats_stand_for_their_schema(wrapped, what):
    verifier, plain = (GrammarVerifier.json_schema(one, TOKENS) for one in (wrapped, OBJECT))
    assert verifier._grammar == plain._grammar
    assert verifier.notes[0].startswith(f"the rule is {what}")


def test_a_schema_with_a_name_is_a_schema():
    schema = {
        "name": "f",
        "type": "object",
        "properties": {"parameters": {"type": "integer"}},
        "parameters": OBJECT,
    }
    verifier = GrammarVerifier.json_schema(schema, TOKENS)
    assert value(verifier, '{"parameters":1}')
    assert not value(verifier, '{"parameters":"a"}')


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "string", "not": {"pattern": "^(a|a|b?a)*$"}}, "{}"),
        ({"type": "object", "patternProperties": {"^(a|a|b?a)*$": False}, "minProperties": 1}, "{{{}:1}}"),
    ],
)
def test_a_pattern_that_takes_for_ever_is_not_waited_for(schema, text):
    parse = json_language(schema, "compact").parse
    with pytest.raises(Invalid, match=r"takes longer than 0\.1 s"):
        parse(text.format(json.dumps("a" * 40 + "c")))


@pytest.mark.parametrize("draft", ["2019-09", "2020-12"])
def test_patterns_beside_unevaluated_are_those_of_the_schema(draft):
    """Also where they are behind a reference, have properties of Unicode, or differ between the objects of a text."""
    schema = {
        "$schema": f"https://json-schema.org/draft/{draft}/schema",
        "type": "object",
        "allOf": [{"$ref": "#/$defs/letters"}],
        "properties": {"in": {"patternProperties": {"^[0-9]+$": {}}, "unevaluatedProperties": False}},
        "unevaluatedProperties": False,
        "$defs": {"letters": {"patternProperties": {r"^\p{Lu}+$": {"type": "integer"}, "^x[.]": {}}}},
    }
    parse = json_language(schema, "compact").parse
    for text in ('{"É":1}', '{"x.y":"a","in":{"7":1}}', "{}"):
        assert parse(text) == json.loads(text)
    for text in (
        '{"É":"a"}',
        '{"é":1}',
        '{"xa":1}',
        '{"7":1}',
        '{"in":{"É":1}}',
        '{"É":1,"in":{"7":1,"x.":1}}',
    ):
        with pytest.raises(NotValid):
            parse(text)


def test_a_pattern_beside_unevaluated_is_not_waited_for():
    schema = {"type": "object", "patternProperties": {"^(a|a|b?a)*$": {}}, "unevaluatedProperties": False}
    parse = json_language(schema, "compact").parse
    assert parse('{"aba":1}') == {"aba": 1}
    with pytest.raises(Invalid, match=r"takes longer than 0\.1 s"):
        parse(f'{{"{"a" * 40}c":1}}')


def test_a_schema_that_takes_for_ever_is_not_waited_for(monkeypatch):
    """Many patterns each within its own time, and references that double at every step."""
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


def test_a_key_comes_once():
    verifier = GrammarVerifier.json_schema({"type": "object", "minProperties": 2}, TOKENS)
    assert value(verifier, '{"a":1,"b":1}')
    assert not value(verifier, '{"a":1,"a":1}')


def test_numbers_are_compared_as_they_are_written():
    prices = GrammarVerifier.json_schema(
        {"type": "number", "multipleOf": 0.01, "not": {"const": 0.3}}, TOKENS
    )
    texts = ("19.99", "0.07", "19.999", "0.30", "0.1", "123456789012345678901234567890.01")
    assert [value(prices, text) for text in texts] == [True, True, False, False, True, True]
    huge = GrammarVerifier.json_schema({"type": "number", "not": {"multipleOf": 7}}, TOKENS)
    assert value(huge, "1e999999999999")
    assert value(huge, "1e99999999999999999999999") is False


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
    """Decimals of up to two digits after the point that are valid, and that the grammar has no place for."""
    language = json_language({"type": "number", **schema}, "compact")
    matcher = matcher_of(byte_tokenizer(), language.grammar)
    accepts, lost = language.acceptance(), []
    for number in {Decimal(count) / unit for unit in (1, 10, 100) for count in range(-320, 321)}:
        text = f"{number.normalize():f}".encode()
        writable = matcher.deep_copy().validate_tokens([*text, END_OF_BYTES]) == len(text) + 1
        if accepts(text) and not writable:
            lost.append(text.decode())
    return lost


@pytest.mark.parametrize("schema", RANGES)
def test_no_valid_number_is_lost(schema):
    assert not lost_numbers(schema)


def test_numbers_lost_by_ranges_as_they_are_would_be_seen(monkeypatch):
    monkeypatch.setattr(relaxation, "_of_decimals", lambda one: ())
    assert lost_numbers(RANGES[0]) == ["0.9"]
    assert sum(bool(lost_numbers(schema)) for schema in RANGES) >= 9


def test_bounds_that_the_grammar_has_right_stay_in_it():
    verifier = GrammarVerifier.json_schema({"type": "number", "minimum": 0.5, "maximum": 2.25}, TOKENS)
    assert verifier.notes == ("no grammar enforces maximum (at the root): checked when a text is complete",)
    verdicts = {text: value(verifier, text, False) for text in ("0.4", "0.5", "2.25", "2.29", "2.4", "3")}
    assert verdicts == {"0.4": False, "0.5": True, "2.25": True, "2.29": True, "2.4": False, "3": False}
    assert [value(verifier, text) for text in ("2.25", "2.29")] == [True, False]
    whole = GrammarVerifier.json_schema({"type": "integer", "minimum": 0.25}, TOKENS)
    assert not whole.notes
    assert not value(whole, "0")


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        (r"^(?=\d)", {"1": True, "٣": False}),
        (r"^(?=a)a$", {"a": True, "a\n": False}),
        (r"^(?!\w[$])[^\d]*$", {"ab": True, "a$": False, "a1": False, "é$": True}),
        (r"^(?=\p{Lu})", {"É": True, "é": False}),
        (r"^(?=[[a])", {"[": True, "a": True, "b": False}),
    ],
)
def test_patterns_are_those_of_json_schema_at_the_end_too(pattern, texts):
    verifier = GrammarVerifier.json_schema({"type": "string", "pattern": pattern}, TOKENS)
    assert verifier.notes
    assert {text: value(verifier, json.dumps(text, ensure_ascii=False)) for text in texts} == texts


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        (r"^[a-z&&x]+$", {"abc": True, "x": True, "a&": True, "A": False}),
        (r"^[a-z~~x]+$", {"abc": True, "a~": True, "A": False}),
        (r"^[!--]+$", {"#": True, "-": True, "a": False}),
        (r"^[--a]+$", {"A": True, "-": True, "b": False}),
        (r"^[[a]]$", {"[]": True, "a]": True, "a": False}),
        (r"^[\w-x]$", {"-": True, "b": True, ".": False}),
        (r"^[\D]$", {"a": True, "٣": True, "3": False}),
        (r"^[^]{2}$", {"a]": True, "a": False}),
        (r"^\Aa\Z$", {"AaZ": True, "a": False}),
        (r"^\h\R\<$", {"hR<": True, " \n": False}),
        (r"^a{,3}$", {"a{,3}": True, "aa": False}),
        (r"^\cJ$", {"\n": True, "cJ": False}),
        (r"^(?<y>a|b)\k<y>$", {"aa": True, "bb": True, "ab": False}),
        (r"^(?<y>a)b$", {"ab": True, "b": False}),
        (r"\bfoo\b", {"foo": True, "éfoo": True, "_foo": False}),
        (r"^\ud83d\ude00[\u{1F600}-\u{1F601}]$", {"😀😁": True, "😀😂": False}),
        (r"^\s$", {"\ufeff": True, "\u00a0": True, "\x85": False}),
    ],
)
def test_patterns_mean_what_they_mean_in_ecmascript(pattern, texts):
    text = GrammarVerifier.json_schema({"type": "string", "pattern": pattern}, TOKENS)
    assert {one: value(text, json.dumps(one, ensure_ascii=False)) for one in texts} == texts
    end = GrammarVerifier.json_schema({"type": "string", "not": {"pattern": pattern}}, TOKENS)
    assert not any(value(end, json.dumps(one, ensure_ascii=False)) == texts[one] for one in texts)
    keys = {"type": "object", "patternProperties": {pattern: {"type": "null"}}, "additionalProperties": False}
    key = GrammarVerifier.json_schema(keys, TOKENS)
    assert {
        one: value(key, json.dumps({one: None}, ensure_ascii=False).replace(" ", "")) for one in texts
    } == {one: valid and " " not in one for one, valid in texts.items()}


@pytest.mark.parametrize("pattern", [r"^a$", r"^\d$", r"^\p{Lu}$"])
def test_references_lead_to_the_schemas_of_patterns(pattern):
    other = {r"^a$": r"^a\Z", r"^\d$": r"^[0-9]$"}.get(pattern, "^b$")
    path = "#/patternProperties/" + pattern.replace("~", "~0").replace("/", "~1")
    schema = {
        "type": "object",
        "patternProperties": {pattern: {"type": "integer"}, other: {"maximum": 3}},
        "properties": {"x": {"$ref": path}},
        "additionalProperties": False,
    }
    verifier = GrammarVerifier.json_schema(schema, TOKENS)
    texts = {'{"x":5}': True, '{"x":"5"}': False, '{"y":1}': False}
    assert {text: value(verifier, text) for text in texts} == texts
    assert [value(verifier, f'{{"1":{number}}}') for number in (1, 5)] == [pattern == r"^\d$", False]


def test_formats_are_the_same_in_grammars_and_at_the_end():
    formats = {
        "ipv4": ("10.0.0.1", "10.0.0"),
        "date": ("2020-02-29", "2020-13-01"),
        "date-time": ("2024-02-29T10:00:00Z", "2024-02-29"),
        "email": ("a@b.de", "ab"),
    }
    for name, (right, wrong) in formats.items():
        plain = GrammarVerifier.json_schema({"type": "string", "format": name}, TOKENS)
        other = GrammarVerifier.json_schema({"type": "string", "not": {"format": name}}, TOKENS)
        assert [value(plain, f'"{text}"') for text in (right, wrong)] == [True, False]
        assert [value(other, f'"{text}"') for text in (right, wrong)] == [False, True]
        # A grammar has no calendar.
        if name.startswith("date"):
            assert not value(plain, f'"2023{right[4:]}"')
            assert value(other, f'"2023{right[4:]}"')
    patterns = GrammarVerifier.json_schema({"type": "string", "format": "regex"}, TOKENS)
    assert [value(patterns, text) for text in ('"a(b)"', '"a(b"')] == [True, False]


@pytest.mark.parametrize(
    ("schema", "texts"),
    [
        ({"dependencies": {"a": ["b"]}, "type": "object"}, {'{"a":1}': False, '{"a":1,"b":1}': True}),
        ({"items": [{"type": "integer"}], "type": "array"}, {"[1]": True, '["a"]': False}),
        ({"minimum": 3, "exclusiveMinimum": True, "type": "integer"}, {"3": False, "4": True}),
        ({"$schema": "https://example.com/own", "type": "integer"}, {"3": True, '"a"': False}),
        (
            {"$schema": "http://json-schema.org/draft-07/schema", "items": {"type": "null"}},
            {"[null]": True, "[1]": False},
        ),
        (
            {"properties": {"s": {"$ref": "http://json-schema.org/draft-07/schema#"}}, "type": "object"},
            {'{"s":{"type":"null"}}': True, '{"s":{"type":"nul"}}': False},
        ),
    ],
)
def test_the_draft_is_the_one_that_fits(schema, texts):
    verifier = GrammarVerifier.json_schema(schema, TOKENS)
    assert {text: value(verifier, text) for text in texts} == texts


def test_parser_gives_values_and_reasons():
    parser = GrammarVerifier.json_schema(SCHEMAS["one property of several"], TOKENS).parser
    assert parser('{"a":2,"b":"x"}') == {"a": 2, "b": "x"}
    for text, reason in (
        ('{"a":3}', "a: 3 should not be valid under"),
        ('{"a":1,"a":2}', "the key 'a' is there twice"),
        ("NaN", "NaN is no number of JSON"),
        ("{", "it is no JSON"),
        ("[" * 100_000, "it is nested too deeply"),
    ):
        with pytest.raises(ValueError, match=reason):
            parser(text)
