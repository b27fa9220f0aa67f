"""Losses of encoder-decoders: next-token prediction, and refinement of corrupted targets."""

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
    """Random corruption of target tokens, from which a model learns to restore them.

    Each token is unchanged with probability `correct`. Otherwise it becomes a mask token with probability
    `masked`, or a uniformly random token. The defaults are from the thesis (footnote 17).

    Args:
        correct: Probability that a token is unchanged. None samples this probability uniformly for each pair.
        masked: Probability that a changed token becomes a mask token.
    """

    correct: Share | None = 0.15
    masked: Share = 0.0

    def corrupt(self, targets: Tensor, vocab_size: int) -> Tensor:
        """Return corrupted targets, with EOS and PAD unchanged. Uses the global random generator of torch.

        Args:
            targets: Target tokens, (n, T) int64.
            vocab_size: Number of tokens, including special tokens.
        """
        shape = targets.shape
        correct: Tensor | float = torch.rand(shape[0], 1) if self.correct is None else self.correct
        random = torch.randint(len(SPECIAL), vocab_size, shape).to(targets.device)
        if self.masked:
            masks = (torch.rand(shape) < self.masked).to(targets.device)
            random = torch.where(masks, MASK, random)
        unchanged = (torch.rand(shape) < correct).to(targets.device) | (targets == EOS) | (targets == PAD)
        return torch.where(unchanged, targets, random)


AS_PUBLISHED = Noise()


def translation_loss(
    model: EncoderDecoder, sources: Tensor, targets: Tensor, smoothing: float = 0.0
) -> Tensor:
    """Compute the mean cross-entropy of a causal decoder, in nats per target token.

    Args:
        model: Encoder-decoder with a causal decoder.
        sources: Source tokens with EOS and padded with PAD, (n, S) int64.
        targets: Target tokens in the same format, (n, T) int64.
        smoothing: Label smoothing, the probability that is spread over the vocabulary.
    """
    inputs = torch.cat((targets.new_full((len(targets), 1), BOS), targets[:, :-1]), 1)
    states = model.decode(inputs, model.encode(sources))
    predicted = targets != PAD
    return _cross_entropy(model.head(states[predicted]), targets[predicted], smoothing)


def refinement_loss(
    model: EncoderDecoder,
    sources: Tensor,
    targets: Tensor,
    noise: Noise = AS_PUBLISHED,
    stages: int = 1,
    smoothing: float = 0.0,
    length_weight: float = 0.1,
) -> Tensor:
    """Compute the training loss of a refinement model, which predicts the target from a corrupted target.

    In the first stage, the model reads the corrupted target. In each further stage, it reads the most
    probable tokens of the previous stage, without gradients. The loss is the mean cross-entropy of the stages
    (equation 4.10 of the thesis) plus that of the target length. EOS is not predicted.

    Args:
        model: Encoder-decoder with a bidirectional decoder.
        sources: Source tokens with EOS and padded with PAD, (n, S) int64.
        targets: Target tokens in the same format, (n, T) int64.
        noise: Corruption of the targets for the first stage.
        stages: Number of refinement stages.
        smoothing: Label smoothing, the probability that is spread over the vocabulary.
        length_weight: Weight of the cross-entropy of the target length.
    """
    encoded = model.encode(sources)
    words = (targets != PAD) & (targets != EOS)
    lengths = words.sum(1)
    loss = length_weight * F.cross_entropy(model.length_logits(sources, encoded).float(), lengths)
    inputs, wanted = noise.corrupt(targets, model.config.vocab_size), targets[words]
    for stage in range(stages):
        logits = model.head(model.decode(inputs, encoded)[words])
        loss = loss + _cross_entropy(logits, wanted, smoothing) / stages
        if stage + 1 < stages:
            inputs = inputs.masked_scatter(words, logits.detach().argmax(-1))
    return loss


def _cross_entropy(logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    # Without target tokens the loss is zero, and only the length is learned.
    if not len(targets):
        return logits.float().sum()
    return F.cross_entropy(logits.float(), targets, label_smoothing=smoothing)
