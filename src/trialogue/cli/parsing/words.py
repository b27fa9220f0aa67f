"""Words of a command line, before the parser reads them: which of them are values, and of which option."""

from collections.abc import Collection, Iterable, Sequence


def attached(words: Iterable[str], options: Collection[str]) -> list[str]:
    """`words` with values attached to those `options` that take one: `--stop a` as `--stop=a`.

    A word is a value unless it looks like an option: it begins with a dash, and is neither a number nor, like a
    sentence that begins with one, of several words.
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
    """The last value that is attached to `option`, None where there is none."""
    values = [word.partition("=")[2] for word in words if word.startswith(f"{option}=")]
    return values[-1] if values else None


def option_of(name: str) -> str:
    """The option that sets the field `name`."""
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
