"""Training options of `trialogue probe`."""

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
    """Hyperparameters for training a verifier of prefixes.

    Raises:
        InputError: If a field is out of range.
    """

    layers: Annotated[Several[Annotated[int, Ge(-1)]] | str, arg(metavar="NUMBER ..., all, or every:N")] = (
        "every:4"
    )
    """Layers to read: block numbers, -1 for the input of the output head, "all", or "every:N" counted from the end."""
    depths: Annotated[Several[Count], MinLen(1), arg(metavar="D ...")] = (1, 2)
    """Depths of the probes to compare; 1 is linear, larger values are MLPs."""
    hidden: Annotated[Count, arg(metavar="N")] = 256
    """Units per hidden layer."""
    epochs: Annotated[Count, arg(metavar="N")] = 100
    """Maximum number of epochs. The weights are taken from the best epoch."""
    patience: Annotated[Count, arg(metavar="N")] = 10
    """Stop after this many epochs without a better log-loss on the selection examples."""
    learning_rate: Annotated[Positive, arg(metavar="X")] = 3e-3
    """Learning rate of AdamW."""
    weight_decay: Annotated[NonNegative, arg(metavar="X")] = 0.1
    """Weight decay of AdamW."""
    probe_batch_size: Annotated[Count, arg(metavar="N")] = 64
    """Examples per gradient step."""
    validation: Annotated[Probability, arg(metavar="SHARE")] = 0.2
    """Fraction of texts held out, half for selection and half for calibration."""
    test: Annotated[Probability, arg(metavar="SHARE")] = 0.1
    """Fraction of texts held out for the reported metrics."""
    split_by: Literal["text", "prompt"] = "text"
    """Keep examples with the same text or prompt in the same split."""
    correct_prefixes: Annotated[Count, arg(metavar="N")] = 8
    """Correct prefixes sampled from each text with an error position; the thesis uses 1. With few correct prefixes, a
    probe can learn after which kinds of tokens errors occur instead of recognising them."""
    chat: bool = False
    """Apply the chat template of the tokenizer to prompts."""
    eos: bool = False
    """Append the end-of-sequence token to texts."""
    calibration: CalibrationMethod = "platt"
    """Calibration method for the probabilities."""
    false_rejections: Annotated[Probability, arg(metavar="RATE")] = 0.05
    """Maximum fraction of new correct prefixes that the threshold rejects."""
    threshold: Annotated[Share | Literal["youden"] | None, arg(metavar="P|youden")] = None
    """Fixed threshold instead of a rate of false rejections, or "youden" to maximise Youden's J."""
    batch_size: Annotated[Count, arg(metavar="N")] = 16
    """Texts per forward pass of the model."""
    seed: Annotated[Natural, arg(metavar="N")] = 0
    """Seed for splits, shuffling and initial weights."""

    def probe(self) -> "ProbeConfig":
        """Return the config of the individual probes."""
        from trialogue.randomness import derive_seed
        from trialogue.training.probes.grid import ProbeConfig

        return ProbeConfig(
            hidden=self.hidden,
            epochs=self.epochs,
            batch_size=self.probe_batch_size,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            seed=derive_seed(self.seed, "probe"),
        )
