"""Questions to a chat model, and the constraints on their answers. A seed selects one question of each kind."""

import json
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from trialogue.randomness import numpy_generator

_DATA = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
CAPITALS: dict[str, str] = _DATA["capitals"]
STARS = (1, 5)


@dataclass(frozen=True)
class Question:
    """A question for a language model, with a constraint on the answer.

    Args:
        question: Text of the question.
        constraint: A regular expression or a JSON schema that the answer must match.
    """

    question: str
    constraint: str


def make_capital_question(seed: int) -> Question:
    """Return a multiple-choice question about the capital of a country.

    Args:
        seed: Seed that selects the country and five cities.

    Returns:
        The question, and a regular expression that matches exactly the five cities.
    """
    random = numpy_generator(seed, "capital")
    country = str(random.choice(sorted(CAPITALS)))
    others = sorted({*_DATA["other_cities"], *CAPITALS.values()} - {CAPITALS[country]})
    listed = [CAPITALS[country], *random.choice(others, 4, replace=False).tolist()]
    listed = [listed[index] for index in random.permutation(5)]
    question = f"Which of these cities is the capital of {country}: {', '.join(listed)}? "
    question += "Reply with the name of the city and nothing else."
    return Question(question, f"({'|'.join(map(re.escape, listed))})")


def make_review_question(seed: int) -> Question:
    """Return a question about the rating and the tone of a product review.

    Args:
        seed: Seed that selects the remarks of the review, the number of stars and the possible tones.

    Returns:
        The question with an example answer, and a JSON schema for the answer.
    """
    random = numpy_generator(seed, "review")
    first, second = random.choice(_DATA["remarks"], 2, replace=False).tolist()
    stars = int(random.integers(*STARS)) + 0.5
    listed = random.choice(_DATA["tones"], 4, replace=False).tolist()
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
        # Every value has one spelling, so that the allowed strings can be enumerated.
        "x-guidance": {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "},
    }
    return Question(question, json.dumps(schema))


TASKS = {"regex": make_capital_question, "json-schema": make_review_question}
"""Functions from a seed to a question, by the kind of the constraint."""
