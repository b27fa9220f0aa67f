"""Settings of the study: the text, the networks that are cloned, the encoder that is followed, and the exact twin."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Interval

from trialogue.errors import InputError
from trialogue.generation.cloning.settings import MASKED_SHARE
from trialogue.models.transformer import TransformerConfig
from trialogue.training import IndividualMasks
from trialogue.training.config import TrainingConfig
from trialogue_lab.ledger import Count, Different, Increasing, Positive, Seeds, Settings
from trialogue_lab.models.published import bert
from trialogue_lab.training.published import bert_training

ENCODER = "encoder"
"""The clone of all orders: that of an encoder trained as those are that are followed."""
TEXT = "text"
PUBLISHED, GIBBS = "metropolis", "gibbs"
MASKS = IndividualMasks(MASKED_SHARE)
"""The masking of every training."""


def of_layers(layers: int) -> str:
    """What a factored network of so many layers is called, and its clone."""
    return f"layers-{layers}"


@dataclass(frozen=True, kw_only=True)
class Material(Settings):
    """A text, networks trained on it, and clones drawn from them; the defaults are those of the preset `default`."""

    seeds: Seeds = (0, 1, 2, 3, 4)
    """Orders of the data that are followed; factored networks are trained for each, and cloned for the first."""
    text: str = "tinystories"
    """A corpus of the hub, or a file or folder: one of that name where the run begins goes first. Empty for a small
    text of made-up sentences, for tests."""
    test_share: Annotated[float, Interval(gt=0, lt=1)] = 0.1
    """Of a file or folder without a split of its own, the last part."""
    vocab_size: Annotated[int, Ge(257)] = 320
    length: Annotated[int, Ge(2)] = 16
    layers: Increasing[Count] = (1, 2, 4)
    """Depths of the factored networks."""
    rank: Count = 32
    layer_norm: bool = False
    network_steps: Count = 1500
    network_batch: Count = 128
    network_rate: Positive = 1e-2
    encoder_size: Literal["small", "published"] = "small"
    encoder_width: Annotated[int, Ge(8)] = 64
    encoder_layers: Count = 2
    encoder_steps: Count = 2500
    encoder_batch: Count = 256
    encoder_rate: Positive = 3e-3
    sequences: Annotated[int, Ge(2)] = 128
    """Held-out sequences, from which the chains start."""
    sweeps: Increasing[Count] = (20, 70)
    """Sweeps of one chain after which clones are taken."""
    scored: Count = 512
    """Held-out sequences that networks are compared on."""

    def check(self) -> None:
        """Raise `InputError` where fields do not go together."""
        if self.rank > self.vocab_size:
            raise InputError("rank", self.rank, f"use at most vocab_size={self.vocab_size}")
        self.encoder()

    @property
    def names(self) -> tuple[str, ...]:
        """The clones, from the lowest order to the highest."""
        return (*(of_layers(depth) for depth in self.layers), ENCODER)

    def encoder(self) -> TransformerConfig:
        """The encoder: that of the document, or a small one of its kind."""
        small = {"layers": self.encoder_layers, "heads": 4, "width": self.encoder_width}
        return bert(self.vocab_size, self.length, **({} if self.encoder_size == "published" else small))

    def encoder_training(self, seed: int) -> TrainingConfig:
        """How it is trained, on batches drawn by `seed`: as published, or by AdamW in fewer steps.

        Batches are the multiple of a sequence's copies that is next to their size.
        """
        published, copies = self.encoder_size == "published", MASKS.copies(self.length)
        batch = copies * max(1, round((1024 if published else self.encoder_batch) / copies))
        if published:
            return bert_training(self.encoder_steps, batch_size=batch, seed=seed)
        return TrainingConfig(
            steps=self.encoder_steps,
            batch_size=batch,
            learning_rate=self.encoder_rate,
            weight_decay=0.0,
            checkpoint_every=250,
            seed=seed,
        )


@dataclass(frozen=True, kw_only=True)
class Config(Material):
    """The material, how often the followed encoder is looked at, and the twin whose clones are exact."""

    looks: Annotated[int, Ge(4)] = 16
    """Steps at which losses on all clones are measured, in equal ratios."""
    twin_sites: Annotated[int, Interval(ge=4, le=9)] = 6
    twin_vocab: Annotated[int, Interval(ge=2, le=4)] = 3
    """Every sequence of the twin is listed."""
    twin_rank: Count = 20
    twin_scale: Positive = 3.0
    """Standard deviation of the energy of four bodies over uniform sequences."""
    twin_rows: Count = 100_000
    twin_steps: Count = 1500
    twin_orders: Different[Annotated[int, Interval(ge=2, le=4)]] = (2, 3, 4)


_DECIDING = 27
"""The fewest trainings that, where all agree, lie above a share of 0.8 at the level of nine claims together."""

PRESETS = {
    "smoke": Config(
        seeds=(0, 1),
        text="",
        vocab_size=264,
        length=6,
        layers=(1, 2),
        rank=4,
        network_steps=250,
        network_rate=3e-2,
        network_batch=32,
        encoder_width=16,
        encoder_layers=1,
        encoder_steps=120,
        encoder_batch=32,
        encoder_rate=1e-2,
        sequences=8,
        sweeps=(4, 10),
        scored=16,
        looks=6,
        twin_sites=4,
        twin_rows=2000,
        twin_steps=60,
    ),
    "pilot": Config(seeds=(100, 101, 102)),
    "default": Config(),
    # The setting of `default` on seeds that no other preset has.
    "night": Config(seeds=tuple(range(200, 200 + _DECIDING))),
    "paper": Config(
        seeds=tuple(range(_DECIDING)),
        vocab_size=10_000,
        length=128,
        layers=(2, 4, 6),
        rank=400,
        layer_norm=True,
        network_steps=100_000,
        network_batch=1024,
        network_rate=3e-3,
        encoder_size="published",
        encoder_steps=100_000,
        sequences=620,
        scored=2000,
        looks=24,
        twin_steps=20_000,
    ),
}
