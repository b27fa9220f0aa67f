"""Training on a full distribution instead of samples: all sequences with one masked token.

For example:

    population = MaskedPopulation(model.probabilities().view([model.vocab_size] * model.sites))
    train(network, population, TrainingConfig(steps=500, batch_size=len(population)), loss=population_loss)
"""

import torch
from torch import Tensor

from trialogue.arrays import real_tensor
from trialogue.errors import InputError
from trialogue.models.networks.masked import MaskReader
from trialogue.oracles import enumerate_sequences
from trialogue.probabilities import validate_distribution


class MaskedPopulation:
    """All sequences of N tokens with one of them masked, as the constant batch of `train`.

    Training on it minimizes the exact expected loss, without sampling.

    Args:
        probabilities: Probabilities of all sequences (V, ..., V), with N axes.

    Attributes:
        inputs: All N V^(N - 1) sequences with one masked position (n, N), int64.
        sites: The masked position of each sequence (n,).
        joint: Probability of the other tokens together with each value of the masked token, divided by N (n, V),
            float64. The sum is one.

    Raises:
        InputError: If `probabilities` has another shape or is not a distribution.
    """

    def __init__(self, probabilities: Tensor) -> None:
        hint = "give the probabilities (V, ..., V) of all sequences, one axis for each site"
        joint = real_tensor("probabilities", probabilities, hint)
        count, vocab = joint.ndim, joint.shape[0] if joint.ndim else 0
        if not count or joint.shape != (vocab,) * count:
            raise InputError("probabilities", tuple(joint.shape), hint)
        joint = validate_distribution("probabilities", joint.flatten(), (joint.numel(),)).view(joint.shape)
        others = enumerate_sequences(vocab, count - 1) if count > 1 else torch.empty(1, 0, dtype=torch.int64)
        masked = torch.full((len(others), 1), vocab)
        parts = [torch.cat((others[:, :site], masked, others[:, site:]), 1) for site in range(count)]
        self.inputs = torch.cat(parts)
        self.sites = torch.arange(count).repeat_interleave(len(others))
        self.joint = torch.cat([joint.movedim(site, -1).reshape(-1, vocab) for site in range(count)]) / count

    def __len__(self) -> int:
        return len(self.inputs)

    def __call__(self, step: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return `inputs`, `sites` and `joint`, the same in every step."""
        del step
        return self.inputs, self.sites, self.joint

    @property
    def entropy(self) -> float:
        """Mean entropy of a token given all others, in nats. No model has a smaller loss."""
        conditionals = self.joint / self.joint.sum(1, keepdim=True)
        return -float(torch.xlogy(self.joint, conditionals).nansum())


def population_loss(model: MaskReader, inputs: Tensor, sites: Tensor, joint: Tensor) -> Tensor:
    """Return the exact cross-entropy of single masked tokens, averaged over positions, in nats.

    Args:
        model: The network.
        inputs: Sequences with one masked position (n, N), as in `MaskedPopulation`.
        sites: The masked positions (n,).
        joint: Joint probabilities (n, V), as in `MaskedPopulation`.
    """
    logits = model.masked_logits(inputs, torch.arange(len(inputs), device=inputs.device), sites)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return -(joint.to(logits.dtype) * logits.log_softmax(-1)).sum()
