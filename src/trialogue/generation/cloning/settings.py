"""What `trialogue clone` makes, and how: every option of the command is a field here."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Ge
from tyro.conf import arg

from trialogue.errors import InputError
from trialogue.generation.cloning.samplers import Sampler
from trialogue.validation import Count, Different, Natural, Positive, Probability, validated

if TYPE_CHECKING:
    from trialogue.models.factored import FactoredAttentionConfig
    from trialogue.training.config import TrainingConfig

MASKED_SHARE = 0.15
"""The share of a sequence's tokens that a training masks, each in a copy of its own."""


@validated
@dataclass(frozen=True, kw_only=True)
class NetworkSettings:
    """The factored networks, and how they are trained; raises `InputError` where a field is out of range."""

    layers: Annotated[Different[Count], arg(metavar="N ...")] = (1, 2, 4)
    """Depths, one clone for each: N layers keep interactions of up to 2^(N-1) + 1 tokens."""
    rank: Annotated[Count, arg(metavar="N")] = 32
    """Rank of the value matrices."""
    layer_norm: bool = False
    """Normalise what layers add up, as the published clones do: then all orders are kept."""
    steps: Annotated[Count, arg(metavar="N")] = 2000
    """Steps of each training."""
    batch_size: Annotated[Count, arg(metavar="N")] = 256
    """Masked tokens per step, about: 15 % of those of each sequence, each masked in a copy of its own."""
    learning_rate: Annotated[Positive, arg(metavar="X")] = 1e-2
    """That of AdamW, reached after 100 steps; it falls to zero as a cosine."""

    def network(self, layers: int, vocab_size: int, length: int) -> "FactoredAttentionConfig":
        """The network of that depth; raises `InputError` for a rank above the vocabulary."""
        from trialogue.models.factored import FactoredAttentionConfig

        return FactoredAttentionConfig(
            vocab_size=vocab_size,
            sites=length,
            layers=layers,
            rank=self.rank,
            layer_norm=self.layer_norm,
        )

    def training(self, copies: int, seed: int) -> "TrainingConfig":
        """How it is trained, where a sequence has so many copies: batches are multiples of that."""
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
    """The text and its tokens; raises `InputError` where a field is out of range."""

    text: Annotated[str | None, arg(metavar="FILE")] = None
    """The corpus: a UTF-8 file, a folder of .txt files, or tinystories or wikitext-103 from the hub."""
    test: Annotated[str | None, arg(metavar="FILE")] = None
    """Text to start clones from and to measure networks on; without one, the last part of the corpus."""
    test_share: Annotated[Probability, arg(metavar="SHARE")] = 0.1
    """How much of the corpus that part is."""
    vocab_size: Annotated[int, arg(metavar="N")] = 320
    """Tokens of the byte-level BPE that is trained on the text."""
    length: Annotated[int, Ge(2), arg(metavar="N")] = 16
    """Tokens of a sequence."""
    cache: Annotated[Path | None, arg(metavar="FOLDER")] = None
    """Where the tokens of the text are kept; without one, in the user's cache."""

    def __post_init__(self) -> None:
        if self.text is None:
            raise InputError("text", None, "name a text file: trialogue clone --text FILE --out FOLDER")


@validated
@dataclass(frozen=True, kw_only=True)
class DrawingSettings:
    """How sequences are drawn from the networks; raises `InputError` where a field is out of range."""

    sampler: Sampler = "gibbs"
    """gibbs redraws a token from its distribution given all others; metropolis is the published chain on the sum of raw
    scores, which draws from a sharpened distribution; by-order divides the scores by the order of the network,
    normalised takes log-probabilities for scores."""
    sequences: Annotated[Count, arg(metavar="N")] = 600
    """Sequences of each clone; each starts from one of the held-out text."""
    sweeps: Annotated[Count, arg(metavar="N")] = 20
    """How often each token of a sequence is updated; a run with more goes on from the clones that are there."""
    seed: Annotated[Natural, arg(metavar="N")] = 0
    """Of networks, batches, starts and chains."""


@dataclass(frozen=True, kw_only=True)
class CloneSettings:
    """All of them, and the folder for the clones."""

    text: TextSettings
    network: NetworkSettings
    drawing: DrawingSettings
    out: Path

    def identity(self, fingerprint: str) -> dict[str, Any]:
        """What must be equal for a folder of clones to be gone on with, beside the text, whose fingerprint it is."""
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
