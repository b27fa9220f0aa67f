"""Recipes of the two networks: of one shape, side by side on the same pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from torch import Tensor

from trialogue.data.parallel.vocabulary import PAD, SPECIAL
from trialogue.errors import InputError, non_negative_number, probability, whole_number
from trialogue.models.encoder_decoder.config import EncoderDecoderConfig
from trialogue.models.encoder_decoder.network import EncoderDecoder, ended
from trialogue.models.transformer import Activation
from trialogue.training.config import OptimizerName, TrainingConfig
from trialogue.training.recipes import Recipe
from trialogue.training.translation.batches import TranslationBatches
from trialogue.training.translation.objectives import Noise, refinement_loss, translation_loss


@dataclass(frozen=True, kw_only=True)
class TranslationTraining:
    """How a refiner or its twin is trained. Raises `InputError` where a field is out of range.

    `stages`, `correct`, `masked` and `positional_attention` are the refiner's: see `refinement_loss` and `Noise`. Both
    have `layers` in the encoder and as many in the decoder. `dropout` (see `EncoderDecoderConfig`) is for trainings
    that read each pair several times, and without it learn pairs by heart. `bf16` multiplies in bfloat16 also on a
    processor, where that is fast if it has instructions for it; None means where a GPU can.
    """

    layers: int = 2
    heads: int = 4
    width: int = 256
    mlp_width: int = 1024
    max_length: int = 64
    positional_attention: bool = True
    activation: Activation = "relu"
    dropout: float = 0.0
    stages: int = 2
    correct: float | None = 0.15
    masked: float = 0.0
    steps: int = 2000
    batch_size: int = 128
    learning_rate: float = 4e-3
    warmup_share: float = 0.1
    smoothing: float = 0.0
    optimizer: OptimizerName = "muon"
    bf16: bool | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("layers", "stages"):
            whole_number(name, getattr(self, name), 1)
        for name in ("warmup_share", "smoothing"):
            probability(name, getattr(self, name), one=False)
        non_negative_number("learning_rate", self.learning_rate)
        self.noise()
        self.network(len(SPECIAL) + 1, causal=False)
        self.training()

    def noise(self) -> Noise:
        """What the refiner reads in place of the target."""
        return Noise(self.correct, self.masked)

    def network(self, vocab_size: int, *, causal: bool) -> EncoderDecoderConfig:
        """The shape of the twin, or of the refiner."""
        return EncoderDecoderConfig(
            vocab_size=vocab_size,
            encoder_layers=self.layers,
            decoder_layers=self.layers,
            heads=self.heads,
            width=self.width,
            mlp_width=self.mlp_width,
            max_length=self.max_length,
            causal=causal,
            positional_attention=self.positional_attention and not causal,
            activation=self.activation,
            dropout=self.dropout,
        )

    def training(self) -> TrainingConfig:
        """The numbers of the loop."""
        return TrainingConfig(
            steps=self.steps,
            batch_size=self.batch_size,
            optimizer=self.optimizer,
            learning_rate=self.learning_rate,
            weight_decay=0.01,
            beta_2=0.98,
            warmup_steps=int(self.warmup_share * self.steps),
            seed=self.seed,
            bf16=self.bf16,
            checkpoint_every=200,
        )

    def twin(self, vocab_size: int, sources: Tensor, targets: Tensor) -> Recipe[EncoderDecoder]:
        """The recipe of the twin on encoded pairs, `sources` (n, S) and `targets` (n, T) with EOS and PAD."""
        return self._recipe(vocab_size, sources, targets, causal=True)

    def refiner(
        self, vocab_size: int, sources: Tensor, targets: Tensor, teacher: EncoderDecoder | None = None
    ) -> Recipe[EncoderDecoder]:
        """The recipe of the refiner on encoded pairs, `sources` (n, S) and `targets` (n, T) with EOS and PAD.

        It begins with the weights of `teacher`, where one is given: a twin of its shape.
        """
        recipe = self._recipe(vocab_size, sources, targets, causal=False)
        return recipe if teacher is None else replace(recipe, initial=teacher.state_dict())

    def _recipe(
        self, vocab_size: int, sources: Tensor, targets: Tensor, *, causal: bool
    ) -> Recipe[EncoderDecoder]:
        loss = (
            partial(translation_loss, smoothing=self.smoothing)
            if causal
            else partial(refinement_loss, noise=self.noise(), stages=self.stages, smoothing=self.smoothing)
        )
        return Recipe(
            EncoderDecoder,
            self.network(vocab_size, causal=causal),
            TranslationBatches(sources, targets, self.batch_size, self.seed),
            self.training(),
            loss=loss,
        )


def encoded_pairs(
    sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], max_length: int
) -> tuple[Tensor, Tensor]:
    """Pairs of tokens as `TranslationBatches` takes them, without those of which one side is longer than `max_length`.

    Raises `InputError` where there are unequal numbers of them, or none is short enough.
    """
    if len(sources) != len(targets):
        counts = f"{len(sources)} sources and {len(targets)} targets"
        raise InputError("targets", counts, "give one target for each source")
    held = [
        (source, target)
        for source, target in zip(sources, targets, strict=True)
        if 0 < len(source) <= max_length and 0 < len(target) <= max_length
    ]
    if not held:
        raise InputError("max_length", max_length, f"none of {len(sources)} pairs is that short: use more")
    return ended([source for source, _ in held]), ended([target for _, target in held])


def rows_of(tokens: Tensor) -> list[list[int]]:
    """Token ids of each row (n, T) that ends with EOS and is filled up with PAD, without both."""
    counts = ((tokens != PAD).sum(1) - 1).tolist()
    return [row[:count] for row, count in zip(tokens.tolist(), counts, strict=True)]
