"""Verifier of a question in `questions.jsonl`."""


def even(text: str) -> bool:
    """Accept even numbers.

    Use this verifier with `--verifier-whole`, because a prefix of an even number may be odd.
    """
    return int(text) % 2 == 0
