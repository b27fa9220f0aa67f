"""Requests for JSON in ten schemas. Some schemas have only fields with few values, others have free strings."""

import json
from dataclasses import dataclass
from typing import Any

from trialogue.randomness import numpy_generator

_SUBJECTS: dict[str, tuple[str, ...]] = {
    "fruit": ("an apple", "a lemon", "a plum", "a melon", "a cherry", "a banana", "a grape", "a pear"),
    "animal": ("a cat", "an elephant", "a frog", "an eagle", "a shark", "a mouse", "a cow", "a bee"),
    "object": ("a bicycle", "a spoon", "a lamp", "a piano", "a tent", "a kettle", "a ladder", "a drum"),
    "film": ("Alien", "Casablanca", "Jaws", "Vertigo", "Titanic", "Psycho", "Rocky", "Gladiator"),
    "person": ("a teacher", "a sailor", "a nurse", "a painter", "a pilot", "a baker", "a judge", "a farmer"),
}


def _make_integer_schema(low: int, high: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": low, "maximum": high}


_BOOLEAN: dict[str, Any] = {"type": "boolean"}
_STRING: dict[str, Any] = {"type": "string"}
_COLOURS, _SIZES, _DAYS = (
    ["red", "green", "yellow", "blue"],
    ["small", "medium", "large"],
    ["mon", "wed", "fri"],
)

SCHEMAS: dict[str, tuple[str, dict[str, dict[str, Any]], dict[str, Any]]] = {
    "enum": ("fruit", {"color": {"enum": _COLOURS}}, {"color": "blue"}),
    "two enums": (
        "object",
        {"size": {"enum": _SIZES}, "color": {"enum": _COLOURS}},
        {"size": "medium", "color": "blue"},
    ),
    "enum, integer": (
        "fruit",
        {"size": {"enum": _SIZES}, "price": _make_integer_schema(1, 20)},
        {"size": "medium", "price": 7},
    ),
    "two booleans": ("animal", {"wild": _BOOLEAN, "tall": _BOOLEAN}, {"wild": True, "tall": False}),
    "integer, boolean": (
        "animal",
        {"legs": _make_integer_schema(0, 8), "tame": _BOOLEAN},
        {"legs": 6, "tame": True},
    ),
    "list of enums": (
        "person",
        {"days": {"type": "array", "items": {"enum": _DAYS}, "minItems": 1, "maxItems": 3}},
        {"days": ["fri", "mon"]},
    ),
    "pattern": (
        "object",
        {"code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{2}$"}, "new": _BOOLEAN},
        {"code": "KX-47", "new": True},
    ),
    "string": ("film", {"genre": _STRING}, {"genre": "western"}),
    "string, integer": (
        "film",
        {"genre": _STRING, "year": _make_integer_schema(1900, 2030)},
        {"genre": "western", "year": 1952},
    ),
    "three strings": (
        "person",
        {"name": _STRING, "city": _STRING, "hobby": _STRING},
        {"name": "Ann Lee", "city": "Oslo", "hobby": "chess"},
    ),
}
"""For each schema: the kind of subject, the types of the fields, and an example."""

FREE = ("string", "string, integer", "three strings")
"""Schemas with free strings, for which the number of allowed outputs is unbounded. All others are bounded."""


@dataclass(frozen=True)
class Request:
    """A request to a language model, with the JSON schema of its answer.

    Args:
        text: Text of the request.
        schema: The JSON schema.
    """

    text: str
    schema: str


def make_request(name: str, seed: int) -> Request:
    """Return a request for a JSON description of a random subject.

    Args:
        name: Name of the schema, a key of `SCHEMAS`.
        seed: Seed that selects the subject.

    Returns:
        The request with an example, and a schema that allows only compact JSON, without spaces.
    """
    kind, properties, example = SCHEMAS[name]
    subjects = _SUBJECTS[kind]
    subject = subjects[int(numpy_generator(seed, "request", name).integers(len(subjects)))]
    compact = json.dumps(example, separators=(",", ":"))
    text = f"Describe {subject} as compact JSON without spaces. Another example: {compact}\n"
    text += "Reply with one line of JSON and nothing else."
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
        "x-guidance": {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":"},
    }
    return Request(text, json.dumps(schema))
