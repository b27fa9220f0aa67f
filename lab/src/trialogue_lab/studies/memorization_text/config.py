"""Settings of the study: the text, its samples, and the networks that are built and trained."""

from dataclasses import dataclass, replace
from typing import Annotated

from annotated_types import Ge, Interval

from trialogue.errors import InputError
from trialogue_lab.ledger import Count, Increasing, Positive, Probability, Seeds, Settings

LIKELIEST, RIDGE, EXACT = "likeliest", "ridge", "exact"
TRAINED, TRANSFORMER, TABLE = "trained", "transformer", "table"


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run. The defaults are the preset `default`.

    Networks store the next-token distributions after the most frequent contexts of a text. A context is a sequence of S
    tokens.

    Args:
        seeds: Indices of the samples of the text. Each one is also the seed of its random heads, initial weights and
            batches.
        text: Name of a corpus of the hub, or path of a file or folder. A path in the working directory takes
            precedence. Empty for a small generated text, for tests.
        test_share: Share of the text, at its end, that is held out if a file or folder has no test split.
        vocab_size: Size of the byte-level BPE vocabulary. With 257, each token is a byte or the end of a document.
        length: Tokens per row. Rows of the text are assigned to samples in turn.
        samples: Number of samples that the text is divided into. Must be larger than every seed.
        rows: Largest number of rows of a sample that are counted and trained on.
        context_lengths: Context lengths S, in tokens.
        contexts: Number of contexts to store: the most frequent ones of the sample, or all if it has fewer.
        smoothing: Number that is added to every count of a token after a context.
        widths: Embedding widths d, which are also the head widths.
        shares: Numbers of features of the networks that cannot store all contexts, divided by the number of contexts. A
            network stores at most one context per feature.
        provision: Additional features of the networks that store all contexts, as a share of the number of contexts.
        trained_shares: Shares for which networks with as many parameters are trained.
        steps: Number of training steps of trained networks.
        batch_size: Batch size of trained networks.
        attention_rate: Learning rate of attention-only transformers.
        transformer_rate: Learning rate of the transformer.
        layers: Number of layers of the transformer.
    """

    seeds: Seeds = (1, 2, 3, 4, 5)
    text: str = "tinystories"
    test_share: Probability = 0.1
    vocab_size: Annotated[int, Ge(257)] = 257
    length: Annotated[int, Ge(4)] = 256
    samples: Count = 12
    rows: Count = 300
    context_lengths: Increasing[Annotated[int, Interval(ge=2, le=8)]] = (2, 3)
    contexts: Count = 850
    smoothing: Positive = 0.01
    widths: Increasing[Annotated[int, Ge(2)]] = (8, 24)
    shares: Increasing[Probability] = (0.1, 0.25, 0.5, 0.75, 0.9)
    provision: Probability = 0.1
    trained_shares: Increasing[Probability] = (0.25,)
    steps: Count = 500
    batch_size: Count = 128
    attention_rate: Positive = 1e-2
    transformer_rate: Positive = 1e-2
    layers: Count = 2

    def check(self) -> None:
        """Raise `InputError` if fields contradict each other."""
        if max(self.seeds) >= self.samples:
            hint = f"the samples are 0 to {self.samples - 1}: use smaller seeds, or more samples"
            raise InputError("seeds", self.seeds, hint)
        if not set(self.trained_shares) <= set(self.shares):
            raise InputError("trained_shares", self.trained_shares, f"choose from shares={self.shares}")
        if self.length <= self.context_lengths[-1]:
            raise InputError("length", self.length, "use rows longer than a context and the next token")
        fewest = int(self.shares[0] * self.contexts)
        if fewest < self.widths[-1]:
            hint = f"must be at most {fewest}, which is {self.shares[0]:g} of {self.contexts} contexts"
            raise InputError("widths", self.widths, hint)


_NIGHT = Config(
    seeds=(1, 2, 3, 4, 5, 6, 10, 11),
    rows=1200,
    contexts=2500,
    shares=(0.05, 0.1, 0.25, 0.5, 0.75, 0.9),
    trained_shares=(0.1, 0.25, 0.5),
    steps=5000,
    batch_size=256,
)
PRESETS = {
    "smoke": Config(
        seeds=(0,),
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
    "night": _NIGHT,
    "paper": replace(
        _NIGHT,
        vocab_size=320,
        rows=2400,
        contexts=5000,
        widths=(8, 24, 64),
        steps=20_000,
        batch_size=1024,
    ),
}
