"""Parsing of the content of a verifier spec: files, functions and thresholds."""

from pathlib import Path

from trialogue.errors import InputError
from trialogue.validation import PositiveShare, check


def is_inline(content: str) -> bool:
    """Return whether `content` is JSON rather than the name of a file."""
    return content.lstrip().startswith(("{", "["))


def file_unless_inline(content: str) -> Path | None:
    """Return the path of the file, or None if `content` is JSON."""
    return None if is_inline(content) else Path(content)


def file_of_function(content: str) -> Path:
    """Return the path in FILE:FUNCTION. Raises `ValueError` for any other form."""
    file, _, function = content.rpartition(":")
    if not file or not function:
        raise ValueError
    return Path(file)


def file_of_probe(content: str) -> Path:
    """Return the path in FILE[@THRESHOLD].

    Raises:
        InputError: If the threshold is not above 0 and at most 1.
    """
    threshold = threshold_of(content)
    if threshold is None:
        return Path(content)
    hint = "use a probability above 0 and at most 1 as the threshold of a probe"
    check("threshold", threshold, PositiveShare, hint)
    return Path(content.rpartition("@")[0])


def threshold_of(content: str) -> float | None:
    """Return the number after the last "@", or None if no number follows."""
    try:
        return float(content.rpartition("@")[2]) if "@" in content else None
    except ValueError:
        return None


def content_of(spec: str, path: Path) -> bytes:
    """Return the bytes of the file at `path`. Raises `InputError` if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            "verifier", spec, f"the file {path} cannot be read: {error.strerror or error}"
        ) from None


def text_of(spec: str, path: Path) -> str:
    """Return the text of the file at `path`. Raises `InputError` if it is not UTF-8."""
    try:
        return content_of(spec, path).decode()
    except UnicodeDecodeError:
        raise InputError("verifier", spec, f"the file {path} is not UTF-8 text") from None
