"""What encoder-decoders are asked to predict: the next token, or a whole target from a spoilt one."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from trialogue.data.parallel.vocabulary import BOS, EOS, MASK, PAD, SPECIAL
from trialogue.models.encoder_decoder.network import EncoderDecoder
from trialogue.validation import Share, validated


@validated
@dataclass(frozen=True)
class Noise:
    """What the refiner reads in place of the target: each token by itself is right, random, or a mask.

    A token stays right with probability `correct`; otherwise it is a mask with probability `masked`, else uniform over
    the pieces. `correct` None draws that rate anew for each pair, uniformly from 0 to 1. The defaults are those of the
    thesis (footnote 17).
    """

    correct: Share | None = 0.15
    masked: Share = 0.0

    def spoilt(self, targets: Tensor, vocab_size: int) -> Tensor:
        """What is read (n, T) in place of `targets` (n, T); EOS and PAD stay. Drawn by torch's own generator."""
        shape = targets.shape
        correct: Tensor | float = torch.rand(shape[0], 1) if self.correct is None else self.correct
        random = torch.randint(len(SPECIAL), vocab_size, shape).to(targets.device)
        if self.masked:
            masks = (torch.rand(shape) < self.masked).to(targets.device)
            random = torch.where(masks, MASK, random)
        kept = (torch.rand(shape) < correct).to(targets.device) | (targets == EOS) | (targets == PAD)
        return torch.where(kept, targets, random)


AS_PUBLISHED = Noise()


def translation_loss(
    model: EncoderDecoder, sources: Tensor, targets: Tensor, smoothing: float = 0.0
) -> Tensor:
    """Mean cross-entropy, in nats per token, of a causal decoder that is given the target so far.

    `sources` and `targets` are (n, ...) with EOS at their ends, filled up with PAD. `smoothing` of the probability that
    is asked for is spread over the vocabulary.
    """
    inputs = torch.cat((targets.new_full((len(targets), 1), BOS), targets[:, :-1]), 1)
    states = model.decode(inputs, model.encode(sources))
    told = targets != PAD
    return _cross_entropy(model.head(states[told]), targets[told], smoothing)


def refinement_loss(
    model: EncoderDecoder,
    sources: Tensor,
    targets: Tensor,
    noise: Noise = AS_PUBLISHED,
    stages: int = 1,
    smoothing: float = 0.0,
    length_weight: float = 0.1,
) -> Tensor:
    """Mean over `stages` of the cross-entropy, in nats per token, of the target; and that of its length.

    Equation 4.10 of the thesis and its mean over stages: the first stage reads the target as `noise` spoils it, each
    further one the argmax of the one before, through which no gradient goes. The cross-entropy of the
    number of tokens is added `length_weight` times. `sources` and `targets` are as in `translation_loss`; EOS is
    given, not predicted.
    """
    encoded = model.encode(sources)
    words = (targets != PAD) & (targets != EOS)
    lengths = words.sum(1)
    loss = length_weight * F.cross_entropy(model.length_logits(sources, encoded).float(), lengths)
    inputs, wanted = noise.spoilt(targets, model.config.vocab_size), targets[words]
    for stage in range(stages):
        logits = model.head(model.decode(inputs, encoded)[words])
        loss = loss + _cross_entropy(logits, wanted, smoothing) / stages
        if stage + 1 < stages:
            inputs = inputs.masked_scatter(words, logits.detach().argmax(-1))
    return loss


def _cross_entropy(logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    if not len(targets):  # where no target has a token, only their length is learned
        return logits.float().sum()
    return F.cross_entropy(logits.float(), targets, label_smoothing=smoothing)
