"""Changes of a model's next-token distribution that depend on the tokens so far, such as frequency penalties."""

from dataclasses import dataclass

import torch
from torch import Tensor

from trialogue.oracles import Context


@dataclass(frozen=True)
class Penalties:
    """Change of the next-token distribution of a model. The result is again a function of the prefix.

    Temperature, truncation, masks and weights apply to the changed distribution, so samplers that are exact sample from
    the changed model under the constraint. The changes are those of vLLM, in this order: `logit_bias`, `repetition`,
    `frequency`, `presence`, and tokens that are excluded at the beginning of a completion.

    Args:
        logit_bias: Pairs of a token and a number that is added to its logit (default: none).
        repetition: Divide positive logits of all tokens of prompt and completion by this number, and multiply negative
            ones by it (default: 1).
        frequency: Subtract this number from the logit of a token for each of its occurrences in the completion
            (default: 0).
        presence: Subtract this number from the logits of all tokens of the completion (default: 0).
        excluded: Pairs of a token and the number of tokens of a completion before which it has probability 0 (default:
            none).
    """

    logit_bias: tuple[tuple[int, float], ...] = ()
    repetition: float = 1.0
    frequency: float = 0.0
    presence: float = 0.0
    excluded: tuple[tuple[int, int], ...] = ()

    def log_probs(
        self, context: Context, features: Tensor, own: Tensor, tokens: Tensor, lengths: Tensor, start: Tensor
    ) -> Tensor:
        """Return the changed log-probabilities of the next token.

        Args:
            context: Context that computed the features.
            features: Features (n, features) of n prefixes.
            own: Log-probabilities (n, vocab) of the next token under the model.
            tokens: Token ids (n, width) of prompts and completions.
            lengths: Lengths (n,) of the prefixes.
            start: Lengths (n,) of the prompts.

        Returns:
            Log-probabilities (n, vocab).
        """
        # Log-probabilities and logits differ by a constant, which only the repetition penalty depends on.
        scores = own.clone() if self.repetition == 1 else context.scores(features).to(own)
        for token, bias in self.logit_bias:
            scores[:, token] += bias
        tokens = tokens[:, : int(lengths.max())]
        places = torch.arange(tokens.shape[1])
        is_prefix = places < lengths[:, None]
        if self.repetition != 1:
            repeated = _counts(tokens, is_prefix, scores) > 0
            penalised = torch.where(scores > 0, scores / self.repetition, scores * self.repetition)
            scores = torch.where(repeated, penalised, scores)
        if self.frequency or self.presence:
            counts = _counts(tokens, is_prefix & (places >= start[:, None]), scores)
            scores = scores - self.frequency * counts - self.presence * (counts > 0)
        log_probs = scores.log_softmax(-1) if self.repetition == 1 else context.log_probs_from_scores(scores)
        for token, least in self.excluded:
            log_probs[lengths - start < least, token] = -torch.inf
        return log_probs.log_softmax(-1) if self.excluded else log_probs


def _counts(tokens: Tensor, counted: Tensor, like: Tensor) -> Tensor:
    """Return how often each token occurs at the `counted` (n, width) places of `tokens`, as a tensor (n, vocab)."""
    return torch.zeros_like(like).scatter_add_(1, tokens.to(like.device), counted.to(like))
