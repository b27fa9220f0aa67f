"""Recipes of the two networks, which have one shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

from annotated_types import Interval
from torch import Tensor
from tyro.conf import arg

from trialogue.data.parallel.vocabulary import PAD, SPECIAL
from trialogue.errors import InputError
from trialogue.models.encoder_decoder.config import EncoderDecoderConfig
from trialogue.models.encoder_decoder.network import EncoderDecoder, ended
from trialogue.models.networks.transformer import Activation
from trialogue.training.config import OptimizerName, TrainingConfig
from trialogue.training.recipes import Recipe
from trialogue.training.translation.batches import TranslationBatches
from trialogue.training.translation.objectives import Noise, refinement_loss, translation_loss
from trialogue.validation import Count, NonNegative, validated

ShareBelowOne = Annotated[float, Interval(ge=0, lt=1)]


@validated
@dataclass(frozen=True, kw_only=True)
class TranslationTraining:
    """How a refiner or its twin is trained. Raises `InputError` where a field is out of range.

    Both have one shape; what the options say of the refiner is nothing to its twin: see `refinement_loss` and `Noise`.
    """

    layers: Annotated[Count, arg(metavar="N")] = 2
    """Layers of the encoder, and as many of the decoder."""
    heads: Annotated[int, arg(metavar="N")] = 4
    """Heads of attention of each layer, which part its width."""
    width: Annotated[int, arg(metavar="N")] = 256
    """Numbers by which a layer tells each token."""
    mlp_width: Annotated[int, arg(metavar="N")] = 1024
    """Units of the hidden layer behind attention."""
    max_length: Annotated[int, arg(metavar="N")] = 64
    """Tokens of the longest sentence; pairs of which one side is longer are left out."""
    positional_attention: bool = True
    """Attention of the refiner between places, whatever tokens stand there."""
    activation: Annotated[Activation, arg(metavar="NAME")] = "relu"
    """That of the hidden layer: gelu or relu."""
    dropout: Annotated[float, arg(metavar="P")] = 0.0
    """Probability that a number of a layer is left out of an update; trainings that read each pair several times learn
    pairs by heart without it."""
    stages: Annotated[Count, arg(metavar="N")] = 2
    """Steps of refinement that a step of training takes, each from what the one before it wrote; the refiner's."""
    correct: Annotated[float | None, arg(metavar="P")] = 0.15
    """Probability that the refiner is shown the right token of a target; None draws one for each pair."""
    masked: Annotated[float, arg(metavar="P")] = 0.0
    """Probability that a token which is not the right one is a mask, and not a random one; the refiner's."""
    steps: Annotated[int, arg(metavar="N")] = 2000
    """Updates of the weights."""
    batch_size: Annotated[int, arg(metavar="N")] = 128
    """Pairs of each update."""
    learning_rate: Annotated[NonNegative, arg(metavar="X")] = 4e-3
    """The largest one, after the warm-up; from there it falls to zero along a cosine."""
    warmup_share: Annotated[ShareBelowOne, arg(metavar="SHARE")] = 0.1
    """Share of the steps in which the learning rate rises."""
    smoothing: Annotated[ShareBelowOne, arg(metavar="P")] = 0.0
    """Probability that is spread over the vocabulary in what is asked for (label smoothing)."""
    optimizer: Annotated[OptimizerName, arg(metavar="NAME")] = "muon"
    """adamw, muon, sgd, or adafactor."""
    bf16: Annotated[bool | None, arg(metavar="{None,True,False}")] = None
    """True multiplies in bfloat16, also on a processor, where that is fast if it has instructions for it; False never
    does; None where a GPU can. (None)"""
    seed: Annotated[int, arg(metavar="N")] = 0
    """What held-out pairs, initial weights, batches and noise are drawn from."""

    def __post_init__(self) -> None:
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
