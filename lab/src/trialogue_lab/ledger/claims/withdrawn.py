"""Withdrawn claims, which a study no longer makes. They stay in the ledger with their last verdict."""

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from trialogue.errors import InputError
from trialogue.validation import validated
from trialogue_lab.ledger.claims.claims import Origin
from trialogue_lab.ledger.claims.documents import check_statement_id
from trialogue_lab.ledger.claims.verdicts import Answer

WITHDRAWN: Literal["withdrawn"] = "withdrawn"
"""The verdict shown for a withdrawn claim."""


@validated
@dataclass(frozen=True, kw_only=True)
class WithdrawnClaim:
    """A registered claim that its study no longer makes.

    Args:
        id: Name of the claim.
        statement: The statement as registered.
        origin: "published" or "ours", as registered.
        source: Place in the source.
        published: The source's words or numbers at that place.
        statement_id: The source's statement, as in `Claim`. Empty for claims of "ours".
        last_verdict: The last verdict before the claim was withdrawn.
        estimate: The last estimate, NaN if unknown.
        low: Lower end of the last interval, NaN if unknown.
        high: Upper end of the last interval, NaN if unknown.
        result: Hash of the result of the last verdict, empty if unknown.
        withdrawn_on: Date of the withdrawal, as YYYY-MM-DD.
        reason: Why the claim was withdrawn, and which claim replaces it, if any.
    """

    id: str
    statement: str
    origin: Origin
    source: str
    published: str
    statement_id: str
    last_verdict: Answer
    withdrawn_on: str
    reason: str
    estimate: float = math.nan
    low: float = math.nan
    high: float = math.nan
    result: str = ""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", self.withdrawn_on):
            raise InputError("withdrawn_on", self.withdrawn_on, f"claim {self.id}: use a date YYYY-MM-DD")
        if self.statement_id:
            check_statement_id(self.statement_id, self.id)


def read_withdrawn(path: Path) -> tuple[WithdrawnClaim, ...]:
    """Read the withdrawn claims of a study.

    Args:
        path: A JSON file with a list of objects, one per claim. Fields that are null have their defaults.

    Returns:
        The claims in the order of the file. Empty if the file does not exist.

    Raises:
        InputError: The file cannot be read, or an object has missing, unknown or invalid fields.
    """
    if not path.is_file():
        return ()
    try:
        entries: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
        known = [{name: value for name, value in entry.items() if value is not None} for entry in entries]
        return tuple(WithdrawnClaim(**fields) for fields in known)
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise InputError("withdrawn", str(path), f"cannot be read: {error}") from error
