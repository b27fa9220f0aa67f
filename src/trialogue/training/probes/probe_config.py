"""How a verifier of prefixes is trained: every option of `trialogue probe` about the training is a field here."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from annotated_types import Ge, MinLen
from tyro.conf import arg

from trialogue.validation import Count, Natural, NonNegative, Positive, Probability, Several, Share, validated

if TYPE_CHECKING:
    from trialogue.training.probes.grid import ProbeConfig

CalibrationMethod = Literal["platt", "temperature", "none"]


@validated
@dataclass(frozen=True, kw_only=True)
class ProbeTrainingConfig:
    """How a verifier is trained; raises `InputError` where a field is out of range."""

    layers: Annotated[Several[Annotated[int, Ge(-1)]] | str, arg(metavar="NUMBER ..., all, or every:N")] = (
        "every:4"
    )
    """Layers to read, counted in blocks, -1 for what the output head reads; "all", or "every:N" from the last one."""
    depths: Annotated[Several[Count], MinLen(1), arg(metavar="D ...")] = (1, 2)
    """Depths to try: 1 is linear, more are MLPs."""
    hidden: Annotated[Count, arg(metavar="N")] = 256
    """Units of a hidden layer."""
    epochs: Annotated[Count, arg(metavar="N")] = 100
    """At most; a probe stops early, and is taken from its best epoch."""
    patience: Annotated[Count, arg(metavar="N")] = 10
    """Epochs without a better log-loss on the selection part after which a probe stops."""
    learning_rate: Annotated[Positive, arg(metavar="X")] = 3e-3
    """That of AdamW."""
    weight_decay: Annotated[NonNegative, arg(metavar="X")] = 0.1
    """That of AdamW."""
    probe_batch_size: Annotated[Count, arg(metavar="N")] = 64
    """Examples per gradient step."""
    validation: Annotated[Probability, arg(metavar="SHARE")] = 0.2
    """Share of texts held out to select by and to calibrate on, half each."""
    test: Annotated[Probability, arg(metavar="SHARE")] = 0.1
    """Share of texts held out for the reported numbers."""
    split_by: Literal["text", "prompt"] = "text"
    """What must not be in two parts."""
    correct_prefixes: Annotated[Count, arg(metavar="N")] = 8
    """Correct prefixes taken from each text with an error position; the thesis takes 1. With few of them a probe need
    not tell right from wrong: it is enough to know after which kinds of tokens errors occur."""
    chat: bool = False
    """Put prompts into the tokenizer's chat template."""
    eos: bool = False
    """Texts end with the end of sequence."""
    calibration: CalibrationMethod = "platt"
    """How its values become probabilities."""
    false_rejections: Annotated[Probability, arg(metavar="RATE")] = 0.05
    """The share of new correct prefixes that the threshold may reject."""
    threshold: Annotated[Share | Literal["youden"] | None, arg(metavar="P|youden")] = None
    """In place of the rate of false rejections: a probability, or youden, the one with the greatest J of Youden."""
    batch_size: Annotated[Count, arg(metavar="N")] = 16
    """Texts per pass of the model."""
    seed: Annotated[Natural, arg(metavar="N")] = 0
    """What splits, shuffles and initial weights are drawn from."""

    def probe(self) -> "ProbeConfig":
        """How each probe is trained."""
        from trialogue.randomness import seed_of
        from trialogue.training.probes.grid import ProbeConfig

        return ProbeConfig(
            hidden=self.hidden,
            epochs=self.epochs,
            batch_size=self.probe_batch_size,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            seed=seed_of(self.seed, "probe"),
        )
