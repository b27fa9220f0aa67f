"""Documents as counts of what is read: batches for networks without positions, and their losses.

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
    """Documents as a network without positions reads them, numbered as in the thesis: 0 is [MASK], i the word i - 1.

    `counts` (b, V + 1) float32 say how often each word is read, `queries` (b, Q) int64 what is read where words are to
    be predicted: [MASK] first, for all positions that show it, then one for each other position, and zeros. `asked`
    (b, Q, V + 1) float32 is the share of a document's masked positions at which this is read and that word is asked
    for; it is zero for a document without any.
    """

    counts: Tensor
    queries: Tensor
    asked: Tensor


@validated
@dataclass(frozen=True, eq=False)
class CountedDocuments:
    """Batches of documents `tokens` (n, N) of words below `vocab_size`, -1 behind their ends, for `train`.

    A batch is a function of the step and the `seed`: documents drawn with replacement, with masks of their own or, with
    `once`, with those drawn for the data set. `read_masked` False leaves masked positions out of what is attended to,
    as the authors' code does. Raises `InputError` for what are no documents.
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
            hint = f"the words are 0 to {self.vocab_size - 1}"
            raise InputError("tokens", int(self.tokens.max()), hint)
        if self.masking.p_mask == 0:
            raise InputError("p_mask", self.masking.p_mask, "nothing is to be predicted: use more")

    def __call__(self, step: int) -> DocumentBatch:
        """The batch of a step."""
        random = generator(self.seed, "documents", step)
        drawn = torch.randint(0, len(self.tokens), (self.batch_size,), generator=random)
        if self.once:
            return DocumentBatch(*(part[drawn] for part in self.all))
        return self.read(self.tokens[drawn], step)

    @cached_property
    def all(self) -> DocumentBatch:
        """All documents, with the masks of the data set."""
        return self.read(self.tokens, 0)

    def read(self, tokens: Tensor, step: int) -> DocumentBatch:
        """The documents `tokens` (b, N) with the masks of a step."""
        masking, there = self.masking, tokens >= 0
        targets = (
            IndependentMasks(masking.p_mask).masks(len(tokens), tokens.shape[1], step, self.seed) & there
        )
        law = Replacement(masking.p_hidden, masking.p_random)
        inputs = law.replaced(tokens, targets, self.vocab_size, self.vocab_size, self.seed, step)
        places = torch.where(there, (inputs + 1) % (self.vocab_size + 1), self.vocab_size + 1)
        counted = places if self.read_masked else places.masked_fill(targets, self.vocab_size + 1)
        counts = torch.zeros(len(tokens), self.vocab_size + 2)
        counts.scatter_add_(1, counted, torch.ones_like(counted, dtype=counts.dtype))
        # Positions that show [MASK] are asked alike; each of the others has a place of its own behind.
        other = targets & (places > 0)
        slot = (other.cumsum(1) * other)[targets]
        document, queried, word = targets.nonzero()[:, 0], places[targets], tokens[targets] + 1
        most = 1 + int(other.sum(1).max())
        queries = torch.zeros(len(tokens), most, dtype=torch.int64)
        queries[document, slot] = queried
        asked = torch.zeros(len(tokens), most, self.vocab_size + 1)
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
    """Equation 2.1: the mean over documents of the mean loss of a masked position, plus `penalty` times |theta|^2.

    Cross-entropy in nats (2.4), or the squared distance to the one-hot word (2.3), summed over all V + 1 numbers. The
    penalty (2.2) is on trained matrices.
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
