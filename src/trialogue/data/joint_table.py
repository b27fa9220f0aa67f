"""Distribution given by an array of joint probabilities, with all its conditional distributions."""

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from trialogue.arrays import require_bools
from trialogue.data.enumerable import Enumerable
from trialogue.data.table import checked_joint
from trialogue.indices import index_tensor
from trialogue.oracles import Masked

_ENTRIES_AT_ONCE = 2**24


class JointTable(Masked, Enumerable):
    """Distribution of sequences of fixed length, given by the probabilities of all sequences.

    As a masked model, it returns the true conditional distributions. If no sequence of positive probability agrees with
    the tokens that are not masked, the conditional distribution is undefined. The model then returns the uniform
    distribution.

    Args:
        probabilities: Array (vocab_size, ..., vocab_size) of joint probabilities with one axis per position. It is
            normalised.

    Raises:
        InputError: If the axes have different lengths, or the probabilities are not non-negative numbers with a
            positive sum.

    Example:
        >>> from trialogue.data import JointTable
        >>> JointTable([[0.1, 0.4], [0.2, 0.3]]).probabilities()
        tensor([0.1000, 0.4000, 0.2000, 0.3000], dtype=torch.float64)
    """

    def __init__(self, probabilities: ArrayLike) -> None:
        joint = torch.from_numpy(checked_joint(probabilities))
        self.vocab_size, self.sites = joint.shape[0], joint.ndim
        self._log_joint = (joint / joint.sum()).log().flatten()

    def energy(self, tokens: Tensor) -> Tensor:
        """Return -log p(x) of each sequence.

        Args:
            tokens: Sequences (rows, N) int64.

        Returns:
            Energies (rows,) float64, +inf for sequences of probability 0.
        """
        places = self.vocab_size ** torch.arange(self.sites - 1, -1, -1)
        return -self._log_joint[(self._checked(tokens) * places).sum(1)]

    def log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """Return the conditional log-probabilities of every masked site given the tokens outside of the mask.

        Args:
            tokens: Sequences (rows, N) int64. Tokens at masked sites are ignored.
            masked: Mask (rows, N) bool, with any number of sites per row.

        Returns:
            Log-probabilities (rows, N, V) float64. At sites outside of the mask, the log-probability is 0 for the given
            token and -inf for all others.

        Raises:
            InputError: If a token is out of range, or the shape or type of the mask is wrong.
        """
        tokens, states = self._checked(tokens), self.states()
        require_bools("masked", masked, tuple(tokens.shape), "give one bool for each token")
        values = torch.nn.functional.one_hot(states, self.vocab_size).double().flatten(1)
        distributions = torch.nn.functional.one_hot(tokens, self.vocab_size).double()
        for rows in torch.arange(len(tokens)).split(max(1, _ENTRIES_AT_ONCE // len(states))):
            agrees = torch.ones(len(rows), len(states), dtype=torch.bool)
            for site in range(self.sites):
                same = tokens[rows, site, None] == states[:, site]
                agrees &= same | masked[rows, site, None]
            weights = agrees * self._log_joint.exp()
            marginals = (weights @ values).view(len(rows), self.sites, self.vocab_size)
            marginals[weights.sum(1) == 0] = 1.0
            marginals /= marginals.sum(2, keepdim=True)
            distributions[rows] = torch.where(masked[rows, :, None], marginals, distributions[rows])
        return distributions.log()

    def _checked(self, tokens: Tensor) -> Tensor:
        """Return `tokens` (rows, N) as int64, after a check of their shape and range."""
        hint = f"give token ids of shape (rows, {self.sites})"
        range_hint = f"use tokens below vocab_size={self.vocab_size}"
        return index_tensor(
            "tokens", tokens, (None, self.sites), self.vocab_size, shape_hint=hint, range_hint=range_hint
        )
