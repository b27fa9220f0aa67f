"""Pilots: small trial runs with separate seeds, from which the statistical power of later runs is estimated.

A pilot is never evidence for a claim and never changes a published claim.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter

from trialogue.errors import InputError
from trialogue.storage import atomic_write


@dataclass(frozen=True, kw_only=True)
class Pilot:
    """Estimates from a pilot, a small trial run that serves to estimate statistical power.

    Args:
        seeds: Seeds of the pilot, which no other run uses.
        commit: Git commit of the code, None if unknown.
        rows_sha256: SHA-256 hash of the measurements, None if unknown.
        estimates: By name of statistic, one estimate per replication.
    """

    __pydantic_config__ = ConfigDict(ser_json_inf_nan="constants")

    seeds: tuple[int, ...] = ()
    commit: str | None = None
    rows_sha256: str | None = None
    estimates: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def write(self, path: Path) -> Path:
        """Write the pilot to the JSON file `path`, and return the path."""
        return atomic_write(path, TypeAdapter(Pilot).dump_json(self, indent=1).decode() + "\n")


def read_pilot(path: Path) -> Pilot:
    """Read a pilot from a JSON file. It is empty if the file does not exist.

    Raises:
        InputError: The file cannot be read or has invalid contents.
    """
    if not path.is_file():
        return Pilot()
    try:
        return TypeAdapter(Pilot).validate_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError("pilot", str(path), "is not valid: run `trialogue pilot` again") from error
