"""Fields of a dataclass instance set from the command line, typed by its class."""

import contextlib
import dataclasses
import difflib
import io
from collections.abc import Sequence
from typing import Any, TypeVar

from trialogue.errors import InputError

Instance = TypeVar("Instance")


def override(
    default: Instance,
    tokens: Sequence[str],
    *,
    name: str,
    prog: str,
    description: str,
    options: Sequence[str] = (),
) -> Instance:
    """`default`, an instance of a dataclass, with the fields that the command line's `tokens` set.

    `name` is what the fields belong to, `prog` and `description` head the help that `--help` among the tokens
    prints. `options`, such as "--seed", are what the command knows besides: an unknown word may be meant for one of
    them. Raises `InputError` for an unknown field, a value of the wrong type, or one that the class refuses.
    """
    import tyro

    own: Any = default
    fields = {field.name: getattr(own, field.name) for field in dataclasses.fields(own) if field.init}
    # The class without its own checks: they run below, on the whole instance, where their error keeps its words.
    unchecked: Any = type(type(own).__name__, (type(own),), {"__post_init__": lambda _: None})
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            parsed, unknown = tyro.cli(
                unchecked,
                prog=prog,
                description=description,
                args=list(tokens),
                default=unchecked(**fields),
                return_unknown_args=True,
            )
    except SystemExit as error:
        if not error.code:
            raise
        raise InputError("fields", " ".join(tokens), _first_words(complaint.getvalue())) from None
    if unknown:
        if options:
            raise _unknown(unknown[0], name, prog, [*fields], options)
        close = difflib.get_close_matches(unknown[0].lstrip("-").replace("-", "_"), fields, n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else f"the fields are {', '.join(fields)}"
        raise InputError("field", unknown[0], f"{name} has no such field: {hint}")
    return dataclasses.replace(own, **{field: getattr(parsed, field) for field in fields})


def _unknown(word: str, name: str, prog: str, fields: Sequence[str], options: Sequence[str]) -> InputError:
    """The error for a `word` that is neither one of `fields` nor one of the command's `options`."""
    if not word.startswith("-"):
        mend = "no option takes it: put a text of several words into quotation marks"
        return InputError("word", word, f"{mend} (`{prog} --help` lists the options)")
    known = [*(f"--{field.replace('_', '-')}" for field in fields), *options]
    close = difflib.get_close_matches(word.partition("=")[0], known, n=1)
    hint = f"did you mean {close[0]}?" if close else f"`{prog} --help` lists what there is"
    return InputError("option", word, f"neither the command nor {name} has it: {hint}")


def _first_words(box: str) -> str:
    """The first paragraph inside the box that tyro draws around an error, on one line."""
    lines = [line.strip("│ ") for line in box.splitlines() if line.startswith("│")]
    paragraph: list[str] = []
    for line in lines:
        if set(line) == {"─"}:
            break
        paragraph.append(line)
    return " ".join(paragraph) or " ".join(box.split())
