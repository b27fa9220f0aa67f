"""Verdicts, origins and error rates of claims, without heavy imports."""

from typing import Literal

Origin = Literal["published", "ours"]
ORIGINS: tuple[Origin, ...] = ("published", "ours")

ALPHA = 0.05
"""Total error rate of the registered claims of one study and one origin ("published" or "ours")."""

INSTEAD = "instead of"
"""Words in the remark with the number of repetitions that would decide a claim."""

LATE = "registered after the run"

Answer = Literal["holds", "refuted", "undecided", "not tested", "altered since the run"]
ANSWERS: tuple[Answer, ...] = ("holds", "refuted", "undecided", "not tested", "altered since the run")

WITHDRAWN: Literal["withdrawn"] = "withdrawn"
"""The verdict shown for a withdrawn claim."""

LedgerAnswer = Answer | Literal["withdrawn"]
LEDGER_ANSWERS: tuple[LedgerAnswer, ...] = (*ANSWERS, WITHDRAWN)
"""All verdicts, in the order of the tables."""

NOT_PRINTED = "not printed"
"""Value of `Claim.published` if the publication gives no number."""
