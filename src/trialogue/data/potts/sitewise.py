"""Potts chains whose windows each have a table of energies of their own, exact all the same.

Definition 1.3 of the document on Potts chains lets the Hamiltonian H_i differ from site to site: H(x) = sum over i of
E_i(x_i, ..., x_(i+W-1)). Messages then differ at every site too, so that nothing repeats and a chain has one length,
that of its tables; `PottsChain` is for windows that are all alike, of any length.
"""

import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from trialogue.arrays import real_tensor, require_bools
from trialogue.data.potts.messages import MAX_MESSAGES, checked_tokens, require_fitting, window_numbers
from trialogue.data.potts.patterns import StoredPatterns
from trialogue.errors import InputError, positive_number, whole_number
from trialogue.oracles import Energy, Joint, Masked, whole_sequences
from trialogue.randomness import Choose, Streams, seed_of


class SitewisePottsLaw(Masked, Energy, Joint):
    """p(x) ∝ exp(sum over i of log_weights[i, x_i, ..., x_(i+W-1)]) on sequences x of `sites` tokens, open ends.

    `log_weights` (L - W + 1, V^W) float64. It is an energy, a masked oracle whose conditionals are exact for any
    mask, and draws blocks of any size jointly; each answer passes all windows, with V^W numbers per row.
    """

    sites: int
    device = torch.device("cpu")

    def __init__(self, log_weights: Tensor, vocab_size: int, window: int) -> None:
        self.log_weights, self.vocab_size, self.window = log_weights, vocab_size, window
        self.sites = len(log_weights) + window - 1
        self._states = vocab_size ** (window - 1)

    def energy(self, tokens: Tensor) -> Tensor:
        """E(x) (rows,) float64 of `tokens` (rows, N), with p(x) ∝ exp(-E(x))."""
        numbers = window_numbers(self._checked(tokens), self.vocab_size, self.window)
        return -self.log_weights.gather(1, numbers.T).sum(0)

    def states(self) -> Tensor:
        """All sequences (V^N, N) int64 in the order of `itertools.product`."""
        return whole_sequences(self.vocab_size, self.sites)

    def probabilities(self) -> Tensor:
        """p(x) (V^N,) float64 of `states`."""
        return (-self.energy(self.states())).softmax(0)

    def log_partition(self) -> float:
        """log of the sum of exp(-E(x))."""
        return float(self.backward()[0].logsumexp(1))

    def forward(self, known: Tensor | None = None) -> list[Tensor]:
        """Log-weights (rows, V^(W-1)) of all ways to come to the W - 1 sites before each window, and behind the last.

        `known` (rows, N, V) is added where it is given: 0 for a token that a site may have and -inf for others.
        """
        messages = [self._begin(known)]
        for place, weights in enumerate(self.log_weights):
            steps = weights.view(self._states, self.vocab_size) + messages[-1][:, :, None]
            if known is not None:
                steps = steps + known[:, place + self.window - 1, None]
            messages.append(steps.view(len(steps), self.vocab_size, self._states).logsumexp(1))
        return messages

    def backward(self, known: Tensor | None = None) -> list[Tensor]:
        """Log-weights (rows, V^(W-1)) of all ways to go on from the W - 1 sites before each window, and at the end."""
        rows = 1 if known is None else len(known)
        messages = [torch.zeros(rows, self._states, dtype=torch.float64)]
        for place in range(len(self.log_weights) - 1, -1, -1):
            weights = self.log_weights[place].view(self.vocab_size, self._states)
            steps = (weights + messages[-1][:, None]).view(rows, self._states, self.vocab_size)
            if known is not None:
                steps = steps + known[:, place + self.window - 1, None]
            messages.append(steps.logsumexp(2))
        return messages[::-1]

    def window_log_laws(self, known: Tensor | None = None) -> Tensor:
        """log p(window) (windows, rows, V^W) of every window, given the tokens that are `known`."""
        before, after = self.forward(known), self.backward(known)
        laws = []
        for place, weights in enumerate(self.log_weights):
            joint = weights.view(self._states, self.vocab_size) + before[place][:, :, None]
            if known is not None:
                joint = joint + known[:, place + self.window - 1, None]
            joint = joint.view(len(joint), self.vocab_size, self._states) + after[place + 1][:, None]
            laws.append(joint.flatten(1).log_softmax(1))
        return torch.stack(laws)

    def site_marginals(self, known: Tensor | None = None) -> Tensor:
        """log p(x_i) (rows, N, V) of every site, given the tokens that are `known`."""
        laws = self.window_log_laws(known)
        shape = [len(laws), laws.shape[1]] + [self.vocab_size] * self.window
        laws = laws.view(shape)
        others = range(2, 2 + self.window)
        firsts = laws.logsumexp([axis for axis in others if axis > 2]) if self.window > 1 else laws
        ends = [
            laws[-1].logsumexp([axis - 1 for axis in others if axis != place + 2])
            for place in range(1, self.window)
        ]
        return torch.cat((firsts, torch.stack(ends)) if ends else (firsts,)).transpose(0, 1)

    def log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """log p(x_i | x outside the mask) (rows, N, V) float64 of each masked site; others are as they are."""
        tokens = self._checked(tokens)
        require_bools("masked", masked, tuple(tokens.shape), "give one bool for each token")
        return self.site_marginals(self._known(tokens, masked))

    def draw_block(self, tokens: Tensor, block: Tensor, choose: Choose) -> Tensor:
        """Tokens (rows, N) with x_block drawn jointly given the rest; `block` (rows, N) bool, its size may differ."""
        tokens = self._checked(tokens)
        known = self._known(tokens, block)
        drawn, after, reach = tokens.clone(), self.backward(known), self.window - 1
        start = self._begin(known) + after[0]
        for site in range(self.sites):
            rows = block[:, site].nonzero()[:, 0]
            if not len(rows):
                continue
            context = window_numbers(
                drawn[rows, max(0, site - reach) : site], self.vocab_size, min(site, reach)
            )
            context = context[:, 0]
            if site < reach:
                ways = start[rows].view(len(rows), self.vocab_size**site, self.vocab_size, -1).logsumexp(3)
                weights = ways[torch.arange(len(rows)), context]
            else:
                place = site - reach
                windows = context[:, None] * self.vocab_size + torch.arange(self.vocab_size)
                weights = self.log_weights[place][windows]
                weights = weights + after[place + 1][rows].gather(1, windows % self._states)
            drawn[rows, site] = choose(weights, rows)
        return drawn

    def sample(self, n: int, seed: int = 0) -> Tensor:
        """Draw `n` independent sequences (n, N) int64 exactly; sequence i depends on `seed` and i alone."""
        rows = torch.arange(whole_number("n", n, 0))
        nothing = torch.zeros(n, self.sites, dtype=torch.int64)
        streams = Streams(seed_of(seed, "sitewise potts"), rows)
        return self.draw_block(nothing, torch.ones_like(nothing, dtype=torch.bool), streams.choose)

    def _begin(self, known: Tensor | None) -> Tensor:
        """What the first W - 1 sites (rows, V^(W-1)) weigh before any window."""
        if known is None:
            return torch.zeros(1, self._states, dtype=torch.float64)
        weights = known.new_zeros(len(known), 1)
        for site in range(self.window - 1):
            weights = (weights[:, :, None] + known[:, site, None]).flatten(1)
        return weights

    def _known(self, tokens: Tensor, free: Tensor) -> Tensor:
        values = torch.arange(self.vocab_size)
        wrong = ~free[:, :, None] & (tokens[:, :, None] != values)
        return torch.zeros(wrong.shape, dtype=torch.float64).masked_fill(wrong, -math.inf)

    def _checked(self, tokens: Tensor) -> Tensor:
        return checked_tokens(tokens, self.vocab_size, self.sites, self.sites)


class SitewisePottsChain:
    """A chain of L tokens with `energies` (L - W + 1, V, ..., V): what each of its windows costs, place by place.

    `patterns` (periodic sequences of token ids, of one length) are what domain walls lie between, as in `PottsChain`.
    Raises `InputError` for axes of unequal size, energies that are negative, infinite or NaN, patterns that are
    unequal or outside the vocabulary, and chains that would not fit. Methods raise it for a temperature that is not
    positive, or so low that E / T overflows.
    """

    def __init__(self, energies: Tensor, patterns: Iterable[Sequence[int] | Tensor] | None = None) -> None:
        mend = "give L - W + 1 tables of W axes of one size V, at least 2"
        tables = real_tensor("energies", energies, mend)
        shape = tables.shape[1:]
        if tables.ndim < 2 or not len(tables) or len(set(shape)) > 1 or shape[0] < 2:
            raise InputError("energies", tuple(tables.shape), mend)
        self.vocab_size, self.window = shape[0], len(shape)
        require_fitting(self.vocab_size, self.window)
        if tables.numel() > MAX_MESSAGES:
            raise InputError("energies", tuple(tables.shape), f"give at most {MAX_MESSAGES} numbers")
        wrong = tables[~(torch.isfinite(tables) & (tables >= 0))]
        if len(wrong):
            raise InputError("energies", float(wrong[0]), "give finite energies of at least 0")
        self.energies = tables.clone()
        self.length = len(tables) + self.window - 1
        self._stored = None if patterns is None else StoredPatterns(patterns, self.window, self.vocab_size)

    @property
    def max_energy(self) -> float:
        """E^max of Definition 1.3: the largest energy of any window, which bounds all of them."""
        return float(self.energies.max())

    def energy(self, tokens: Tensor) -> Tensor:
        """H(x) (rows,) float64 of `tokens` (rows, L)."""
        return self.at(1.0).energy(tokens)

    def at(self, temperature: float) -> SitewisePottsLaw:
        """The law at a temperature: an energy (H / T), a masked oracle, and joint draws of blocks."""
        number = positive_number("temperature", temperature)
        log_weights = -self.energies.flatten(1) / number
        if not bool(torch.isfinite(log_weights.abs().amax(1).sum())):
            raise InputError(
                "temperature", temperature, f"E / T overflows: the largest energy is {self.max_energy}"
            )
        return SitewisePottsLaw(log_weights, self.vocab_size, self.window)

    def log_partition(self, temperature: float) -> float:
        """log Z of all V^L sequences."""
        return self.at(temperature).log_partition()

    def free_energy(self, temperature: float) -> float:
        """F = -T log Z."""
        return -temperature * self.log_partition(temperature)

    def marginals(self, temperature: float) -> Tensor:
        """p(x_i) (L, V) float64 of every site."""
        return self.at(temperature).site_marginals()[0].exp()

    def window_marginals(self, temperature: float) -> Tensor:
        """p(x_i, ..., x_(i+W-1)) (L - W + 1, V, ..., V) float64 of every window."""
        return self.at(temperature).window_log_laws()[:, 0].exp().view(self.energies.shape)

    def mean_energy(self, temperature: float) -> float:
        """The expectation of H."""
        return float((self.window_marginals(temperature) * self.energies).sum())

    def entropy(self, temperature: float) -> float:
        """S = (<H> - F) / T, in nats."""
        return self.mean_energy(temperature) / temperature + self.log_partition(temperature)

    def sample(self, n: int, temperature: float, seed: int = 0) -> Tensor:
        """Draw `n` independent sequences (n, L) int64 exactly; sequence i depends on `seed` and i alone."""
        return self.at(temperature).sample(n, seed)

    def domain_walls(self, tokens: Tensor) -> Tensor:
        """Where the nearest pattern of a window is not that of the window before it, (rows, L - W) bool."""
        tokens = checked_tokens(tokens, self.vocab_size, self.length, self.length)
        labels = self._patterns().nearest(tokens)[0]
        return labels[:, 1:] != labels[:, :-1]

    def wall_probabilities(self, temperature: float) -> Tensor:
        """P(domain wall) (L - W,) float64 between every two successive windows."""
        law, labels = self.at(temperature), self._labels()
        before, after, states = law.forward(), law.backward(), self.vocab_size ** (self.window - 1)
        answers = torch.zeros(self.length - self.window, dtype=torch.float64)
        for place in range(len(answers)):
            # By (first token, the state both windows share, last token).
            first = law.log_weights[place].view(states, self.vocab_size) + before[place][0][:, None]
            second = law.log_weights[place + 1].view(self.vocab_size, states) + after[place + 2][0]
            joint = first.view(self.vocab_size, states)[:, :, None] + second.view(states, self.vocab_size)
            apart = labels[place].view(self.vocab_size, states)[:, :, None] != labels[place + 1].view(
                states, self.vocab_size
            )
            answers[place] = joint.flatten().softmax(0)[apart.flatten()].sum()
        return answers

    def expected_domain_walls(self, temperature: float) -> float:
        """The expected number of positions where the nearest pattern changes."""
        return float(self.wall_probabilities(temperature).sum())

    def run_length_law(self, temperature: float) -> Tensor:
        """P(the first coherent run has r windows) (L - W + 1,), r = 1, 2, ...; the last: there is no wall."""
        law, labels = self.at(temperature), self._labels()
        after, states = law.backward(), self.vocab_size ** (self.window - 1)
        count = self._patterns().labels
        shown = torch.arange(count)[:, None]
        runs = torch.zeros(count, states, dtype=torch.float64)
        lengths = []
        for place, weights in enumerate(law.log_weights):
            steps = (weights.view(states, self.vocab_size) + runs[:, :, None]).flatten(1)
            if place:
                ends = steps.masked_fill(labels[place] == shown, -math.inf)
                ends = ends.view(count, self.vocab_size, states) + after[place + 1]
                lengths.append(ends.flatten().logsumexp(0))
            steps = steps.masked_fill(labels[place] != shown, -math.inf)
            runs = steps.view(count, self.vocab_size, states).logsumexp(1)
        lengths.append(runs.flatten().logsumexp(0))
        return (torch.stack(lengths) - law.log_partition()).exp()

    def no_wall_probability(self, temperature: float) -> float:
        """P(all windows have one label)."""
        return float(self.run_length_law(temperature)[-1])

    def _labels(self) -> Tensor:
        """The nearest label (windows, V^W) of every window at every place."""
        stored = self._patterns()
        tables = torch.stack([stored.window_labels(site) for site in range(stored.period)])
        return tables[torch.arange(len(self.energies)) % stored.period]

    def _patterns(self) -> StoredPatterns:
        if self._stored is None:
            raise InputError(
                "patterns", None, "nothing is stored: use SitewisePottsChain(energies, patterns)"
            )
        return self._stored
