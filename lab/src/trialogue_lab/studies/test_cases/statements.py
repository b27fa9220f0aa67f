"""Statements about a language model, and the claims for the pretrained model and for models from scratch."""

from collections.abc import Callable
from dataclasses import dataclass

from trialogue_lab.ledger import NOT_PRINTED, Claim, Criterion, cited, ours
from trialogue_lab.studies.test_cases.config import Role
from trialogue_lab.studies.test_cases.decodings import DecodingRule
from trialogue_lab.studies.test_cases.statistics import gain

THESIS = "Thesis section 3.2.2"
SETTING = (
    "SmolLM2 with 135 million parameters is prompted for 4 test cases in at most 96 tokens, for 3 names with 4 runs "
    "per repetition. Its prompts contain a demonstration of the target function. The source prompts CodeLlama-7B for "
    "8 test cases, for 10 names with 10 runs, without a demonstration."
)
MARGIN = 0.05
"""Largest difference of two accuracies that count as equal."""

CriterionOf = Callable[[Role], Criterion]
"""Function that returns the criterion of a statement for one of the two models."""


@dataclass(frozen=True)
class ModelStatement:
    """A statement that is tested on the pretrained model and on models from scratch.

    Args:
        id: Identifier of the claim about the pretrained model.
        words: The statement.
        criterion: Function that returns the tested criterion for one of the two models, "pretrained" or "scratch"
            (trained from scratch).
        published: Words or numbers of the thesis.
        source: Place within the section of the thesis.
        entry: Identifier of the statement in the list of the thesis' statements. Empty for statements of this project.
    """

    id: str
    words: str
    criterion: CriterionOf
    published: str = NOT_PRINTED
    source: str = ""
    entry: str = ""

    @property
    def on_pretrained(self) -> Claim:
        """The claim about the pretrained model.

        If the criterion is that two values are equal within a margin, this project chose the margin, and `Claim.grade`
        is true.
        """
        criterion, place = self.criterion("pretrained"), f"{THESIS}, {self.source}"
        if not self.entry:
            return ours(self.id, self.words, criterion, place, self.published)
        graded = criterion.direction == "equal"
        citation = cited(place, self.published, f"thesis:{self.entry}", grade=graded, setting=SETTING)
        return Claim(self.id, self.words, criterion, **citation)

    @property
    def on_both(self) -> tuple[Claim, Claim]:
        """The published claim about the pretrained model, and our claim about models trained from scratch."""
        from_scratch = ours(
            f"{self.id}-from-scratch",
            f"Trained from scratch on flawed completions alone: {self.words}",
            self.criterion("scratch"),
            f"{THESIS}, {self.source}",
            self.published,
        )
        return self.on_pretrained, from_scratch


def more(first: DecodingRule, second: DecodingRule, column: str = "accuracy_distinct") -> CriterionOf:
    """Return a function that creates a criterion: the first decoding method exceeds the second.

    Args:
        first: Method with the larger value.
        second: Method with the smaller value.
        column: Name of the value. The default is distinct accuracy, the number of different correct test cases divided
            by the number of requested cases.

    Returns:
        Function that returns the criterion for one of the two models, "pretrained" or "scratch" (trained from scratch).
    """
    return lambda role: gain(first, second, role, column) > 0


def same(first: DecodingRule, second: DecodingRule) -> CriterionOf:
    """Return a function that creates a criterion: two decoding methods are equally accurate.

    The accuracy is the number of different correct test cases, divided by the number of requested cases. Accuracies
    count as equal if they differ by at most 0.05.

    Args:
        first: One method.
        second: The other method.

    Returns:
        Function that returns the criterion for one of the two models, "pretrained" or "scratch" (trained from scratch).
    """
    return lambda role: gain(first, second, role).near(0, MARGIN)
