"""Options of `trialogue clone`. Each field is an option, and its docstring is the help text."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Ge
from tyro.conf import arg

from trialogue.errors import InputError
from trialogue.generation.cloning.samplers import Sampler
from trialogue.validation import Count, Different, Natural, Positive, Probability, validated

if TYPE_CHECKING:
    from trialogue.models.networks.factored import FactoredAttentionConfig
    from trialogue.training.config import TrainingConfig

MASKED_SHARE = 0.15
"""Fraction of the tokens of a sequence that training masks, each in its own copy of the sequence."""


@validated
@dataclass(frozen=True, kw_only=True)
class NetworkSettings:
    """Options of `trialogue clone` on the network and its training."""

    layers: Annotated[Different[Count], arg(metavar="N ...")] = (1, 2, 4)
    """Make one clone for each of these depths. N layers keep interactions of up to 2^(N-1) + 1 tokens."""
    rank: Annotated[Count, arg(metavar="N")] = 32
    """Rank of the value matrices."""
    layer_norm: bool = False
    """Apply layer normalisation, as the published clones do. All orders are then kept."""
    steps: Annotated[Count, arg(metavar="N")] = 2000
    """Train for this many steps."""
    batch_size: Annotated[Count, arg(metavar="N")] = 256
    """Masked tokens per step (approximately). 15 % of the tokens of a sequence are masked, each in its own copy."""
    learning_rate: Annotated[Positive, arg(metavar="X")] = 1e-2
    """AdamW learning rate, with 100 warm-up steps and cosine decay to zero."""

    def network(self, layers: int, vocab_size: int, length: int) -> "FactoredAttentionConfig":
        """Return the configuration of a network.

        Args:
            layers: Number of layers.
            vocab_size: Number of tokens.
            length: Number of tokens of a sequence.

        Raises:
            InputError: If the rank is larger than the vocabulary.
        """
        from trialogue.models.networks.factored import FactoredAttentionConfig

        return FactoredAttentionConfig(
            vocab_size=vocab_size,
            sites=length,
            layers=layers,
            rank=self.rank,
            layer_norm=self.layer_norm,
        )

    def training(self, copies: int, seed: int) -> "TrainingConfig":
        """Return the configuration of a training.

        Args:
            copies: Number of masked copies of each sequence in a batch. The batch size is a multiple of it.
            seed: Random seed.
        """
        from trialogue.training.config import TrainingConfig

        return TrainingConfig(
            steps=self.steps,
            batch_size=copies * max(1, round(self.batch_size / copies)),
            learning_rate=self.learning_rate,
            weight_decay=0.0,
            warmup_steps=min(100, self.steps // 10),
            checkpoint_every=200,
            seed=seed,
        )


@validated
@dataclass(frozen=True, kw_only=True)
class TextSettings:
    """Options of `trialogue clone` on the text and its tokens."""

    text: Annotated[str | None, arg(metavar="FILE")] = None
    """Train on this text: a UTF-8 file, a folder of .txt files, or tinystories or wikitext-103 from the hub."""
    test: Annotated[str | None, arg(metavar="FILE")] = None
    """Start clones from this text and evaluate networks on it (default: the last part of --text)."""
    test_share: Annotated[Probability, arg(metavar="SHARE")] = 0.1
    """Fraction of --text that is held out if --test is not given."""
    vocab_size: Annotated[int, arg(metavar="N")] = 320
    """Vocabulary size of the byte-level BPE trained on the text."""
    length: Annotated[int, Ge(2), arg(metavar="N")] = 16
    """Length of the sequences in tokens."""
    cache: Annotated[Path | None, arg(metavar="FOLDER")] = None
    """Store the tokenized text in this folder (default: the user's cache)."""

    def __post_init__(self) -> None:
        if self.text is None:
            raise InputError("text", None, "use a text file: trialogue clone --text FILE --out FOLDER")


@validated
@dataclass(frozen=True, kw_only=True)
class DrawingSettings:
    """Options of `trialogue clone` for the Markov chains that sample the clones.

    A clone is a set of sequences sampled from a network that was trained on the text.
    """

    sampler: Sampler = "gibbs"
    """Markov chain that draws the sequences. gibbs resamples one token given all others. metropolis is the published
    chain on the sum of raw scores, whose stationary distribution is sharper than the model. metropolis-by-order divides
    the scores by the order of the network, and metropolis-normalised uses log-probabilities as scores."""
    sequences: Annotated[Count, arg(metavar="N")] = 600
    """Draw this many sequences per clone, each started from a held-out sequence."""
    sweeps: Annotated[Count, arg(metavar="N")] = 20
    """Update each token of a sequence this many times. A later run with more sweeps continues from existing clones."""
    seed: Annotated[Natural, arg(metavar="N")] = 0
    """Seed of the random numbers."""


@dataclass(frozen=True, kw_only=True)
class CloneSettings:
    """All settings of `trialogue clone`.

    Args:
        text: Options on the text.
        network: Options on networks and their training.
        drawing: Options on sampling.
        out: Folder of the clones.
    """

    text: TextSettings
    network: NetworkSettings
    drawing: DrawingSettings
    out: Path

    def identity(self, fingerprint: str) -> dict[str, Any]:
        """Return the settings that must be equal for a run to continue in an existing folder of clones.

        Args:
            fingerprint: Hash of the text.

        Returns:
            JSON values by name of the setting.
        """
        network, drawing = self.network, self.drawing
        return {
            "fingerprint": fingerprint,
            "length": self.text.length,
            **{
                field: getattr(network, field)
                for field in ("rank", "layer_norm", "steps", "batch_size", "learning_rate")
            },
            **{field: getattr(drawing, field) for field in ("sampler", "sequences", "seed")},
        }
