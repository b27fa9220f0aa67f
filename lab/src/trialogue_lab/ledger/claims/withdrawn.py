"""Withdrawn claims: claims that a study no longer makes, kept on record with their last verdict."""

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trialogue.errors import InputError
from trialogue.validation import validated
from trialogue_lab.ledger.claims.answers import WITHDRAWN as WITHDRAWN
from trialogue_lab.ledger.claims.answers import Answer, Origin
from trialogue_lab.ledger.claims.documents import check_statement_id


@validated
@dataclass(frozen=True, kw_only=True)
class WithdrawnClaim:
    """A claim that its study no longer makes, with its last verdict.

    Args:
        id: Name of the claim.
        statement: The statement as it was saved before the run.
        origin: "published" or "ours" (made by this project).
        source: Place in the publication.
        published: Words or numbers of the publication at that place.
        statement_id: Id of the tested statement, as in `Claim`. Empty for "ours".
        last_verdict: Last verdict before the withdrawal.
        estimate: Last mean of the statistic, NaN if unknown.
        low: Lower end of the last confidence interval, NaN if unknown.
        high: Upper end of the last confidence interval, NaN if unknown.
        result: Hash of the result with the last verdict, empty if unknown.
        withdrawn_on: Date as YYYY-MM-DD.
        reason: Why the claim was withdrawn, and the id of its replacement, if any.
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
    """Read the withdrawn claims of a study from a JSON file.

    Args:
        path: File with a list of objects, one per claim. A field that is null gets its default.

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
