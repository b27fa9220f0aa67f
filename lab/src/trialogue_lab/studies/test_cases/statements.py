"""Statements about a model, and the claims that each becomes: on the pretrained model, and on models from scratch."""

from collections.abc import Callable
from dataclasses import dataclass

from trialogue_lab.ledger import NOT_PRINTED, Claim, Criterion, cited, ours
from trialogue_lab.studies.test_cases.config import Role
from trialogue_lab.studies.test_cases.decodings import DecodingRule
from trialogue_lab.studies.test_cases.statistics import gain

THESIS = "Thesis section 3.2.2"
SETTING = (
    "SmolLM2 of 135 million parameters is asked for 4 test cases in at most 96 tokens, 3 names by 4 runs a repetition, "
    "with a demonstration of the target function in the prompt; the source asks CodeLlama-7B for 8, 10 names by 10 "
    "runs, without one."
)
MARGIN = 0.05
"""By how much two distinct accuracies may differ and be called the same."""

CriterionOf = Callable[[Role], Criterion]
"""Make the criterion of a statement for one of the two models."""


@dataclass(frozen=True)
class Statement:
    """A statement about either model.

    Args:
        id: Identifier of the claim on the pretrained model.
        words: The statement.
        criterion: Makes the criterion for one of the two models.
        published: The thesis' words or numbers.
        source: Place within the thesis' section.
        entry: Identifier of the thesis' statement. Empty for statements of this project.
    """

    id: str
    words: str
    criterion: CriterionOf
    published: str = NOT_PRINTED
    source: str = ""
    entry: str = ""

    @property
    def on_pretrained(self) -> Claim:
        """The claim on the pretrained model of the run. A margin is a grade."""
        criterion, place = self.criterion("pretrained"), f"{THESIS}, {self.source}"
        if not self.entry:
            return ours(self.id, self.words, criterion, place, self.published)
        graded = criterion.direction == "equal"
        citation = cited(place, self.published, f"thesis:{self.entry}", grade=graded, setting=SETTING)
        return Claim(self.id, self.words, criterion, **citation)

    @property
    def on_both(self) -> tuple[Claim, Claim]:
        """The claim on the pretrained model, and the same claim on models from scratch, which is ours."""
        from_scratch = ours(
            f"{self.id}-from-scratch",
            f"Trained from scratch on flawed completions alone: {self.words}",
            self.criterion("scratch"),
            f"{THESIS}, {self.source}",
            self.published,
        )
        return self.on_pretrained, from_scratch


def more(first: DecodingRule, second: DecodingRule, column: str = "accuracy_distinct") -> CriterionOf:
    """Make the criterion that a number, by default distinct accuracy, is higher with the first decoding."""
    return lambda role: gain(first, second, role, column) > 0


def same(first: DecodingRule, second: DecodingRule) -> CriterionOf:
    """Make the criterion that two decodings have the same distinct accuracy within the margin."""
    return lambda role: gain(first, second, role).near(0, MARGIN)
