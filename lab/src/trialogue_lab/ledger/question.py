"""The question that a study answers, taken from its docstring."""


def first_paragraph(doc: str | None) -> str:
    """Return the first paragraph of a docstring on one line, or "" for None."""
    return " ".join((doc or "").strip().partition("\n\n")[0].split())
