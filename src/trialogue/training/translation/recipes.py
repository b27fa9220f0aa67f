"""Training recipes of translation models: a refinement model, and an autoregressive one of the same size (its twin)."""

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
from trialogue.models.encoder_decoder.network import EncoderDecoder, append_eos
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
    """Architecture and hyperparameters of a refinement model or its autoregressive twin.

    Raises:
        InputError: If a field is out of range.
    """

    layers: Annotated[Count, arg(metavar="N")] = 2
    """Number of encoder layers, and of decoder layers."""
    heads: Annotated[int, arg(metavar="N")] = 4
    """Number of attention heads per layer."""
    width: Annotated[int, arg(metavar="N")] = 256
    """Width of the hidden states."""
    mlp_width: Annotated[int, arg(metavar="N")] = 1024
    """Width of the hidden layer of each MLP."""
    max_length: Annotated[int, arg(metavar="N")] = 64
    """Maximum number of tokens per sentence. Longer pairs are left out."""
    positional_attention: bool = True
    """Use positional attention in the refiner, which attends to positions independently of their tokens."""
    activation: Annotated[Activation, arg(metavar="NAME")] = "relu"
    """Activation function of the MLPs: gelu or relu."""
    dropout: Annotated[float, arg(metavar="P")] = 0.0
    """Dropout probability. Dropout reduces overfitting if the training reads each pair several times."""
    stages: Annotated[Count, arg(metavar="N")] = 2
    """Refinement stages per training step of the refiner, each applied to the output of the previous stage."""
    correct: Annotated[float | None, arg(metavar="P")] = 0.15
    """Probability that the refiner reads the correct target token. None samples it uniformly for each pair."""
    masked: Annotated[float, arg(metavar="P")] = 0.0
    """Probability that a corrupted token is a mask instead of a random token, for the refiner."""
    steps: Annotated[int, arg(metavar="N")] = 2000
    """Number of weight updates."""
    batch_size: Annotated[int, arg(metavar="N")] = 128
    """Pairs per update."""
    learning_rate: Annotated[NonNegative, arg(metavar="X")] = 4e-3
    """Peak learning rate, reached after the warm-up and followed by cosine decay to zero."""
    warmup_share: Annotated[ShareBelowOne, arg(metavar="SHARE")] = 0.1
    """Fraction of the steps used for the learning-rate warm-up."""
    smoothing: Annotated[ShareBelowOne, arg(metavar="P")] = 0.0
    """Label smoothing, the probability that is spread over the vocabulary."""
    optimizer: Annotated[OptimizerName, arg(metavar="NAME")] = "muon"
    """Optimizer: adamw, muon, sgd or adafactor."""
    bf16: Annotated[bool | None, arg(metavar="{None,True,False}")] = None
    """Use bfloat16 autocast. None enables it on GPUs that support it. True also enables it on CPUs, which is fast only
    with hardware support. (None)"""
    seed: Annotated[int, arg(metavar="N")] = 0
    """Seed for held-out pairs, initial weights, batches and noise."""

    def __post_init__(self) -> None:
        self.noise()
        self.network(len(SPECIAL) + 1, causal=False)
        self.training()

    def noise(self) -> Noise:
        """Return how target tokens are corrupted in the training of the refinement model."""
        return Noise(self.correct, self.masked)

    def network(self, vocab_size: int, *, causal: bool) -> EncoderDecoderConfig:
        """Return the config of the autoregressive network (`causal=True`) or of the refinement network."""
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
        """Return the hyperparameters of the training loop."""
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
        """Return the training recipe of the autoregressive model.

        Args:
            vocab_size: Number of tokens, including special tokens.
            sources: Source tokens with EOS and padded with PAD, (n, S) int64.
            targets: Target tokens in the same format, (n, T) int64.
        """
        return self._recipe(vocab_size, sources, targets, causal=True)

    def refiner(
        self, vocab_size: int, sources: Tensor, targets: Tensor, teacher: EncoderDecoder | None = None
    ) -> Recipe[EncoderDecoder]:
        """Return the training recipe of the refinement model.

        Args:
            vocab_size: Number of tokens, including special tokens.
            sources: Source tokens with EOS and padded with PAD, (n, S) int64.
            targets: Target tokens in the same format, (n, T) int64.
            teacher: Twin of the same architecture whose weights initialise the model. Random weights by
                default.
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


def encode_pairs(
    sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], max_length: int
) -> tuple[Tensor, Tensor]:
    """Encode sentence pairs for `TranslationBatches`, leaving out pairs with an empty or too long side.

    Args:
        sources: Token ids of each source, without EOS.
        targets: Token ids of each target, without EOS.
        max_length: Maximum number of tokens per side.

    Returns:
        Sources and targets with EOS and PAD, (n, S) and (n, T) int64.

    Raises:
        InputError: If there are different numbers of sources and targets, or if no pair remains.
    """
    if len(sources) != len(targets):
        counts = f"{len(sources)} sources and {len(targets)} targets"
        raise InputError("targets", counts, "give one target for each source")
    pairs = [
        (source, target)
        for source, target in zip(sources, targets, strict=True)
        if 0 < len(source) <= max_length and 0 < len(target) <= max_length
    ]
    if not pairs:
        raise InputError("max_length", max_length, f"none of {len(sources)} pairs fits; use a larger value")
    return append_eos([source for source, _ in pairs]), append_eos([target for _, target in pairs])


def list_rows(tokens: Tensor) -> list[list[int]]:
    """Convert a padded tensor (n, T) to lists of token ids, without EOS and PAD."""
    counts = ((tokens != PAD).sum(1) - 1).tolist()
    return [row[:count] for row, count in zip(tokens.tolist(), counts, strict=True)]
