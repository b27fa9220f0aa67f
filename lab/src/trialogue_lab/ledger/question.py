"""The question of a study: the first paragraph of its docstring."""


def question_of(doc: str | None) -> str:
    """The first paragraph of a study's docstring, on one line."""
    return " ".join((doc or "").strip().partition("\n\n")[0].split())
