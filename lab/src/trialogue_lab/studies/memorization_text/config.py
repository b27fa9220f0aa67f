"""Settings of the study: the text and its samples, what is stored of it, and networks that are trained beside."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Interval

from trialogue.errors import InputError
from trialogue_lab.ledger import Count, Increasing, Positive, Probability, Seeds, Settings

LIKELIEST, RIDGE, EXACT = "likeliest", "ridge", "exact"
TRAINED, TRANSFORMER, TABLE = "trained", "transformer", "table"


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run; the defaults are those of the preset `default`."""

    seeds: Seeds = (1, 2, 3, 4, 5)
    """Samples of the text. Each has generic heads, initial weights and batches of its own."""
    text: str = "tinystories"
    """A corpus of the hub, or a file or folder: one of that name where the run begins goes first. Empty for a small
    text of made-up sentences, for tests."""
    test_share: Probability = 0.1
    """Of a file or folder without a split of its own, the last part."""
    vocab_size: Annotated[int, Ge(257)] = 257
    """Tokens of the byte-level BPE: with 257 every token is a byte, or ends a document."""
    length: Annotated[int, Ge(4)] = 256
    """Tokens in a row; rows of the text are dealt out to samples in turns."""
    samples: Count = 12
    """Samples that the text is dealt out to, more than the largest seed."""
    rows: Count = 300
    """Rows of a sample that laws are counted on and networks trained on, at most."""
    context_lengths: Increasing[Annotated[int, Interval(ge=2, le=8)]] = (2, 3)
    """S: how many tokens the next one is predicted from."""
    contexts: Count = 850
    """Contexts whose laws are to be held, the most frequent ones of the sample; all, where there are fewer."""
    smoothing: Positive = 0.01
    """Added to every count of a token after a context."""
    widths: Increasing[Annotated[int, Ge(2)]] = (8, 24)
    """d, and the width of the heads."""
    shares: Increasing[Probability] = (0.1, 0.25, 0.5, 0.75, 0.9)
    """Features of networks that do not hold all, as a share of the number of contexts."""
    provision: Probability = 0.1
    """Features beyond the number of contexts, as a share of it, of networks that hold all."""
    trained_shares: Increasing[Probability] = (0.25,)
    """Shares at which networks of as many parameters are trained."""
    steps: Count = 500
    batch_size: Count = 128
    attention_rate: Positive = 1e-2
    """Learning rate of attention-only transformers."""
    transformer_rate: Positive = 1e-2
    layers: Count = 2
    """Layers of the transformer."""

    def check(self) -> None:
        """Raise `InputError` where fields do not go together."""
        if max(self.seeds) >= self.samples:
            raise InputError("seeds", self.seeds, f"there are samples={self.samples}, named from 0: use less")
        if not set(self.trained_shares) <= set(self.shares):
            raise InputError("trained_shares", self.trained_shares, f"use some of shares={self.shares}")
        if self.length <= self.context_lengths[-1]:
            raise InputError("length", self.length, "use rows longer than a context and the token after it")
        least = int(self.shares[0] * self.contexts)
        if least < self.widths[-1]:
            hint = f"{self.shares[0]:g} of {self.contexts} contexts are fewer: use less, or more contexts"
            raise InputError("widths", self.widths, hint)


PRESETS = {
    "smoke": Config(
        seeds=(0, 1),
        text="",
        length=32,
        samples=2,
        contexts=60,
        widths=(4, 6),
        shares=(0.25, 0.5),
        steps=30,
        batch_size=64,
    ),
    "pilot": Config(seeds=(7, 8, 9)),
    "default": Config(),
    "night": Config(
        seeds=(1, 2, 3, 4, 5, 6, 10, 11),
        rows=1200,
        contexts=2500,
        shares=(0.05, 0.1, 0.25, 0.5, 0.75, 0.9),
        trained_shares=(0.1, 0.25, 0.5),
        steps=5000,
        batch_size=256,
    ),
    "paper": Config(
        seeds=(1, 2, 3, 4, 5, 6, 10, 11),
        vocab_size=320,
        rows=2400,
        contexts=5000,
        widths=(8, 24, 64),
        shares=(0.05, 0.1, 0.25, 0.5, 0.75, 0.9),
        trained_shares=(0.1, 0.25, 0.5),
        steps=20_000,
        batch_size=1024,
    ),
}
