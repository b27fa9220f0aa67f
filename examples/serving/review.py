"""Request reviews that obey a JSON schema from `trialogue serve` with the OpenAI client.

trialogue serve --model smollm2
python review.py http://127.0.0.1:8000/v1
"""

import json
import sys
from typing import Any

from openai import OpenAI

SCHEMA = {
    "type": "object",
    "properties": {"stars": {"enum": [1, 2, 3, 4, 5]}, "tone": {"enum": ["angry", "calm", "happy"]}},
    "required": ["stars", "tone"],
    "additionalProperties": False,
}
FORMAT: Any = {"type": "json_schema", "json_schema": {"name": "review", "schema": SCHEMA}}
MESSAGES: Any = [{"role": "user", "content": 'Rate this review as JSON: "Cold soup, rude waiter."'}]


def reviews(client: OpenAI, model: str) -> list[tuple[dict[str, Any], float]]:
    """Return up to four accepted reviews with their log importance weights."""
    completion = client.chat.completions.create(
        model=model, messages=MESSAGES, n=4, seed=0, response_format=FORMAT
    )
    return [
        (json.loads(choice.message.content or ""), choice.trialogue["log_weight"])
        for choice in completion.choices
        if choice.trialogue["accepted"]
    ]


def main() -> None:
    """Print the reviews from the server at the given address."""
    client = OpenAI(base_url=sys.argv[1], api_key="none")
    [model] = client.models.list().data
    for review, log_weight in reviews(client, model.id):
        print(f"{log_weight:8.2f}  {review}")


if __name__ == "__main__":
    main()
