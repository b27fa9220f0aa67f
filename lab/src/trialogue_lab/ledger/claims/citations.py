"""Citations: the fields of a claim that say where its source states it."""

from collections.abc import Sequence
from typing import Any

from trialogue_lab.ledger.claims.claims import Precondition


def cited(
    source: str,
    published: str,
    statement_id: str,
    *,
    grade: bool = False,
    setting: str = "",
    preconditions: Sequence[Precondition] = (),
) -> dict[str, Any]:
    """Return the fields of a published `Claim` that say where the source states it, and how our setting differs.

    Example:
        `Claim("ours-is-better", "Ours is better.", gain() > 0, **cited("Table 1", "0.3", "thesis:V-T31"))`
    """
    return {
        "source": source,
        "published": published,
        "statement_id": statement_id,
        "grade": grade,
        "setting": setting,
        "preconditions": tuple(preconditions),
    }
