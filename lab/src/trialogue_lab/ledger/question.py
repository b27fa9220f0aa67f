"""The question that a study answers, read from its docstring."""


def first_paragraph(doc: str | None) -> str:
    """Return the first paragraph of a docstring on one line, or an empty text if there is no docstring."""
    return " ".join((doc or "").strip().partition("\n\n")[0].split())
