"""Settings of the study: the model and the named words."""

from dataclasses import dataclass
from itertools import chain
from typing import Annotated

from annotated_types import MinLen

from trialogue.errors import InputError
from trialogue.validation import Different
from trialogue_lab.ledger import Settings
from trialogue_lab.studies.topic_pretrained.config import MODELS
from trialogue_lab.studies.topic_pretrained.tiny import list_synthetic_words

Topic = Annotated[Different[str], MinLen(2)]


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run.

    Args:
        model: Hub id, folder, file or short name of the model.
        tiny: Whether to replace the model by a small one with random weights, for tests.
        topics: Words of each topic. Each word must be one token of the model. The default has the words of Figure 2.3.
    """

    model: str = MODELS["minilm"].location
    tiny: bool = False
    topics: Annotated[tuple[Topic, ...], MinLen(2)] = (
        ("frog", "toad", "lizard"),
        ("mozart", "beethoven", "schubert"),
        ("algebra", "arithmetic", "calculus"),
    )

    def check(self) -> None:
        """Raise `InputError` if a word belongs to two topics."""
        words = list(chain(*self.topics))
        if len(set(words)) < len(words):
            raise InputError("topics", self.topics, "use every word in one topic only")


_SYNTHETIC = list_synthetic_words()

PRESETS = {
    "smoke": Config(tiny=True, topics=(tuple(_SYNTHETIC[:2]), tuple(_SYNTHETIC[10:12]))),
    "pilot": Config(topics=(("cat", "dog", "horse"), ("piano", "violin", "guitar"))),
    "default": Config(),
}
