"""Storage of a text in a transformer, as the next-token distributions of its most frequent contexts.

A context is a sequence of S tokens. `TextMemory.plan` reports what would be stored, and `TextMemory.build` builds the
network.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import torch
from torch import Tensor
from tyro.conf import arg

from trialogue.data.corpus.corpus import Corpus
from trialogue.data.corpus.texts import END
from trialogue.errors import InputError
from trialogue.models.hub.memory import require_memory
from trialogue.models.networks.attention_only import AttentionOnly, AttentionOnlyConfig
from trialogue.models.networks.text_network import save_text_network
from trialogue.storage import require_folder
from trialogue.validation import Count, Natural, Positive, validated
from trialogue_lab.data.ngrams import NgramDistributions, ngram_distributions
from trialogue_lab.theory.memorization.approximation import memorize_approximately
from trialogue_lab.theory.memorization.construction import memorize
from trialogue_lab.theory.memorization.rank import expected_rank

_OVER_PROVISION = 0.05
_SCRATCH = 4
"""Memory of the linear solve, as a multiple of the size of the feature matrix."""


@validated
@dataclass(frozen=True)
class TextMemorySettings:
    """Settings for memorizing a text: the text, the network and the output folder."""

    text: Annotated[str | None, arg(metavar="FILE")] = None
    """The text: a UTF-8 file, a folder of .txt files, or the name of a corpus on the hub."""
    out: Annotated[Path | None, arg(metavar="DIR")] = None
    """Folder for the model, which `generate --model` then accepts. Without it, only the plan is printed."""
    context: Annotated[Count, arg(metavar="S")] = 2
    """Number of tokens that the model looks back."""
    vocab_size: Annotated[int, arg(metavar="N")] = 320
    """Vocabulary size of the byte-level BPE tokenizer trained on the text, including 256 byte tokens."""
    width: Annotated[Count, arg(metavar="d")] = 64
    """Width of the embeddings. Below N - 1, the closest distributions whose logits have this rank are stored."""
    heads: Annotated[Count, arg(metavar="H")] = 16
    """Number of attention heads. H d_h + d features store as many contexts."""
    head_width: Annotated[int | None, arg(metavar="D_H")] = None
    """Width d_h of the values of a head (default: the width)."""
    contexts: Annotated[Count | None, arg(metavar="T")] = None
    """Number of most frequent contexts to store (default: as many as the features hold with 5 % to spare)."""
    method: Literal["exact", "ridge"] = "exact"
    """exact: reproduce the stored contexts to rounding error, and other contexts arbitrarily. ridge: weighted
    least squares on the stored contexts, which may then outnumber the features.
    """
    smoothing: Annotated[Positive, arg(metavar="A")] = 0.01
    """Value added to every count of a token after a context, so that no token has probability zero."""
    seed: Natural = 0
    """Seed of the attention heads, whose weights are random."""
    json: bool = False
    """Print one JSON record."""

    def __post_init__(self) -> None:
        if self.text is None:
            raise InputError("text", None, "name the text to memorize with --text FILE")
        if self.context == 1:
            hint = "with one token of context attention is the identity and heads add nothing: use at least 2"
            raise InputError("context", 1, hint)
        if self.out is not None:
            require_folder(self.out)

    @property
    def network(self) -> AttentionOnlyConfig:
        """Shape of the network; raises `InputError` if it is invalid."""
        return AttentionOnlyConfig(
            vocab_size=self.vocab_size,
            context=self.context,
            width=self.width,
            heads=self.heads,
            head_width=self.width if self.head_width is None else self.head_width,
        )


class MemoryPlan(NamedTuple):
    """Size of a network that would memorize a text, before it is built. A context is a sequence of S tokens.

    Attributes:
        tokens: Number of tokens in the text.
        different: Number of distinct contexts in the text.
        stored: Number of contexts whose next-token distributions would be stored.
        share: Share of text positions that follow a stored context.
        features: Largest number of contexts that can be stored, H d_h + min(d, N).
        heads_for_all: Number of heads that would store all contexts, with 5 % to spare.
        parameters: Number of parameters of the network.
    """

    tokens: int
    different: int
    stored: int
    share: float
    features: int
    heads_for_all: int
    parameters: int


class MemorizedText(NamedTuple):
    """Network that stores a text, with its accuracy. Divergences and losses are in nats per token.

    A stored context is one of the sequences of S tokens whose next-token distribution the network stores.

    Attributes:
        model: The network.
        encoder_kl: Mean KL(counts of the text || encoder) over stored contexts, weighted by frequency. The encoder is
            the best approximation with logits of rank d.
        kl: Mean KL(counts of the text || network) over stored contexts, weighted by frequency.
        largest_error: Largest error of a log-probability in float64; None for ridge regression.
        largest_error_float32: Largest error of a log-probability in float32; None for ridge regression.
        condition: Condition number of the features; None for ridge regression.
        test_share: Share of positions of the test text with a stored context.
        test_loss: Mean -log p of the network for the tokens at these positions; None if there are none.
        test_loss_table: The same for the table of smoothed counts that the network stores.
    """

    model: AttentionOnly
    encoder_kl: float
    kl: float
    largest_error: float | None
    largest_error_float32: float | None
    condition: float | None
    test_share: float
    test_loss: float | None
    test_loss_table: float | None


class TextMemory:
    """Plan and construction of a network that memorizes a text.

    The network stores the next-token distributions of the most frequent contexts (sequences of S tokens) of
    the text.

    Args:
        settings: Text and shape of the network.
        report: Function that receives progress messages.

    Raises:
        InputError: If the settings cannot be satisfied.
    """

    def __init__(
        self, settings: TextMemorySettings, *, report: Callable[[str], object] = lambda _: None
    ) -> None:
        self.settings, self.config = settings, settings.network
        assert settings.text is not None
        self.corpus = Corpus.open(
            settings.text, vocab_size=settings.vocab_size, length=settings.context + 1, report=report
        )

    @cached_property
    def distributions(self) -> NgramDistributions:
        """The contexts to store and the counts of their next tokens in the text.

        Raises:
            InputError: If the network cannot store this many contexts, or memory does not suffice.
        """
        settings, room = self.settings, self.features
        if settings.contexts is None:
            most = max(1, int(room / (1 + _OVER_PROVISION)))
        else:
            most = settings.contexts
            if settings.method == "exact" and most > room:
                hint = f"the features have rank {room}: use at most as many, more heads, or --method ridge"
                raise InputError("contexts", most, hint)
        distributions = ngram_distributions(
            self.corpus.train.flatten(), settings.context, self.corpus.vocab_size, most
        )
        require_memory(
            "heads",
            settings.heads,
            _SCRATCH * 8 * len(distributions.contexts) * (len(distributions.contexts) + room),
        )
        return distributions

    @property
    def features(self) -> int:
        """Largest number of contexts that a network of this shape can store exactly."""
        shape = self.config
        unlimited = 2**62
        widths = (shape.width, shape.head_width, shape.heads)
        return expected_rank(shape.vocab_size, shape.context, *widths, unlimited)

    @property
    def plan(self) -> MemoryPlan:
        """Number of contexts that would be stored, and the size of the network."""
        distributions, shape = self.distributions, self.config
        wanted = (1 + _OVER_PROVISION) * distributions.different - min(shape.width, shape.vocab_size)
        return MemoryPlan(
            tokens=self.corpus.train.numel(),
            different=distributions.different,
            stored=len(distributions.contexts),
            share=distributions.share,
            features=self.features,
            heads_for_all=max(0, -int(-wanted // shape.head_width)),
            parameters=shape.parameters,
        )

    def build(self) -> MemorizedText:
        """Build the network, save it to `settings.out` if given, and measure it on the test text.

        Returns:
            Network and accuracy.
        """
        settings, distributions, shape = self.settings, self.distributions, self.config
        targets, prior = distributions.log_probs(settings.smoothing), distributions.prior
        dimensions = (shape.width, shape.heads, shape.head_width, settings.seed)
        exact = (
            memorize(targets, distributions.contexts, *dimensions, prior=prior)
            if settings.method == "exact"
            else None
        )
        found = exact or memorize_approximately(
            targets, distributions.contexts, *dimensions, method="ridge", prior=prior
        )
        model = found.model
        model.remember(distributions.contexts)
        known, loss, table = self._test(model, targets)
        if settings.out is not None:
            save_text_network(model, self.corpus.tokenizer, settings.out, END)
        return MemorizedText(
            model=model,
            encoder_kl=found.encoder_kl,
            kl=found.kl,
            largest_error=None if exact is None else exact.largest_error,
            largest_error_float32=None if exact is None else exact.largest_error_float32,
            condition=None if exact is None else exact.condition,
            test_share=known,
            test_loss=loss,
            test_loss_table=table,
        )

    def _test(self, model: AttentionOnly, targets: Tensor) -> tuple[float, float | None, float | None]:
        """Measure the network on the test text.

        Returns the share of positions with a stored context, and the losses of network and table there, in nats per
        token.
        """
        context = self.settings.context
        windows = self.corpus.test.flatten().unfold(0, context + 1, 1)
        places = {tuple(row): place for place, row in enumerate(self.distributions.contexts.tolist())}
        row = torch.tensor([places.get(tuple(seen), -1) for seen in windows[:, :context].tolist()])
        known = row >= 0
        if not bool(known.any()):
            return 0.0, None, None
        following = windows[known, context]
        answers = model.context_log_probs(self.distributions.contexts)
        model.answered = model.unstored = 0
        losses = [-distributions[row[known], following].mean() for distributions in (answers, targets)]
        return float(known.double().mean()), float(losses[0]), float(losses[1])
