"""Verifiers in Python: `even` for a question in `questions.jsonl`, and `no_e` for the guide on functions."""


def even(text: str) -> bool:
    """Accept even numbers.

    Use this verifier with `--verifier-whole`, because a prefix of an even number may be odd.
    """
    return int(text) % 2 == 0


def no_e(text: str) -> bool:
    """Accept texts without the letter "e". An unfinished text is accepted if a continuation can be accepted."""
    return "e" not in text
