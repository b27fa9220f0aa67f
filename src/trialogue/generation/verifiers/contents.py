"""What a verifier's spec holds behind the colon: files, functions in them, and thresholds."""

from pathlib import Path

from trialogue.errors import InputError
from trialogue.validation import PositiveShare, check


def is_inline(content: str) -> bool:
    """Whether JSON is given itself, and not the name of its file."""
    return content.lstrip().startswith(("{", "["))


def file_unless_inline(content: str) -> Path | None:
    """The file of FILE, None where what would be in it stands there."""
    return None if is_inline(content) else Path(content)


def file_of_function(content: str) -> Path:
    """The file of FILE:FUNCTION; raises `ValueError` for another form."""
    file, _, function = content.rpartition(":")
    if not file or not function:
        raise ValueError
    return Path(file)


def file_of_probe(content: str) -> Path:
    """The file of FILE[@THRESHOLD]; raises `InputError` for a threshold that no probability reaches, or every one."""
    threshold = threshold_of(content)
    if threshold is None:
        return Path(content)
    hint = "the threshold of a probe is a probability above 0: 1 accepts only what is certain"
    check("threshold", threshold, PositiveShare, hint)
    return Path(content.rpartition("@")[0])


def threshold_of(content: str) -> float | None:
    """The number behind the last @, if it is one: a file's name may hold an @ as well."""
    try:
        return float(content.rpartition("@")[2]) if "@" in content else None
    except ValueError:
        return None


def content_of(spec: str, path: Path) -> bytes:
    """The file at `path` that `spec` names; raises `InputError` where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            "verifier", spec, f"the file {path} cannot be read: {error.strerror or error}"
        ) from None


def text_of(spec: str, path: Path) -> str:
    """The text of the file at `path` that `spec` names; raises `InputError` where it is none."""
    try:
        return content_of(spec, path).decode()
    except UnicodeDecodeError:
        raise InputError("verifier", spec, f"the file {path} is not UTF-8 text") from None
