"""Prompts of `exact_requests.py`: requests for compact JSON in ten schemas, with bounded and free text."""

import json
from typing import Any

from trialogue.errors import InputError
from trialogue.models.tokenization import Tokenization
from trialogue.verifiers import GrammarVerifier

FILMS = ("the film Alien", "the film Casablanca", "the film Jaws")
REVIEWS = tuple(
    f'the review "{text}"'
    for text in ("The soup was wonderful.", "The room was too small.", "The music was fine.")
)
EVENTS = ("the first moon landing", "the fall of the Berlin Wall", "the sinking of the Titanic")
PEOPLE = ("a teacher in Oslo", "a sailor in Lima", "a nurse in Rome")
PLOT = "a western in which two riders cross a desert to find a lost mine"
STRING = {"type": "string"}
DATE = STRING | {"pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}
TONE = {"enum": ["positive", "neutral", "negative"]}
DAYS = {"type": "array", "items": {"enum": ["mon", "tue", "wed", "thu", "fri"]}, "minItems": 1, "maxItems": 3}


def integer(low: int, high: int) -> dict[str, Any]:
    """Return the schema of an integer in a range."""
    return {"type": "integer", "minimum": low, "maximum": high}


SCHEMAS: dict[str, tuple[tuple[str, ...], dict[str, dict[str, Any]], dict[str, Any]]] = {
    "enumeration": (
        FILMS,
        {"genre": {"enum": ["western", "comedy", "thriller", "romance"]}},
        {"genre": "western"},
    ),
    "integer": (FILMS, {"year": integer(1900, 2030)}, {"year": 1987}),
    "boolean, enumeration": (
        REVIEWS,
        {"recommended": {"type": "boolean"}, "tone": TONE},
        {"recommended": False, "tone": "neutral"},
    ),
    "date": (EVENTS, {"date": DATE}, {"date": "1963-08-28"}),
    "1 to 3 enumerations": (PEOPLE, {"workdays": DAYS}, {"workdays": ["tue", "fri"]}),
    "at most 8 characters": (FILMS, {"plot": STRING | {"maxLength": 8}}, {"plot": "a ride"}),
    "at most 32 characters": (FILMS, {"plot": STRING | {"maxLength": 32}}, {"plot": PLOT[:26]}),
    "at most 128 characters": (FILMS, {"plot": STRING | {"maxLength": 128}}, {"plot": PLOT}),
    "unbounded text": (FILMS, {"plot": STRING}, {"plot": PLOT}),
    "text, integer, enumeration": (
        PEOPLE,
        {"name": STRING, "age": integer(18, 99), "sector": {"enum": ["public", "private"]}},
        {"name": "Ann Lee", "age": 41, "sector": "private"},
    ),
}
"""For each schema: the subjects, the properties of the object, and an example."""


def json_verifier(properties: dict[str, Any], tokenization: Tokenization) -> GrammarVerifier:
    """Return the verifier of an object with these properties, in compact JSON."""
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
        "x-guidance": {"whitespace_flexible": False},
    }
    return GrammarVerifier.json_schema(schema, tokenization)


def encoded_prompt(
    tokenization: Tokenization, subject: str, properties: dict[str, Any], example: dict[str, Any] | None
) -> list[int]:
    """Return the tokens of a prompt that names the keys and the values of enumerations."""
    keys = []
    for key, field in properties.items():
        choices = field.get("items", field).get("enum")
        keys.append(f'"{key}"' + (f" ({', '.join(choices)})" if choices else ""))
    question = f"Describe {subject} as compact JSON with {' and '.join(keys)}."
    if example is not None:
        question += f" Another example: {json.dumps(example, separators=(',', ':'))}"
    try:
        return tokenization.chat(question)
    except InputError:  # a base model has no chat template
        return tokenization.encode(f"{question}\nJSON:")
