"""A text memorized: the laws of what follows its most frequent contexts, as weights of an attention-only transformer.

What would be stored, and what not, is known before anything is built: `TextMemory` says it, `build` does it.
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
from trialogue.models.attention_only import AttentionOnly, AttentionOnlyConfig
from trialogue.models.memory import require_memory
from trialogue.models.text_network import save_text_network
from trialogue.storage import require_folder
from trialogue.validation import Count, Natural, Positive, validated
from trialogue_lab.data.ngrams import NgramDistributions, ngram_distributions
from trialogue_lab.theory.memorization.approximation import memorize_approximately
from trialogue_lab.theory.memorization.construction import memorize
from trialogue_lab.theory.memorization.rank import expected_rank

_OVER_PROVISION = 0.05
_SCRATCH = 4
"""How many matrices of features a solve holds at once"""


@validated
@dataclass(frozen=True)
class TextMemorySettings:
    """A text, the network that is to hold it, and where that is kept."""

    text: Annotated[str | None, arg(metavar="FILE")] = None
    """The text: a UTF-8 file, a folder of .txt files, or the name of a corpus of the hub."""
    out: Annotated[Path | None, arg(metavar="DIR")] = None
    """Folder to save the model in; it is then a name for `generate --model`. Without it the plan is printed alone."""
    context: Annotated[Count, arg(metavar="S")] = 2
    """How many tokens the model looks back."""
    vocab_size: Annotated[int, arg(metavar="N")] = 320
    """Tokens of the byte-level BPE that is trained on the text; 256 stand for bytes."""
    width: Annotated[Count, arg(metavar="d")] = 64
    """Width of the embeddings. Below N - 1 the laws stored are the nearest ones whose logits have this rank."""
    heads: Annotated[Count, arg(metavar="H")] = 16
    """Attention heads: H d_h + d features hold as many contexts."""
    head_width: Annotated[int | None, arg(metavar="D_H")] = None
    """Width d_h of the values of a head (the width)."""
    contexts: Annotated[Count | None, arg(metavar="T")] = None
    """Contexts to store, the most frequent ones (as many as the features hold with 5 % to spare)."""
    method: Literal["exact", "ridge"] = "exact"
    """exact: the stored contexts are answered to rounding, others arbitrarily. ridge: least squares on the stored
    contexts by how often they come, which may then be more than the features."""
    smoothing: Annotated[Positive, arg(metavar="A")] = 0.01
    """Added to every count of a token after a context: finite logits give no token probability zero."""
    seed: Natural = 0
    """Names the random numbers of the generic heads."""
    json: bool = False
    """Print one JSON record."""

    def __post_init__(self) -> None:
        if self.text is None:
            raise InputError("text", None, "name what is to be memorized: --text FILE")
        if self.context == 1:
            hint = "with one token of context attention is the identity and heads add nothing: use at least 2"
            raise InputError("context", 1, hint)
        if self.out is not None:
            require_folder(self.out)

    @property
    def network(self) -> AttentionOnlyConfig:
        """The shape of the network; raises `InputError` where it is none."""
        return AttentionOnlyConfig(
            vocab_size=self.vocab_size,
            context=self.context,
            width=self.width,
            heads=self.heads,
            head_width=self.width if self.head_width is None else self.head_width,
        )


class Plan(NamedTuple):
    """What would be stored of a text, and what is missing."""

    tokens: int
    """in the text"""
    different: int
    """contexts of the text"""
    stored: int
    """contexts that would be stored"""
    share: float
    """the share of the text's places that have these before them"""
    features: int
    """H d_h + min(d, N), the most contexts that could be"""
    heads_for_all: int
    """heads that would hold all contexts, with 5 % to spare"""
    parameters: int
    """numbers of the network"""


class Built(NamedTuple):
    """A text as weights; divergences and losses in nats a token."""

    model: AttentionOnly
    encoder_kl: float
    """what the width costs: mean KL(empirical law || encoder) over stored contexts as often as they come"""
    kl: float
    """mean KL(empirical law || network) over them"""
    largest_error: float | None
    """of a log-probability, by a forward pass in float64; None of a ridge regression"""
    largest_error_float32: float | None
    """the same in float32"""
    condition: float | None
    """of the features"""
    test_share: float
    """the share of places of the text for tests whose context is stored"""
    test_loss: float | None
    """mean -log p of the tokens there; None where there are none"""
    test_loss_table: float | None
    """the same of the smoothed table of counts that was stored"""


class TextMemory:
    """The text and the network of `settings`, before anything is built. Raises `InputError` for what cannot be."""

    def __init__(
        self, settings: TextMemorySettings, *, report: Callable[[str], object] = lambda _: None
    ) -> None:
        self.settings, self.config = settings, settings.network
        assert settings.text is not None
        self.corpus = Corpus.open(
            settings.text, vocab_size=settings.vocab_size, length=settings.context + 1, report=report
        )

    @cached_property
    def laws(self) -> NgramDistributions:
        """The laws that would be stored."""
        settings, room = self.settings, self.features
        if settings.contexts is None:
            most = max(1, int(room / (1 + _OVER_PROVISION)))
        else:
            most = settings.contexts
            if settings.method == "exact" and most > room:
                hint = f"the features have rank {room}: use at most as many, more heads, or --method ridge"
                raise InputError("contexts", most, hint)
        laws = ngram_distributions(
            self.corpus.train.flatten(), settings.context, self.corpus.vocab_size, most
        )
        require_memory(
            "heads", settings.heads, _SCRATCH * 8 * len(laws.contexts) * (len(laws.contexts) + room)
        )
        return laws

    @property
    def features(self) -> int:
        """The rank that the features can have."""
        shape = self.config
        unlimited = 2**62
        widths = (shape.width, shape.head_width, shape.heads)
        return expected_rank(shape.vocab_size, shape.context, *widths, unlimited)

    @property
    def plan(self) -> Plan:
        """What would be stored, and what is missing."""
        laws, shape = self.laws, self.config
        wanted = (1 + _OVER_PROVISION) * laws.different - min(shape.width, shape.vocab_size)
        return Plan(
            tokens=self.corpus.train.numel(),
            different=laws.different,
            stored=len(laws.contexts),
            share=laws.share,
            features=self.features,
            heads_for_all=max(0, -int(-wanted // shape.head_width)),
            parameters=shape.parameters,
        )

    def build(self) -> Built:
        """Build the network, and save it where `settings.out` says."""
        settings, laws, shape = self.settings, self.laws, self.config
        targets, prior = laws.log_probs(settings.smoothing), laws.prior
        dimensions = (shape.width, shape.heads, shape.head_width, settings.seed)
        exact = (
            memorize(targets, laws.contexts, *dimensions, prior=prior) if settings.method == "exact" else None
        )
        found = exact or memorize_approximately(
            targets, laws.contexts, *dimensions, method="ridge", prior=prior
        )
        model = found.model
        model.remember(laws.contexts)
        known, loss, table = self._tested(model, targets)
        if settings.out is not None:
            save_text_network(model, self.corpus.tokenizer, settings.out, END)
        return Built(
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

    def _tested(self, model: AttentionOnly, targets: Tensor) -> tuple[float, float | None, float | None]:
        """On the text for tests: the share of known contexts, and the losses of the model and of the table on them."""
        context = self.settings.context
        windows = self.corpus.test.flatten().unfold(0, context + 1, 1)
        places = {tuple(row): place for place, row in enumerate(self.laws.contexts.tolist())}
        row = torch.tensor([places.get(tuple(seen), -1) for seen in windows[:, :context].tolist()])
        known = row >= 0
        if not bool(known.any()):
            return 0.0, None, None
        following = windows[known, context]
        answers = model.answers(self.laws.contexts)
        model.answered = model.unstored = 0
        losses = [-laws[row[known], following].mean() for laws in (answers, targets)]
        return float(known.double().mean()), float(losses[0]), float(losses[1])
