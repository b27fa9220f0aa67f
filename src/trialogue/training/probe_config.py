"""How a verifier of prefixes is trained: every option of `trialogue probe` about the training is a field here."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from tyro.conf import arg

from trialogue.errors import InputError, one_of, probability, truth_value, whole_number

if TYPE_CHECKING:
    from trialogue.training.probes import ProbeConfig

Calibration = Literal["platt", "temperature", "none"]


@dataclass(frozen=True, kw_only=True)
class ProbeTrainingConfig:
    """How a verifier is trained; raises `InputError` where a field is out of range."""

    layers: Annotated[tuple[int, ...] | str, arg(metavar="NUMBER ..., all, or every:N")] = "every:4"
    """Layers to read, counted in blocks, -1 for what the output head reads; "all", or "every:N" from the last one."""
    depths: Annotated[tuple[int, ...], arg(metavar="D ...")] = (1, 2)
    """Depths to try: 1 is linear, more are MLPs."""
    hidden: Annotated[int, arg(metavar="N")] = 256
    """Units of a hidden layer."""
    epochs: Annotated[int, arg(metavar="N")] = 100
    """At most; a probe stops early, and is taken from its best epoch."""
    patience: Annotated[int, arg(metavar="N")] = 10
    """Epochs without a better log-loss on the selection part after which a probe stops."""
    learning_rate: Annotated[float, arg(metavar="X")] = 3e-3
    """That of AdamW."""
    weight_decay: Annotated[float, arg(metavar="X")] = 0.1
    """That of AdamW."""
    probe_batch_size: Annotated[int, arg(metavar="N")] = 64
    """Examples per gradient step."""
    validation: Annotated[float, arg(metavar="SHARE")] = 0.2
    """Share of texts held out to select by and to calibrate on, half each."""
    test: Annotated[float, arg(metavar="SHARE")] = 0.1
    """Share of texts held out for the reported numbers."""
    split_by: Literal["text", "prompt"] = "text"
    """What must not be in two parts."""
    correct_prefixes: Annotated[int, arg(metavar="N")] = 8
    """Correct prefixes taken from each text with an error position; the thesis takes 1. With few of them a probe need
    not tell right from wrong: it is enough to know after which kinds of tokens errors occur."""
    chat: bool = False
    """Put prompts into the tokenizer's chat template."""
    eos: bool = False
    """Texts end with the end of sequence."""
    calibration: Calibration = "platt"
    """How its values become probabilities."""
    false_rejections: Annotated[float, arg(metavar="RATE")] = 0.05
    """The share of new correct prefixes that the threshold may reject."""
    threshold: Annotated[float | str | None, arg(metavar="P")] = None
    """In place of the rate of false rejections: a probability, or youden, the one with the greatest J of Youden."""
    batch_size: Annotated[int, arg(metavar="N")] = 16
    """Texts per pass of the model."""
    seed: Annotated[int, arg(metavar="N")] = 0
    """What splits, shuffles and initial weights are drawn from."""

    def __post_init__(self) -> None:
        for name in ("patience", "correct_prefixes", "batch_size", "hidden"):
            whole_number(name, getattr(self, name), 1)
        if not isinstance(self.depths, Sequence) or not self.depths:
            raise InputError("depths", self.depths, "name at least one")
        if not isinstance(self.layers, Sequence):
            raise InputError("layers", self.layers, "use numbers of layers, all, or every:N")
        if not isinstance(self.layers, str):
            for layer in self.layers:
                whole_number("layers", layer, -1)
        for name in ("validation", "test"):
            share = getattr(self, name)
            probability(name, share, zero=False, one=False, hint="hold out a share strictly between 0 and 1")
        one_of("split_by", self.split_by, ("text", "prompt"), "use text or prompt")
        one_of("calibration", self.calibration, get_args(Calibration))
        truth_value("chat", self.chat)
        truth_value("eos", self.eos)
        for depth in self.depths:
            whole_number("depths", depth, 1)
        if isinstance(self.threshold, str):
            one_of("threshold", self.threshold, ("youden",), "use a probability from 0 to 1, or youden")
        elif self.threshold is not None:
            probability("threshold", self.threshold, hint="use a probability from 0 to 1, or youden")
        else:
            hint = "use a share strictly between 0 and 1"
            probability("false_rejections", self.false_rejections, zero=False, one=False, hint=hint)
        self.probe()

    def probe(self) -> "ProbeConfig":
        """How each probe is trained."""
        from trialogue.randomness import seed_of
        from trialogue.training.probes import ProbeConfig

        return ProbeConfig(
            hidden=self.hidden,
            epochs=self.epochs,
            batch_size=self.probe_batch_size,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            seed=seed_of(self.seed, "probe"),
        )
