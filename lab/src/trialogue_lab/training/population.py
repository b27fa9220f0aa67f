"""Training on a whole law in place of samples: every sequence with each site masked, by its probability.

population = MaskedPopulation(law.probabilities().view([law.vocab_size] * law.sites))
train(network, population, TrainingConfig(steps=500, batch_size=len(population)), loss=population_loss)
"""

import torch
from torch import Tensor

from trialogue.arrays import real_tensor
from trialogue.errors import InputError
from trialogue.models.masked import MaskReader
from trialogue.oracles import whole_sequences
from trialogue.probabilities import checked_law


class MaskedPopulation:
    """The masked sequences of the law `probabilities` (V, ..., V), of N axes: one batch for `train`, at every step.

    `inputs` (n, N) int64 are all N V^(N - 1) sequences with one masked site, `sites` (n,) where it is, and `joint`
    (n, V) float64 the probability of the others and the masked token, over N, so that it sums to one. Raises
    `InputError` for another shape, and for numbers that are no law.
    """

    def __init__(self, probabilities: Tensor) -> None:
        hint = "give the probabilities (V, ..., V) of all sequences, one axis for each site"
        law = real_tensor("probabilities", probabilities, hint)
        count, vocab = law.ndim, law.shape[0] if law.ndim else 0
        if not count or law.shape != (vocab,) * count:
            raise InputError("probabilities", tuple(law.shape), hint)
        law = checked_law("probabilities", law.flatten(), (law.numel(),)).view(law.shape)
        others = whole_sequences(vocab, count - 1) if count > 1 else torch.empty(1, 0, dtype=torch.int64)
        masked = torch.full((len(others), 1), vocab)
        parts = [torch.cat((others[:, :site], masked, others[:, site:]), 1) for site in range(count)]
        self.inputs = torch.cat(parts)
        self.sites = torch.arange(count).repeat_interleave(len(others))
        self.joint = torch.cat([law.movedim(site, -1).reshape(-1, vocab) for site in range(count)]) / count

    def __len__(self) -> int:
        return len(self.inputs)

    def __call__(self, step: int) -> tuple[Tensor, Tensor, Tensor]:
        """Inputs, sites and joint probabilities: all of them."""
        del step
        return self.inputs, self.sites, self.joint

    @property
    def entropy(self) -> float:
        """The mean over sites of the conditional entropy of a token given all others, in nats: the least loss."""
        laws = self.joint / self.joint.sum(1, keepdim=True)
        return -float(torch.xlogy(self.joint, laws).nansum())


def population_loss(model: MaskReader, inputs: Tensor, sites: Tensor, joint: Tensor) -> Tensor:
    """Cross-entropy of single masked tokens, in nats, mean over sites: of the whole law, without sampling error.

    For the batches of a `MaskedPopulation`.
    """
    logits = model.masked_logits(inputs, torch.arange(len(inputs), device=inputs.device), sites)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return -(joint.to(logits.dtype) * logits.log_softmax(-1)).sum()
