"""Preprocessing of the words of a command line."""

from collections.abc import Collection, Iterable, Sequence


def attached(words: Iterable[str], options: Collection[str]) -> list[str]:
    """Attach values to their options, for example `--stop a` as `--stop=a`.

    A word is a value unless it looks like an option. Words that begin with a dash are options, except for
    numbers and texts of several words.

    Args:
        words: Words of the command line.
        options: Options that take a value.
    """
    waiting = list(words)[::-1]
    result: list[str] = []
    while waiting:
        word = waiting.pop()
        if word in options and waiting and _is_value(waiting[-1], options):
            word = f"{word}={waiting.pop()}"
        result.append(word)
    return result


def value_of(option: str, words: Sequence[str]) -> str | None:
    """Return the last value attached to `option`, or None."""
    values = [word.partition("=")[2] for word in words if word.startswith(f"{option}=")]
    return values[-1] if values else None


def option_of(name: str) -> str:
    """Return the option that sets the field `name`."""
    return f"--{name.replace('_', '-')}"


def _is_value(word: str, options: Collection[str]) -> bool:
    if not word.startswith("-") or word == "-":
        return True
    if word.partition("=")[0] in options:
        return False
    try:
        float(word)
    except ValueError:
        return " " in word
    return True
