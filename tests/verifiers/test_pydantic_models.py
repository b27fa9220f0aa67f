"""Pydantic models as verifiers: the model decides on complete texts, and samples are parsed into its instances."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from typing_extensions import TypedDict

from refusals import expect_error
from samplers.judged_texts import TOKENS, value
from trialogue.data.table import Table
from trialogue.samplers import MaskedDecoding, generate
from trialogue.verifiers import GrammarVerifier, Product


class Span(BaseModel):
    """Two integers in ascending order."""

    model_config = ConfigDict(extra="forbid")
    first: int = Field(ge=0, le=9)
    last: int = Field(ge=0, le=9)

    @model_validator(mode="after")
    def ordered(self) -> "Span":
        if self.first > self.last:
            raise ValueError("the last is before the first")
        return self


class Sloppy(BaseModel):
    """A model whose validator raises an error other than `ValueError`."""

    a: int

    @field_validator("a")
    @classmethod
    def looked_up(cls, a: int) -> int:
        return {1: 1}[a]


class Slow(BaseModel):
    """A model whose validator does not return in time."""

    a: int

    @field_validator("a")
    @classmethod
    def waited(cls, a: int) -> int:
        time.sleep(5)
        return a


class Priced(BaseModel):
    """A price and a set of unique tags."""

    price: Annotated[Decimal, Field(max_digits=4, decimal_places=2)]
    tags: set[str] = set()


class Both(TypedDict):
    """A mapping with two keys."""

    kind: Literal["a", "b"]
    size: int


@dataclass
class Point:
    """Two numbers."""

    x: int
    y: int


TEXTS = {
    '{"first":1,"last":2}': True,
    '{"first":2,"last":1}': False,
    '{"first":1,"last":10}': False,
    '{"first":1}': False,
    '{"first":1,"last":2,"more":3}': False,
}


def test_the_model_decides_on_complete_texts():
    verifier = GrammarVerifier.pydantic(Span, TOKENS)
    assert {text: bool(value(verifier, text)) for text in TEXTS} == TEXTS


@pytest.mark.parametrize(
    ("model", "right", "wrong", "instance"),
    [
        (Both, '{"kind":"a","size":1}', '{"kind":"c","size":1}', {"kind": "a", "size": 1}),
        (Point, '{"x":1,"y":2}', '{"x":1}', Point(1, 2)),
        (list[Span], '[{"first":1,"last":1}]', '[{"first":1,"last":0}]', [Span(first=1, last=1)]),
        (Priced, '{"price":"12.34"}', '{"price":"123.45"}', Priced(price="12.34")),
        (dict[str, int], '{"a":1}', '{"a":1,"a":1}', {"a": 1}),
    ],
)
def test_all_types_that_pydantic_validates_are_accepted(model, right, wrong, instance):
    verifier = GrammarVerifier.pydantic(model, TOKENS)
    assert value(verifier, right)
    assert not value(verifier, wrong)
    assert verifier.parser(right) == instance


def test_samples_are_parsed_into_instances_of_the_model():
    size = TOKENS.vocab_size

    class Tokenized(Table):
        tokenization = TOKENS

    oracle = Tokenized(lambda prefix: [1.0] * size, size, eos=TOKENS.eos)
    spans = GrammarVerifier.pydantic(Span, TOKENS)
    combined = Product(lambda prefix: 1.0, spans, GrammarVerifier.regex(".*", TOKENS))
    samples = generate(
        oracle, sampler=MaskedDecoding(), verifier=spans, num_samples=20, max_new_tokens=25, seed=0
    )
    parsed = samples.parsed()
    assert 0 < int(samples.accepted.sum()) < 20
    for text, accepted, instance in zip(samples.texts(), samples.accepted.tolist(), parsed, strict=True):
        assert instance == (Span.model_validate_json(text) if accepted else None)
    assert combined.parser is spans.parser
    plain = generate(oracle, verifier=GrammarVerifier.regex("a", TOKENS), max_new_tokens=1, seed=0)
    expect_error("parsed=None: no verifier of the run defines values", plain.parsed)


def test_errors_and_timeouts_of_a_validator_are_reported():
    sloppy = GrammarVerifier.pydantic(Sloppy, TOKENS)
    assert value(sloppy, '{"a":1}')
    expect_error(r"verifier Sloppy='.*': it raised KeyError: 2", value, sloppy, '{"a":2}')
    slow = GrammarVerifier.pydantic(Slow, TOKENS, timeout=0.05)
    expect_error(r"verifier Slow='.*': it did not return within 0\.05 s", value, slow, '{"a":2}')


def test_types_without_a_schema_are_reported_in_one_line():
    for model, message in (
        (Any, "pydantic='.*Any': it constrains nothing"),
        (Callable[[], int], "pydantic='.*': it has no JSON Schema: Cannot generate a JsonSchema for"),
        (object(), "pydantic='.*': it has no JSON Schema: Unable to generate pydantic-core schema"),
    ):
        expect_error(f"^{message}", GrammarVerifier.pydantic, model, TOKENS)


def test_notes_list_the_constraints_that_only_the_model_checks():
    verifier = GrammarVerifier.pydantic(Priced, TOKENS)
    assert verifier.notes == (
        "the grammar does not enforce uniqueItems, which is checked when a text is complete",
    )
    assert verifier.parser('{"price":1,"tags":["a"]}') == Priced(price=1, tags={"a"})
