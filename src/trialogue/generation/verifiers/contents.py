"""Parsing of the content of a verifier spec: files, functions and thresholds."""

from pathlib import Path

from trialogue.errors import InputError
from trialogue.validation import PositiveShare, check


def is_inline(content: str) -> bool:
    """Return whether the content of a verifier spec is JSON itself rather than the name of a file.

    Args:
        content: Text after the colon of a spec KIND:CONTENT.
    """
    return content.lstrip().startswith(("{", "["))


def file_unless_inline(content: str) -> Path | None:
    """Return the file that the content of a verifier spec names, or None if the content is JSON itself.

    Args:
        content: Text after the colon of a spec KIND:CONTENT.
    """
    return None if is_inline(content) else Path(content)


def file_of_function(content: str) -> Path:
    """Return the path in the content of a verifier spec that names a Python function.

    Args:
        content: Text of the form FILE:FUNCTION.

    Raises:
        ValueError: If the text has another form.
    """
    file, _, function = content.rpartition(":")
    if not file or not function:
        raise ValueError
    return Path(file)


def file_of_probe(content: str) -> Path:
    """Return the path in the content of a verifier spec that names a probe.

    Args:
        content: Text of the form FILE or FILE@THRESHOLD.

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
    """Return the number after the last "@" of `content`, or None if no number follows."""
    try:
        return float(content.rpartition("@")[2]) if "@" in content else None
    except ValueError:
        return None


def content_of(spec: str, path: Path) -> bytes:
    """Read a file that a verifier spec names.

    Args:
        spec: The spec, for the error message.
        path: Path of the file.

    Raises:
        InputError: If the file cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            "verifier", spec, f"the file {path} cannot be read: {error.strerror or error}"
        ) from None


def text_of(spec: str, path: Path) -> str:
    """Read a UTF-8 file that a verifier spec names.

    Args:
        spec: The spec, for the error message.
        path: Path of the file.

    Raises:
        InputError: If the file cannot be read or is not UTF-8.
    """
    try:
        return content_of(spec, path).decode()
    except UnicodeDecodeError:
        raise InputError("verifier", spec, f"the file {path} is not UTF-8 text") from None
