"""Settings of the study: the networks that are trained, and the training."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge

from trialogue.errors import InputError
from trialogue.training.config import TrainingConfig
from trialogue_lab.ledger import Count, Increasing, Positive, Seeds, Settings

CONTEXT = 2
"""Number of tokens per context."""


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run.

    For each seed, every network is trained once to predict one random token after each pair of tokens. The sizes are
    those of the document's Experiments 1 to 6. Only the large and the deep networks are smaller than in the document.

    Args:
        seeds: Seeds of the random tokens and the initial weights.
        steps: Steps of Adam, each on all contexts.
        learning_rate: Peak learning rate. It is reached after a tenth of the steps and then falls linearly to zero.
        initial_scale: Standard deviation of the initial embeddings.
        vocab_size: Number of tokens in Experiments 1 to 4.
        widths: Widths of the networks with `heads` heads, whose heads are as wide as the embedding (Experiments 1 and
            4).
        heads: Numbers of heads in Experiments 1 and 4.
        fixed_heads: Number of heads in Experiments 2 and 3, where the widths vary.
        fixed_width: Width of the embedding in Experiment 2, and of the heads in Experiment 3.
        head_widths: Head widths below `fixed_width` (Experiment 2).
        embedding_widths: Embedding widths other than `fixed_width` (Experiment 3).
        mlp_vocab_size: Number of tokens in Experiment 5.
        mlp_heads: Numbers of heads H in Experiment 5. Each is compared with one head and an MLP of width 2 d (H - 1),
            where d is the embedding width.
        small_vocab_size: Number of tokens in Experiment 6.
        small_heads: Numbers of heads in Experiment 6, where all widths are 2.
        large_vocab_size: Number of tokens in the large experiment.
        large_widths: Embedding and head widths in the large experiment.
        large_heads: Numbers of heads in the large experiment.
        deep_vocab_size: Number of tokens in the experiment with several layers.
        deep_width: Width in the experiment with several layers.
        deep_heads: Numbers of heads per layer in the experiment with several layers.
        deep_layers: Number of layers of the deep networks.
    """

    seeds: Seeds = tuple(range(1, 6))
    steps: Count = 400
    learning_rate: Positive = 0.03
    initial_scale: Positive = 0.2
    vocab_size: Annotated[int, Ge(4)] = 50
    widths: Increasing[Count] = (5, 10, 13)
    heads: Increasing[Count] = (1, 6, 11, 16)
    fixed_heads: Count = 20
    fixed_width: Count = 10
    head_widths: Increasing[Count] = (1, 4, 7)
    embedding_widths: Increasing[Count] = (5, 9, 11, 15)
    mlp_vocab_size: Annotated[int, Ge(4)] = 70
    mlp_heads: Increasing[Count] = (1, 6, 11)
    small_vocab_size: Annotated[int, Ge(4)] = 10
    small_heads: Increasing[Count] = (1, 5, 9, 13, 17, 21)
    large_vocab_size: Annotated[int, Ge(4)] = 80
    large_widths: Increasing[Count] = (20,)
    large_heads: Increasing[Count] = (1, 6, 11)
    deep_vocab_size: Annotated[int, Ge(4)] = 30
    deep_width: Count = 6
    deep_heads: Increasing[Count] = (1, 5, 9)
    deep_layers: Annotated[int, Ge(2)] = 3

    def check(self) -> None:
        """Raise `InputError` if the widths contradict each other."""
        if self.head_widths[-1] >= self.fixed_width:
            hint = f"use less than fixed_width = {self.fixed_width}"
            raise InputError("head_widths", self.head_widths, hint)
        if self.fixed_width in self.embedding_widths:
            hint = f"leave out fixed_width = {self.fixed_width}, which is measured with head_widths"
            raise InputError("embedding_widths", self.embedding_widths, hint)

    def training(self, contexts: int) -> TrainingConfig:
        """Return the training settings for full-batch training.

        Args:
            contexts: Number of contexts. All of them are used in every step.
        """
        return TrainingConfig(
            steps=self.steps,
            batch_size=contexts,
            learning_rate=self.learning_rate,
            weight_decay=0.0,
            warmup_steps=self.steps // 10,
            schedule="linear",
            gradient_clip=None,
            bf16=False,
        )


_PUBLISHED_HEADS = (1, 6, 11, 16, 21, 26, 31)
_PUBLISHED_WIDTHS = (5, 6, 7, 8, 9, 11, 12, 13, 14, 15)

PRESETS = {
    "smoke": Config(
        seeds=(0,),
        steps=25,
        vocab_size=12,
        heads=(1, 4, 7),
        fixed_heads=4,
        mlp_vocab_size=12,
        mlp_heads=(1, 2, 3),
        small_heads=(1, 5, 9),
        large_vocab_size=14,
        large_heads=(1, 2, 3),
        deep_vocab_size=8,
        deep_heads=(1, 2, 3),
        deep_layers=2,
    ),
    "pilot": Config(seeds=(1000, 1001)),
    "default": Config(),
    # Other seeds than `default`, which leaves claims undecided. 24 seeds decide most effects with a power of 0.8.
    "night": Config(seeds=tuple(range(201, 225))),
    # The networks of `default`, trained for as many steps as in the document, with other seeds.
    "weekend": Config(seeds=tuple(range(101, 117)), steps=4096),
    "paper": Config(
        seeds=tuple(range(1, 21)),
        steps=4096,
        widths=(5, 7, 10, 13),
        heads=_PUBLISHED_HEADS,
        head_widths=tuple(range(1, 10)),
        embedding_widths=_PUBLISHED_WIDTHS,
        mlp_heads=_PUBLISHED_HEADS,
        large_vocab_size=200,
        large_widths=(40, 50, 60),
        large_heads=(1, 3, 5, 7, 9, 11),
        deep_vocab_size=70,
        deep_width=10,
        deep_heads=(1, 5, 9, 13, 17, 21),
    ),
}
