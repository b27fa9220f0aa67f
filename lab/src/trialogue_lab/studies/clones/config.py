"""Settings of the study: the text, the networks trained on it, and the Markov chains that sample from them."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Interval

from trialogue.errors import InputError
from trialogue.generation.cloning.settings import MASKED_SHARE
from trialogue.models.networks.transformer import TransformerConfig
from trialogue.training import IndividualMasks
from trialogue.training.config import TrainingConfig
from trialogue_lab.ledger import Count, Different, Increasing, Positive, Seeds, Settings
from trialogue_lab.models.published import bert
from trialogue_lab.training.published import bert_training

ENCODER = "encoder"
"""Name of the clone of all orders, which is sampled from a trained encoder"""
TEXT = "text"
PUBLISHED, GIBBS = "metropolis", "gibbs"
MASKS = IndividualMasks(MASKED_SHARE)
"""Masking in every training"""


def factored_name(layers: int) -> str:
    """Return the name of a network with factored attention, for example "layers-2" for two layers.

    The clone that is sampled from the network has the same name.

    Args:
        layers: Number of layers of the network.
    """
    return f"layers-{layers}"


@dataclass(frozen=True, kw_only=True)
class Material(Settings):
    """Settings of the text, of the networks trained on it, and of their clones.

    A clone is a set of sequences that a Markov chain samples from a trained network. Factored networks have attention
    weights that do not depend on the tokens. The encoder is a BERT.

    Args:
        seeds: Seeds of the order of the training data. Factored networks are trained for each seed. Clones are sampled
            from the networks of the first seed.
        text: File or folder in the working directory, or a corpus of the hub. Empty for synthetic sentences, for tests.
        test_share: Share at the end of the text that is held out, if the text has no split of its own.
        vocab_size: Number of tokens in the vocabulary.
        length: Length of a sequence in tokens.
        layers: Numbers of layers of the factored networks.
        rank: Rank of the value matrices of the factored networks.
        layer_norm: Whether factored networks have layer norm.
        network_steps: Number of training steps of a factored network.
        network_batch: Batch size of a factored network.
        network_rate: Learning rate of a factored network.
        encoder_size: "published" for the encoder of the source, or "small".
        encoder_width: Width of the small encoder.
        encoder_layers: Number of layers of the small encoder.
        encoder_steps: Number of training steps of an encoder.
        encoder_batch: Batch size of the small encoder.
        encoder_rate: Learning rate of the small encoder.
        sequences: Number of Markov chains, which start at held-out sequences. It is also the number of sequences in a
            clone.
        sweeps: Numbers of sweeps after which clones are stored. A sweep is N single-token updates of N tokens.
        scored: Number of held-out sequences on which networks are compared.
    """

    seeds: Seeds = (0, 1, 2, 3, 4)
    text: str = "tinystories"
    test_share: Annotated[float, Interval(gt=0, lt=1)] = 0.1
    vocab_size: Annotated[int, Ge(257)] = 320
    length: Annotated[int, Ge(2)] = 16
    layers: Increasing[Count] = (1, 2, 4)
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
    sweeps: Increasing[Count] = (20, 70)
    scored: Count = 512

    def check(self) -> None:
        """Check that the fields are consistent.

        Raises:
            InputError: If the rank exceeds the size of the vocabulary, or if the encoder cannot be configured.
        """
        if self.rank > self.vocab_size:
            raise InputError("rank", self.rank, f"use at most vocab_size={self.vocab_size}")
        self.encoder()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the networks from which clones are sampled: factored networks by depth, then "encoder"."""
        return (*(factored_name(depth) for depth in self.layers), ENCODER)

    def encoder(self) -> TransformerConfig:
        """Return the architecture of the encoder, a BERT of the size `encoder_size`."""
        small = {"layers": self.encoder_layers, "heads": 4, "width": self.encoder_width}
        return bert(self.vocab_size, self.length, **({} if self.encoder_size == "published" else small))

    def encoder_training(self, seed: int) -> TrainingConfig:
        """Return the training settings of the encoder.

        They are the published ones for `encoder_size="published"`, and AdamW with fewer steps for a small encoder. The
        batch size is rounded so that all masked copies of a sequence are in the same batch.

        Args:
            seed: Seed of the order of the training data.
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
    """Settings of a run: the text, the clones, and the encoders that are measured on them.

    The experiment is repeated on the twin. This is a small known distribution with interactions of up to four tokens.
    Its clones are computed exactly, by removing the interactions of more than k tokens.

    Args:
        looks: Number of training steps at which losses on all clones are measured, logarithmically spaced.
        twin_sites: Number of tokens in a sequence of the twin.
        twin_vocab: Size of the vocabulary of the twin.
        twin_rank: Rank of the energy of the twin.
        twin_scale: Standard deviation of the energy over uniformly random sequences.
        twin_rows: Number of training sequences of the twin.
        twin_steps: Number of training steps on the twin.
        twin_orders: Numbers k of interacting tokens that are kept in the exact clones.
    """

    looks: Annotated[int, Ge(4)] = 16
    twin_sites: Annotated[int, Interval(ge=4, le=9)] = 6
    twin_vocab: Annotated[int, Interval(ge=2, le=4)] = 3
    twin_rank: Count = 20
    twin_scale: Positive = 3.0
    twin_rows: Count = 100_000
    twin_steps: Count = 1500
    twin_orders: Different[Annotated[int, Interval(ge=2, le=4)]] = (2, 3, 4)


_SEEDS_TO_DECIDE = 27
"""Smallest number of agreeing trainings that shows a share above 0.8 when nine claims are tested together"""

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
    # This preset is `default` with seeds that no other preset has.
    "night": Config(seeds=tuple(range(200, 200 + _SEEDS_TO_DECIDE))),
    "paper": Config(
        seeds=tuple(range(_SEEDS_TO_DECIDE)),
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
