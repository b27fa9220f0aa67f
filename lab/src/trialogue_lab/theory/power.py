"""Powers p(x)^alpha of Markov models, computed exactly at any length with transfer matrices.

Let p be a Markov model of texts x of at most L tokens. The normalised power p(x)^alpha / Z is again a Markov model.
With the power sum f_n(i) of all continuations of token i by at most n tokens,

    f_n(i) = sum over j of p(j | i)^alpha f_(n-1)(j),    f_0 = 1,

its next-token distribution is p(j | i)^alpha f_(n-1)(j) / f_n(i). Sampling each token at temperature 1 / alpha leaves
out the factor f. All sums are computed with logarithms. A text that ends early is padded with its end-of-sequence
token, which follows itself with probability one.

References:
    Karan, Du, "Reasoning with sampling", arXiv 2510.14901, for p(x)^alpha as a target.
    arXiv 2601.21590, for the next-token distribution of p(x)^alpha.
"""

import math

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Autoregressive, PrefixOracle, as_oracle, enumerate_sequences, next_log_probs
from trialogue.validation import Count, InstanceOf, Positive, validated

_TOLERANCE = 1e-6


class MarkovOracle(PrefixOracle):
    """Markov model of texts of at most L tokens, with a transition matrix for each position.

    Args:
        log_initial: Log-probabilities (V,) float64 of the first token.
        log_transitions: Log-probabilities (L - 1, V, V) float64. Entry [i, a, b] belongs to token b at position i + 1
            after token a.
        eos: End-of-sequence token, which must follow itself with probability one (default: none).
    """

    def __init__(self, log_initial: Tensor, log_transitions: Tensor, eos: int | None = None) -> None:
        self.log_initial, self.log_transitions, self.eos = log_initial, log_transitions, eos
        self.vocab_size, self.max_length = len(log_initial), len(log_transitions) + 1

    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return the next-token log-probabilities (n, V) of prefixes `tokens` (n, columns) of `lengths` (n,)."""
        answers = self.log_initial.expand(len(lengths), -1).clone()
        later = (lengths > 0).nonzero()[:, 0]
        before = lengths[later] - 1
        answers[later] = self.log_transitions[before, tokens[later, before]]
        return answers

    def sufficient(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return the last token (n, 1) of each prefix, which determines the next-token distribution, or -1."""
        last = tokens.gather(1, (lengths - 1).clamp_min(0)[:, None]) if tokens.shape[1] else lengths[:, None]
        return last.masked_fill(lengths[:, None] == 0, -1)

    def log_prob(self, tokens: Tensor) -> Tensor:
        """Return the log-probability (n,) float64 of each text.

        Args:
            tokens: Token ids (n, L) int64. Texts that end early are padded with the end-of-sequence token.
        """
        positions = torch.arange(len(self.log_transitions))
        later = self.log_transitions[positions, tokens[:, :-1], tokens[:, 1:]]
        return self.log_initial[tokens[:, 0]] + later.sum(1)

    def marginals(self) -> Tensor:
        """Return the probability (L, V) float64 of each token at each position. Texts that have ended count as eos."""
        rows = [self.log_initial]
        for matrix in self.log_transitions:
            rows.append((rows[-1][:, None] + matrix).logsumexp(0))
        return torch.stack(rows).exp()

    def log_power_sums(self, alpha: float) -> Tensor:
        """Return log sum p(x)^alpha over all continuations x of each token at each position, shape (L, V) float64."""
        rows = [torch.zeros(self.vocab_size, dtype=torch.float64)]
        for matrix in self.log_transitions.flip(0):
            rows.append((alpha * matrix + rows[-1]).logsumexp(1))
        return torch.stack(rows[::-1])

    @validated
    def log_partition(self, alpha: Positive) -> float:
        """Return log Z, where Z is the sum of p(x)^alpha over all texts."""
        return float((alpha * self.log_initial + self.log_power_sums(alpha)[0]).logsumexp(0))

    @validated
    def power(self, alpha: Positive) -> "MarkovOracle":
        """Return the normalised power p(x)^alpha / Z as a Markov model."""
        sums = self.log_power_sums(alpha)
        initial = (alpha * self.log_initial + sums[0]).log_softmax(0)
        return MarkovOracle(initial, (alpha * self.log_transitions + sums[1:, None]).log_softmax(2), self.eos)

    @validated
    def tempered(self, temperature: Positive) -> "MarkovOracle":
        """Return the model that samples each token at a temperature."""
        initial = (self.log_initial / temperature).log_softmax(0)
        return MarkovOracle(initial, (self.log_transitions / temperature).log_softmax(2), self.eos)

    def pair_counts(self, pairs: Tensor) -> Tensor:
        """Return the distribution of the number of times that certain pairs of successive tokens occur in a text.

        Args:
            pairs: Whether each pair (V, V) bool of a token and the next one is counted. Padding counts as tokens.

        Returns:
            Probabilities (L,) float64 of the counts 0, ..., L - 1.
        """
        state = torch.full((self.max_length or 1, self.vocab_size), -math.inf, dtype=torch.float64)
        state[0] = self.log_initial
        for matrix in self.log_transitions:
            same, more = (
                (state[:, :, None] + matrix.masked_fill(~which, -math.inf)).logsumexp(1)
                for which in (~pairs, pairs)
            )
            state = torch.cat((same[:1], torch.logaddexp(same[1:], more[:-1])))
        return state.logsumexp(1).exp()

    def expected_log_prob(self, other: "MarkovOracle") -> float:
        """Return the expectation of the log-probability of `other` under this model."""
        marginals = self.marginals()[:-1, :, None]
        joint = torch.cat((self.log_initial.exp(), (marginals * self.log_transitions.exp()).flatten()))
        values = torch.cat((other.log_initial, other.log_transitions.flatten()))
        return float((joint * values.masked_fill(joint == 0, 0.0)).sum())


@validated
def markov_oracle(oracle: InstanceOf[Autoregressive], length: Count) -> MarkovOracle:
    """Convert a next-token model that depends on the last token only.

    Args:
        oracle: The model. Whether the last token suffices is tested with all prefixes of two tokens.
        length: Maximum number L of tokens of a text.

    Raises:
        InputError: If the model depends on the token before the last one, or its texts are shorter than `length`.
    """
    oracle = as_oracle(oracle)
    if oracle.max_length is not None and length > oracle.max_length:
        raise InputError(
            "length", length, f"use at most {oracle.max_length}, the length of the model's texts"
        )
    vocab, eos = oracle.vocab_size, oracle.eos
    last = torch.arange(vocab) if eos is None else torch.arange(vocab)[torch.arange(vocab) != eos]
    initial = next_log_probs(oracle, torch.zeros(1, 0, dtype=torch.int64))[0].double().log_softmax(0)
    matrix = torch.full((vocab, vocab), -math.inf, dtype=torch.float64)
    if eos is not None:
        matrix[eos, eos] = 0.0
    if length > 1:
        matrix[last] = next_log_probs(oracle, last[:, None]).double().log_softmax(1)
    if length > 2:
        prefixes = last[enumerate_sequences(len(last), 2)]
        change = (next_log_probs(oracle, prefixes).double().softmax(1) - matrix[prefixes[:, 1]].exp()).abs()
        if float(change.max()) > _TOLERANCE:
            hint = "use a model whose next token depends on the last token only"
            raise InputError("oracle", f"a change of {float(change.max()):.2g}", hint)
    return MarkovOracle(initial, matrix.expand(length - 1, -1, -1).contiguous(), eos)


def kullback_leibler_divergence(first: MarkovOracle, second: MarkovOracle) -> float:
    """Return the Kullback-Leibler divergence of `first` from `second` in nats, by the chain rule."""
    return first.expected_log_prob(first) - first.expected_log_prob(second)


def log_weight_second_moment(target: MarkovOracle, proposal: MarkovOracle) -> float:
    """Return the logarithm of E[w^2] for importance weights w(x) = target(x) / proposal(x).

    The expectation is over the proposal. About E[w^2] weighted samples are worth one sample from the target.

    Args:
        target: Target distribution.
        proposal: Proposal distribution. It must be positive wherever the target is.
    """
    total = torch.zeros(target.vocab_size, dtype=torch.float64)
    for wanted, drawn in zip(target.log_transitions.flip(0), proposal.log_transitions.flip(0), strict=True):
        total = (_compute_log_squares(wanted, drawn) + total).logsumexp(1)
    return float((_compute_log_squares(target.log_initial, proposal.log_initial) + total).logsumexp(0))


def incremental_weight_variances(model: MarkovOracle, alpha: float, proposal: MarkovOracle) -> Tensor:
    """Return how much the importance weight of a text varies by one more token, for each previous token.

    The factor of the weight is p(b | a)^alpha / q(b | a), where a is the previous token and b is sampled from q. The
    result is its relative variance.

    Args:
        model: The model p.
        alpha: Power.
        proposal: Proposal distribution q.

    Returns:
        Variances divided by the squared means, (L - 1, V) float64 by position and previous token a.

    References:
        Power-SMC, arXiv 2602.10273. The variance is zero exactly if q(b | a) is proportional to p(b | a)^alpha.
    """
    powers = alpha * model.log_transitions
    second = _compute_log_squares(powers, proposal.log_transitions).logsumexp(2)
    return (second - 2 * powers.logsumexp(2)).expm1().clamp_min(0.0)


def _compute_log_squares(wanted: Tensor, drawn: Tensor) -> Tensor:
    """Return log(wanted^2 / drawn) elementwise, or -inf if `wanted` is impossible."""
    return torch.where(wanted == -math.inf, -math.inf, 2 * wanted - drawn)
