"""Preparation of the words of a command line for parsing."""

from collections.abc import Collection, Iterable, Sequence


def join_values(words: Iterable[str], options: Collection[str]) -> list[str]:
    """Join options and their values into single words, for example `--stop a` into `--stop=a`.

    The word after an option is its value, unless it begins with a dash. Numbers and texts of several words
    may begin with a dash.

    Args:
        words: Words of the command line.
        options: Options that take a value.

    Returns:
        The words of the command line with joined options.
    """
    waiting = list(words)[::-1]
    result: list[str] = []
    while waiting:
        word = waiting.pop()
        if word in options and waiting and _is_value(waiting[-1], options):
            word = f"{word}={waiting.pop()}"
        result.append(word)
    return result


def find_option_value(option: str, words: Sequence[str]) -> str | None:
    """Return the value of an option that is given as `--option=value`.

    Args:
        option: The option with its dashes.
        words: Words of the command line.

    Returns:
        The last value, or None if the option is not given.
    """
    values = [word.partition("=")[2] for word in words if word.startswith(f"{option}=")]
    return values[-1] if values else None


def option_name(name: str) -> str:
    """Return the option of a field, for example "--top-p" for "top_p".

    Args:
        name: Name of the field.
    """
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
