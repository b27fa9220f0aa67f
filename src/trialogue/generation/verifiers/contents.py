"""Parsing of the part after the colon in a verifier specification such as "probe:FILE@0.5"."""

from pathlib import Path

from trialogue.errors import InputError
from trialogue.validation import PositiveShare, check


def is_inline(content: str) -> bool:
    """Return whether the content of a verifier spec is JSON itself, rather than a file name.

    Args:
        content: Text after the colon of a spec KIND:CONTENT.
    """
    return content.lstrip().startswith(("{", "["))


def parse_json_path(content: str) -> Path | None:
    """Return the path of the file in a verifier spec, or None if the content is JSON itself.

    Args:
        content: Text after the colon of a spec KIND:CONTENT.
    """
    return None if is_inline(content) else Path(content)


def parse_function_path(content: str) -> Path:
    """Return the path of the Python file in a verifier spec of the form FILE:FUNCTION.

    Args:
        content: Text of the form FILE:FUNCTION.

    Raises:
        ValueError: If the text has another form.
    """
    file, _, function = content.rpartition(":")
    if not file or not function:
        raise ValueError
    return Path(file)


def parse_probe_path(content: str) -> Path:
    """Return the path of the probe in a verifier spec of the form FILE or FILE@THRESHOLD.

    Args:
        content: Text of the form FILE or FILE@THRESHOLD.

    Raises:
        InputError: If the threshold is not above 0 and at most 1.
    """
    threshold = parse_threshold(content)
    if threshold is None:
        return Path(content)
    hint = "use a probability above 0 and at most 1 as the threshold of a probe"
    check("threshold", threshold, PositiveShare, hint)
    return Path(content.rpartition("@")[0])


def parse_threshold(content: str) -> float | None:
    """Return the number after the last "@" of `content`, or None if there is no number."""
    try:
        return float(content.rpartition("@")[2]) if "@" in content else None
    except ValueError:
        return None


def read_bytes(spec: str, path: Path) -> bytes:
    """Read a file that a verifier spec refers to.

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


def read_text(spec: str, path: Path) -> str:
    """Read a UTF-8 file that a verifier spec refers to.

    Args:
        spec: The spec, for the error message.
        path: Path of the file.

    Raises:
        InputError: If the file cannot be read or is not UTF-8.
    """
    try:
        return read_bytes(spec, path).decode()
    except UnicodeDecodeError:
        raise InputError("verifier", spec, f"the file {path} is not UTF-8 text") from None
