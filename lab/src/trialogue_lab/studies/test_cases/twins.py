"""One statement as a claim on the pretrained model and as one on models that are trained from scratch."""

from collections.abc import Callable
from dataclasses import dataclass

from trialogue_lab.ledger import Claim, Criterion
from trialogue_lab.ledger.claims.claims import NOT_PRINTED, Origin
from trialogue_lab.studies.test_cases.subjects import Role

THESIS = "Thesis section 3.2.2"
SETTING = (
    "SmolLM2 of 135 million parameters is asked for 4 test cases in at most 96 tokens, 3 names by 4 runs a repetition, "
    "with a demonstration of the target function in the prompt; the source asks CodeLlama-7B for 8, 10 names by 10 "
    "runs, without one."
)
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
    entry: str = ""
    """Identifier of the thesis' statement; empty for statements of ours."""


def on_pretrained(statement: Statement) -> Claim:
    """The claim on the pretrained model of the run; a margin is a grade."""
    criterion = statement.criterion("pretrained")
    is_published = statement.origin == "published"
    return Claim(
        statement.id,
        statement.words,
        criterion,
        f"{THESIS}, {statement.source}",
        statement.published,
        statement.origin,
        grade=is_published and criterion.direction == "equal",
        statement_id=f"thesis:{statement.entry}" if is_published else "",
        setting=SETTING if is_published else "",
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
