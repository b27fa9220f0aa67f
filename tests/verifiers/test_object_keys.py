"""Repeated keys of JSON objects are excluded by token masks, compared with enumerated languages."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from samplers.small_languages import Language, tokenization
from trialogue.verifiers import GrammarVerifier
from trialogue.verifiers.languages.closing_texts import ClosingTexts
from verifiers.test_grammar import mistakes

NESTED = {"type": "object", "additionalProperties": {"anyOf": [{"const": 1}, {"$ref": "#"}]}}
LISTS = {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}}
NAMED = {"type": "object", "properties": {"a": {"const": 1}}, "additionalProperties": {"enum": ["a", 1]}}
PIECES = (b'{"', b"{", b'"', b"a", b":1", b'":1,"', b',"', b"}")


def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key is repeated")
    return dict(pairs)


@dataclass(frozen=True, eq=False)
class ObjectLanguage(Language):
    """A language whose viable prefixes are completed by one of `endings` and brackets."""

    endings: Sequence[str] = ()

    @cache  # noqa: B019 (languages are few and small)
    def viable(self, text: bytes) -> bool:
        closers = ("", *("}" * depth for depth in range(1, 8)))
        return any(self.member(text + (end + close).encode()) for end in self.endings for close in closers)


def language(name, schema, is_valid, pieces, endings):
    """Return the compact texts of valid objects without repeated keys. Keys with q are not in the vocabulary."""

    def contains(text):
        try:
            value = json.loads(text, object_pairs_hook=unique)
        except ValueError:
            return False
        short = re.sub(r"\\(u000a|.)", lambda found: r"\n" if len(found[1]) > 1 else found[0], text)
        return (
            short == json.dumps(value, separators=(",", ":")) and isinstance(value, dict) and is_valid(value)
        )

    return ObjectLanguage(
        name, lambda t: GrammarVerifier.json_schema(schema, t), contains, pieces, endings=endings
    )


def is_nested(value):
    return all(one == 1 if not isinstance(one, dict) else is_nested(one) for one in value.values())


def is_lists(value):
    return all(isinstance(one, list) and all(isinstance(part, str) for part in one) for one in value.values())


def is_named(value):
    return all(one in ("a", 1) for one in value.values()) and (
        "a" not in value or next(iter(value.items())) == ("a", 1)
    )


ENDINGS = ("", "{}", '"', "1", ":1", '":1', 'q":1', '"q":1')
LISTED = ("", "{}", "[]", "]", '"]', ":[]", '":[]', 'q":[]', '"q":[]')
ESCAPED = (*ENDINGS, 'n":1', 'nq":1', *(rf'{"u000a"[start:]}q":1' for start in range(5)))
ESCAPES = (b'{"', b"\\", b"\\n", b"n", b"u000a", b"\\u000", b"a", b'":1,"', b'n":1,"', b'":1}')
LANGUAGES = [
    language("nested objects", NESTED, is_nested, (*PIECES, b'":{"', b'"a":1,"a'), ENDINGS),
    language("lists of strings", LISTS, is_lists, (*PIECES[:-2], b'":["', b'"]', b'a":[],"a":'), LISTED),
    language("a named key", NAMED, is_named, (*PIECES, b':"a', b'"a":1'), ENDINGS),
    language("escape sequences", NESTED, is_nested, ESCAPES, ESCAPED),
]


@pytest.mark.parametrize("case", LANGUAGES, ids=str)
def test_masks_exclude_exactly_the_texts_with_repeated_keys(case):
    assert mistakes(case) == (0, 0)


def test_closing_texts_have_no_repeated_keys():
    tokens = tokenization((b'{"', b"{", b" ", b'":1', b',"', b"}"))
    schema = {"type": "object", "additionalProperties": {"const": 1}}
    texts = ClosingTexts(GrammarVerifier.json_schema(schema, tokens).grammar, frozenset(), tokens)
    assert texts.closing(b'{" ":1,"') == b'":1}'
    assert texts.closing(b'{"":1,"') == b' ":1}'
    assert texts.closing(b'{"":1," ":1,"') == b'  ":1}'
    assert texts.closing(b'{"":1,"":1') is None
    viable = np.isin(np.arange(tokens.vocab_size), [2, 3])
    # The costs after a space and after the end of the key, where the first object has the key " " and the second not.
    assert texts.costs(b'{" ":1,"', viable)[2:4].tolist() == [3, 1]
    assert texts.costs(b'{"  ":1,"', viable)[2:4].tolist() == [2, 1]
