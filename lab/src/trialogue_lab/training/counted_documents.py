"""Batches of documents as word counts, for networks that ignore word order, and their losses.

For example:

    batches = CountedDocuments(documents.tokens, model.vocab_size, BertMasking(), batch_size=40)
    train(TopicTransformer(config), batches, TrainingConfig(steps=1000, batch_size=40), loss=document_loss)
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal, NamedTuple

import torch
from torch import Tensor, nn

from trialogue.arrays import Integers
from trialogue.data import BertMasking
from trialogue.errors import InputError
from trialogue.randomness import generator
from trialogue.training.masking import IndependentMasks, Replacement
from trialogue.validation import Count, Natural, NonNegative, validated

Loss = Literal["cross-entropy", "squared"]


class DocumentBatch(NamedTuple):
    """Documents as word counts, with the masked words to predict.

    Token 0 is [MASK], and token i is word i - 1. As in BERT, a masked position shows [MASK], the correct word or a
    random word. Predictions depend on the shown token only, so positions that show the same token are counted together.

    Attributes:
        counts: Number of occurrences of each token in the input (b, V + 1), float32.
        queries: Distinct tokens (b, Q) int64 that masked positions show. The first one is [MASK], and the others are
            padded with zeros.
        asked: Share (b, Q, V + 1) float32 of the document's masked positions that show a given token and have a given
            correct word.
    """

    counts: Tensor
    queries: Tensor
    asked: Tensor


@validated
@dataclass(frozen=True, eq=False)
class CountedDocuments:
    """Batches of documents for `train`, sampled with replacement, as word counts.

    A batch is a function of the step and the seed.

    Args:
        tokens: Documents (n, N) of words below `vocab_size`, padded with -1.
        vocab_size: Number of words V.
        masking: Probabilities of masking as in BERT.
        batch_size: Number of documents per batch.
        seed: Seed of the documents and masks (default: 0).
        once: Whether each document has the same mask in every step. Otherwise, masks are sampled in every step
            (default).
        read_masked: Whether masked positions are part of the input (default: True). The authors' code leaves them out.

    Raises:
        InputError: If `tokens` are not documents, or if nothing is masked.
    """

    tokens: Annotated[Tensor, Integers("n N")]
    vocab_size: Count
    masking: BertMasking
    batch_size: Count
    seed: Natural = 0
    once: bool = False
    read_masked: bool = True

    def __post_init__(self) -> None:
        if int(self.tokens.max()) >= self.vocab_size:
            raise InputError("tokens", int(self.tokens.max()), f"use words from 0 to {self.vocab_size - 1}")
        if self.masking.p_mask == 0:
            raise InputError(
                "p_mask", self.masking.p_mask, "no word would be predicted: use a larger probability"
            )

    def __call__(self, step: int) -> DocumentBatch:
        """Return the batch for a training step."""
        random = generator(self.seed, "documents", step)
        chosen = torch.randint(0, len(self.tokens), (self.batch_size,), generator=random)
        if self.once:
            return DocumentBatch(*(part[chosen] for part in self.all))
        return self.read(self.tokens[chosen], step)

    @cached_property
    def all(self) -> DocumentBatch:
        """All documents, with the masks of step 0."""
        return self.read(self.tokens, 0)

    def read(self, tokens: Tensor, step: int) -> DocumentBatch:
        """Return the documents `tokens` (b, N) with the masks of a step."""
        masking, is_word = self.masking, tokens >= 0
        masks = IndependentMasks(masking.p_mask).masks(len(tokens), tokens.shape[1], step, self.seed)
        targets = masks & is_word
        replacement = Replacement(masking.p_hidden, masking.p_random)
        inputs = replacement.replaced(tokens, targets, self.vocab_size, self.vocab_size, self.seed, step)
        read = torch.where(is_word, (inputs + 1) % (self.vocab_size + 1), self.vocab_size + 1)
        counted = read if self.read_masked else read.masked_fill(targets, self.vocab_size + 1)
        counts = torch.zeros(len(tokens), self.vocab_size + 2)
        counts.scatter_add_(1, counted, torch.ones_like(counted, dtype=counts.dtype))
        # All positions that show [MASK] share query 0. Each other masked position has a query of its own.
        other = targets & (read > 0)
        slot = (other.cumsum(1) * other)[targets]
        document, word = targets.nonzero()[:, 0], tokens[targets] + 1
        count = 1 + int(other.sum(1).max())
        queries = torch.zeros(len(tokens), count, dtype=torch.int64)
        queries[document, slot] = read[targets]
        asked = torch.zeros(len(tokens), count, self.vocab_size + 1)
        shares = 1 / targets.sum(1).clamp_min(1)[document]
        asked.index_put_((document, slot, word), shares, accumulate=True)
        return DocumentBatch(counts[:, :-1], queries, asked)


@validated
def document_loss(
    model: nn.Module,
    counts: Tensor,
    queries: Tensor,
    asked: Tensor,
    kind: Loss = "cross-entropy",
    penalty: NonNegative = 0.0,
) -> Tensor:
    """Return the mean loss per masked position, averaged over documents, with an L2 penalty (equation 2.1).

    Args:
        model: The network.
        counts: Word counts (b, V + 1), as in `DocumentBatch`.
        queries: Input tokens at the positions to predict (b, Q), as in `DocumentBatch`.
        asked: Weights of the correct words (b, Q, V + 1), as in `DocumentBatch`.
        kind: "cross-entropy" in nats (equation 2.4), or "squared" for the squared distance to the one-hot word, summed
            over all V + 1 entries (equation 2.3).
        penalty: Weight of |theta|^2 over the trained matrices (equation 2.2, default: 0).
    """
    predicted = model(counts, queries)
    if kind == "squared":
        losses = asked.sum(2) * (predicted.square().sum(2) + 1) - 2 * (asked * predicted).sum(2)
    else:
        losses = -(asked * predicted.log_softmax(2)).sum(2)
    loss: Tensor = losses.sum() / asked.sum().clamp_min(1e-9)
    if penalty:
        trained = [each for each in model.parameters() if each.requires_grad and each.ndim == 2]
        loss = loss + penalty * torch.stack([each.square().sum() for each in trained]).sum()
    return loss
