"""Prompts and rules: a seed draws a question and the answers that are allowed."""

import json
import re
from dataclasses import dataclass

from trialogue.randomness import numpy_generator

CAPITALS = {
    "Argentina": "Buenos Aires",
    "Australia": "Canberra",
    "Brazil": "Brasilia",
    "Canada": "Ottawa",
    "Chile": "Santiago",
    "Colombia": "Bogota",
    "Costa Rica": "San Jose",
    "Egypt": "Cairo",
    "Ethiopia": "Addis Ababa",
    "Greece": "Athens",
    "Guatemala": "Guatemala City",
    "India": "New Delhi",
    "Malaysia": "Kuala Lumpur",
    "Mexico": "Mexico City",
    "Morocco": "Rabat",
    "New Zealand": "Wellington",
    "Nigeria": "Abuja",
    "Pakistan": "Islamabad",
    "Panama": "Panama City",
    "Peru": "Lima",
    "South Korea": "Seoul",
    "Turkey": "Ankara",
    "Venezuela": "Caracas",
    "Vietnam": "Hanoi",
}
OTHER_CITIES = (
    "Auckland",
    "Cape Town",
    "Casablanca",
    "Istanbul",
    "Karachi",
    "Lagos",
    "Los Angeles",
    "Melbourne",
    "Mumbai",
    "New Orleans",
    "New York",
    "Rio de Janeiro",
    "San Diego",
    "San Francisco",
    "Sao Paulo",
    "Sydney",
    "Toronto",
)
REMARKS = (
    "The food was cold",
    "The soup was wonderful",
    "The waiter was rude",
    "The staff were kind",
    "We waited for an hour",
    "The view was lovely",
    "It was far too loud",
    "The prices are fair",
)
TONES = ("happy", "sad", "angry", "calm", "bored", "grateful")
STARS = (1, 5)


@dataclass(frozen=True)
class Task:
    """One question to a chat model, and the rule for its answer: a regular expression or a JSON schema."""

    question: str
    rule: str


def capital(seed: int) -> Task:
    """Which of five cities is a country's capital: a regular expression that lists them."""
    draw = numpy_generator(seed, "capital")
    country = str(draw.choice(sorted(CAPITALS)))
    others = sorted({*OTHER_CITIES, *CAPITALS.values()} - {CAPITALS[country]})
    listed = [CAPITALS[country], *draw.choice(others, 4, replace=False).tolist()]
    listed = [listed[index] for index in draw.permutation(5)]
    question = f"Which of these cities is the capital of {country}: {', '.join(listed)}? "
    question += "Reply with the name of the city and nothing else."
    return Task(question, f"({'|'.join(map(re.escape, listed))})")


def review(seed: int) -> Task:
    """A review as JSON with stars and one of four tones: a JSON schema, and an example in the question."""
    draw = numpy_generator(seed, "review")
    first, second = draw.choice(REMARKS, 2, replace=False).tolist()
    stars = int(draw.integers(*STARS)) + 0.5
    listed = draw.choice(TONES, 4, replace=False).tolist()
    question = f'Review: "{first}, but {second[0].lower()}{second[1:]}. I give it {stars} stars."\n'
    question += f'Reply with JSON: "stars" is a number from {STARS[0]} to {STARS[1]}, '
    question += f'"tone" is one of {", ".join(json.dumps(tone) for tone in listed)}.\n'
    question += f"For example: {json.dumps({'stars': 3, 'tone': listed[0]})}"
    schema = {
        "type": "object",
        "properties": {
            "stars": {"type": "integer", "minimum": STARS[0], "maximum": STARS[1]},
            "tone": {"enum": listed},
        },
        "required": ["stars", "tone"],
        "additionalProperties": False,
        # One way to write each value: the strings that the rule allows can be counted.
        "x-guidance": {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "},
    }
    return Task(question, json.dumps(schema))


TASKS = {"regex": capital, "json-schema": review}
"""Task of a seed, by the kind of its rule."""
