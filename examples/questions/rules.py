"""A rule that a question of `questions.jsonl` has of its own."""


def even(text: str) -> bool:
    """Accept even numbers. Asked about whole texts only (`--verifier-whole`): 1 may become 12."""
    return int(text) % 2 == 0
