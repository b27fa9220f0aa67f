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
"""Name of the BERT, and of the sequences (clone) sampled from it"""
TEXT = "text"
PUBLISHED, GIBBS = "metropolis", "gibbs"
MASKS = IndividualMasks(MASKED_SHARE)
"""Masking scheme of every training"""


def factored_name(layers: int) -> str:
    """Return the name of a network whose attention weights depend on positions only, for example "layers-2".

    Args:
        layers: Number of layers.
    """
    return f"layers-{layers}"


@dataclass(frozen=True, kw_only=True)
class CloneSettings(Settings):
    """Settings of the text, of the networks trained on it, and of their clones.

    A clone is a set of sequences that a Markov chain samples from a trained network. There are two kinds of networks.
    In a factored network, the attention weights depend on positions only and not on tokens. The encoder is a BERT.

    Args:
        seeds: Random seeds. Factored networks are trained once per seed. Clones are sampled from the networks of the
            first seed.
        text: File or folder in the working directory, or name of a corpus of the hub. Empty for synthetic sentences,
            which tests use.
        test_share: Fraction at the end of the text that is held out. It is ignored if the corpus has its own test
            split.
        vocab_size: Number of tokens in the vocabulary.
        length: Number of tokens in a sequence.
        layers: Numbers of layers of the factored networks. One network is trained for each number.
        rank: Rank of the value matrices of the factored networks.
        layer_norm: Whether factored networks have layer norm.
        network_steps: Number of training steps of a factored network.
        network_batch: Batch size of a factored network, in sequences.
        network_rate: Learning rate of a factored network.
        encoder_size: "published" for the BERT of the paper, or "small".
        encoder_width: Width of the small encoder.
        encoder_layers: Number of layers of the small encoder.
        encoder_steps: Number of training steps of an encoder.
        encoder_batch: Batch size of the small encoder, in masked copies of sequences.
        encoder_rate: Learning rate of the small encoder.
        sequences: Number of sequences in a clone. Each sequence is the state of one Markov chain, which starts at a
            held-out sequence.
        sweeps: Numbers of sweeps after which the states of the Markov chains are stored. A sweep consists of N
            single-token updates of a sequence of N tokens.
        scored: Number of held-out sequences on which the losses of the networks are compared.
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
        """Raise `InputError` if fields contradict each other.

        Raises:
            InputError: If `rank` exceeds `vocab_size`, or if the encoder cannot be configured.
        """
        if self.rank > self.vocab_size:
            raise InputError("rank", self.rank, f"use at most vocab_size={self.vocab_size}")
        self.encoder()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all networks that are trained on the text, for example ("layers-1", "layers-2", "encoder")."""
        return (*(factored_name(depth) for depth in self.layers), ENCODER)

    def encoder(self) -> TransformerConfig:
        """Return the architecture of the encoder, a BERT. Its size is `encoder_size`."""
        small = {"layers": self.encoder_layers, "heads": 4, "width": self.encoder_width}
        return bert(self.vocab_size, self.length, **({} if self.encoder_size == "published" else small))

    def encoder_training(self, seed: int) -> TrainingConfig:
        """Return the training settings of the encoder, a BERT.

        If `encoder_size` is "published", these are the settings of the paper. A small encoder is trained by AdamW for
        fewer steps. The batch size is a multiple of the number of masked copies per sequence, so that a batch contains
        whole sequences.

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
class Config(CloneSettings):
    """Settings of a run of the study.

    An encoder (BERT) is trained on a text, and its loss on clones is recorded. A clone is a set of
    sequences sampled from another network that was trained on the text. The same experiment is repeated on the twin, a
    small known distribution with interactions of up to four tokens. The clones of the twin are computed exactly:
    interactions of more than k tokens are removed.

    Args:
        looks: Number of training steps at which the losses on all clones are measured. The steps are logarithmically
            spaced.
        twin_sites: Number of tokens in a sequence of the twin.
        twin_vocab: Vocabulary size of the twin.
        twin_rank: Rank of the energy function of the twin.
        twin_scale: Standard deviation of the twin's energy over uniformly random sequences.
        twin_rows: Number of training sequences sampled from the twin.
        twin_steps: Number of training steps on the twin.
        twin_orders: Values of k. For each k, one exact clone keeps the interactions of at most k tokens.
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
        network_steps=60,
        network_rate=3e-2,
        network_batch=32,
        encoder_width=16,
        encoder_layers=1,
        encoder_steps=40,
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
