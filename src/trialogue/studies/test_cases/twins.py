"""One statement as a claim on the pretrained model and as one on models that are trained from scratch."""

from collections.abc import Callable
from dataclasses import dataclass

from trialogue.ledger import Claim, Criterion
from trialogue.ledger.claims.claims import NOT_PRINTED, Origin
from trialogue.studies.test_cases.subjects import Role

THESIS = "Thesis section 3.2.2"
MARGIN = 0.05
"""By how much two distinct accuracies may differ and be called the same."""


@dataclass(frozen=True)
class Statement:
    """What is claimed of either model: the criterion is made for one of them. `source` is within the section."""

    id: str
    words: str
    criterion: Callable[[Role], Criterion]
    source: str
    published: str = NOT_PRINTED
    origin: Origin = "published"


def on_pretrained(statement: Statement) -> Claim:
    """The claim on the pretrained model of the run; a margin is a grade."""
    criterion = statement.criterion("pretrained")
    return Claim(
        statement.id,
        statement.words,
        criterion,
        f"{THESIS}, {statement.source}",
        statement.published,
        statement.origin,
        grade=statement.origin == "published" and criterion.direction == "equal",
    )


def on_both(statement: Statement) -> list[Claim]:
    """The claim on the pretrained model, and the same on models from scratch, which is ours."""
    return [
        on_pretrained(statement),
        Claim(
            f"{statement.id}-from-scratch",
            f"Trained from scratch on flawed completions alone: {statement.words}",
            statement.criterion("scratch"),
            f"{THESIS}, {statement.source}",
            statement.published,
            "ours",
        ),
    ]
