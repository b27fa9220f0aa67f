"""Settings of the study: the text and clones of the study `clones`, and the decoder that is measured on them."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from annotated_types import Ge

from trialogue.models.networks.transformer import TransformerConfig
from trialogue.training.config import TrainingConfig
from trialogue_lab.ledger import Count, Positive
from trialogue_lab.models.published import gpt_neo
from trialogue_lab.studies.clones.config import PRESETS as CLONES
from trialogue_lab.studies.clones.config import CloneSettings
from trialogue_lab.training.published import gpt_neo_training


@dataclass(frozen=True, kw_only=True)
class Config(CloneSettings):
    """Settings of a run of the study.

    One decoder is trained per seed on a text, and its losses on clones are recorded. A clone is a set of sequences
    sampled from another network trained on the text. Seeds differ in the order of the training data.

    Args:
        decoder_size: "published" for the GPT-Neo of the paper, or "small".
        decoder_width: Width of the small decoder.
        decoder_steps: Number of training steps of a decoder.
        decoder_batch: Batch size of the small decoder, in sequences.
        decoder_rate: Learning rate of the small decoder.
        looks: Number of training steps at which the losses on all clones are measured. The steps are logarithmically
            spaced.
    """

    decoder_size: Literal["small", "published"] = "small"
    decoder_width: Annotated[int, Ge(8)] = 64
    decoder_steps: Count = 1500
    decoder_batch: Count = 128
    decoder_rate: Positive = 2e-3
    looks: Annotated[int, Ge(4)] = 20

    def check(self) -> None:
        """Raise `InputError` if fields contradict each other.

        Raises:
            InputError: If the decoder or another network cannot be configured.
        """
        super().check()
        self.decoder()

    def decoder(self) -> TransformerConfig:
        """Return the architecture of the decoder, a causal language model like GPT-Neo."""
        if self.decoder_size == "published":
            return gpt_neo(self.vocab_size, self.length)
        return gpt_neo(self.vocab_size, self.length, heads=4, width=self.decoder_width)

    def decoder_training(self, seed: int) -> TrainingConfig:
        """Return the training settings of the decoder.

        They are the settings of the paper, except for the number of steps and a checkpoint every 250 steps. A small
        decoder also has its own batch size and learning rate.

        Args:
            seed: Seed of the order of the training data.
        """
        changes: dict[str, Any] = {"seed": seed, "checkpoint_every": 250}
        if self.decoder_size == "small":
            changes |= {"batch_size": self.decoder_batch, "learning_rate": self.decoder_rate}
        return gpt_neo_training(self.decoder_steps, **changes)


PRESETS = {
    "smoke": Config(
        **CLONES["smoke"].shared(CloneSettings), decoder_width=8, decoder_steps=40, decoder_batch=16, looks=6
    ),
    "pilot": Config(**CLONES["pilot"].shared(CloneSettings)),
    "default": Config(),
    "night": Config(**CLONES["night"].shared(CloneSettings)),
    # New seeds, enough for the claim on the end of training that `night` leaves undecided to have a power of 0.8.
    "weekend": Config(**CLONES["night"].shared(CloneSettings) | {"seeds": tuple(range(300, 352))}),
    "paper": Config(**CLONES["paper"].shared(CloneSettings), decoder_size="published", decoder_steps=10_000),
}
