"""Random masked models, and a deliberately naive enumeration of unmasking samplers by recursion on tuples.

A canvas is a tuple with None at masked positions. Nothing here uses the package, except for the settings of samplers.
"""

import itertools
import math
import re
from collections import defaultdict

import torch

from trialogue.oracles import Masked
from trialogue.randomness import numpy_generator
from trialogue.samplers.unmasking import (
    Checked,
    Confidence,
    Constrained,
    Corrected,
    DrawThenSelect,
    Entropy,
    Factor,
    Fixed,
    LeftToRight,
    Margin,
    Ordered,
    Permutation,
    Random,
    ReMDM,
    Schedule,
    Threshold,
)


class RandomConditionals(Masked):
    """Masked model with an own random distribution for each canvas, position and seed, which no joint has.

    With `grid`, probabilities are multiples of 1 / grid, so that ties and zeros occur.
    """

    def __init__(self, seed, vocab_size, sites, grid=None):
        self.seed, self.vocab_size, self.sites, self.grid = seed, vocab_size, sites, grid
        self._known = {}

    def conditional(self, canvas, site):
        if (canvas, site) not in self._known:
            random = numpy_generator(self.seed, canvas, site)
            probabilities = random.dirichlet([1.0] * self.vocab_size)
            if self.grid:
                probabilities = random.multinomial(self.grid, probabilities) / self.grid
            self._known[canvas, site] = probabilities.tolist()
        return self._known[canvas, site]

    def log_probs(self, tokens, masked):
        canvases = [
            tuple(None if hidden else token for token, hidden in zip(*row, strict=True))
            for row in zip(tokens.tolist(), masked.tolist(), strict=True)
        ]
        table = [[self.conditional(canvas, site) for site in range(self.sites)] for canvas in canvases]
        return torch.tensor(table, dtype=torch.float64).view(*tokens.shape, self.vocab_size).log()


def naive_distribution(sampler, model, start):
    """Return the probabilities by output, None for rejected outputs, and the expected number of passes."""
    outputs, cost = RUNS[type(sampler)](sampler, model, tuple(start))
    return {text: mass for text, mass in outputs.items() if mass > 0}, cost


def _mix(branches):
    """Return the mixture of pairs of a probability and a pair of outputs and expected passes."""
    outputs, cost = defaultdict(float), 0.0
    for probability, (texts, passes) in branches:
        for text, mass in texts.items():
            outputs[text] += probability * mass
        cost += probability * passes
    return outputs, cost


def _tempered(sampler, probabilities):
    """Return the distribution from which a token is drawn."""
    if sampler.temperature == 0:
        best = max(range(len(probabilities)), key=lambda x: (probabilities[x], -x))
        return [float(x == best) for x in range(len(probabilities))]
    powers = [p ** (1 / sampler.temperature) for p in probabilities]
    powers = [p / sum(powers) for p in powers]
    order = sorted(range(len(powers)), key=lambda x: -powers[x])
    kept, mass = set(), 0.0
    for x in order:
        if kept and mass >= (sampler.top_p or 1) - 1e-12:
            break
        kept.add(x)
        mass += powers[x]
    return [powers[x] / mass if x in kept else 0.0 for x in range(len(powers))]


def _draws(sampler, model, canvas, sites):
    """Yield probabilities and tokens of independent draws at `sites`."""
    options = [_tempered(sampler, model.conditional(canvas, site)) for site in sites]
    for tokens in itertools.product(range(model.vocab_size), repeat=len(sites)):
        probability = math.prod(option[x] for option, x in zip(options, tokens, strict=True))
        if probability > 0:
            yield probability, tokens


def _fill(canvas, sites, tokens):
    filled = list(canvas)
    for site, token in zip(sites, tokens, strict=True):
        filled[site] = token
    return tuple(filled)


def _counts(size, scores, total, passes):
    """Return pairs of a number of positions and its probability. `scores` are those of the masked positions."""
    left = len(scores)
    if isinstance(size, Fixed):
        count = size.positions
    elif isinstance(size, Threshold):
        count = len([c for c in scores if c >= size.confidence - 1e-9])
    elif isinstance(size, Factor):
        ranked = sorted(scores, reverse=True)
        count = max(
            (n for n in range(1, left + 1) if (n + 1) * (1 - ranked[n - 1]) <= size.factor + 1e-9), default=1
        )
    elif isinstance(size, Schedule) and size.shape == "linear":
        count = total // size.passes + (passes < total % size.passes)
    elif isinstance(size, Schedule):
        share = math.cos(math.pi / 2 * min(1, (passes + 1) / size.passes))
        count = left - math.floor(total * share + 1e-9)
    else:
        q = 1 / (size.passes - passes)
        return [(k, math.comb(left, k) * q**k * (1 - q) ** (left - k)) for k in range(left + 1)]
    return [(min(left, max(1, count)), 1.0)]


def _selections(order, ties, scores, count):
    """Return pairs of a probability and the selected positions, given `scores` by masked position."""
    ranked = sorted(scores, key=lambda site: (-scores[site], site))
    if ties == "first":
        return [(1.0, tuple(ranked[:count]))]
    possible = [
        chosen
        for chosen in itertools.combinations(sorted(scores), count)
        if all(scores[a] >= scores[b] for a in chosen for b in set(scores) - set(chosen))
    ]
    return [(1 / len(possible), chosen) for chosen in possible]


def _scores(order, model, canvas, sites):
    scores = {}
    for site in sites:
        p = sorted(model.conditional(canvas, site), reverse=True)
        if isinstance(order, LeftToRight):
            score = -site
        elif isinstance(order, Permutation):
            score = -order.positions.index(site)
        elif isinstance(order, Random):
            score = 0
        elif isinstance(order, Confidence):
            score = round(p[0], 9)
        elif isinstance(order, Entropy):
            score = -round(-sum(x * math.log(x) for x in p if x > 0), 9)
        else:
            assert isinstance(order, Margin)
            score = round(p[0] - p[1], 9)
        scores[site] = score
    return scores


def _block(width, start, canvas):
    """Return the free positions of the first block with masked positions."""
    free = [site for site, token in enumerate(start) if token is None]
    parts = [free[i : i + (width or len(free))] for i in range(0, len(free), width or len(free))]
    return next(part for part in parts if any(canvas[site] is None for site in part))


def _run_ordered(sampler, model, start):
    def run(canvas, passes):
        if None not in canvas:
            return {canvas: 1.0}, 0.0
        block = _block(sampler.blocks, start, canvas)
        sites = [site for site in block if canvas[site] is None]
        branches = []
        if isinstance(sampler, DrawThenSelect):
            for p, tokens in _draws(sampler, model, canvas, sites):
                drawn = dict(zip(sites, tokens, strict=True))
                scores = {s: round(model.conditional(canvas, s)[drawn[s]], 9) for s in sites}
                for k, q in _counts(sampler.size, list(scores.values()), len(block), passes):
                    for r, chosen in _selections(None, sampler.ties, scores, k):
                        branches.append((p * q * r, _fill(canvas, chosen, [drawn[s] for s in chosen])))
        else:
            scores = _scores(sampler.order, model, canvas, sites)
            for k, q in _counts(sampler.size, list(scores.values()), len(block), passes):
                for r, chosen in _selections(sampler.order, sampler.order.ties, scores, k):
                    for p, tokens in _draws(sampler, model, canvas, chosen):
                        branches.append((p * q * r, _fill(canvas, chosen, tokens)))

        def after(following):
            same = any(following[site] is None for site in block)
            return run(following, passes + 1 if same else 0)

        outputs, cost = _mix((p, after(following)) for p, following in branches if p > 0)
        return outputs, cost + 1

    return run(start, 0)


def _run_remdm(sampler, model, start):
    free = [site for site, token in enumerate(start) if token is None]
    steps = sampler.passes

    def run(canvas, t):
        if t == steps:
            return {canvas: 1.0}, 0.0
        a, b = t / steps, (t + 1) / steps
        largest = 1.0 if t == 0 else min(1.0, (1 - b) / a)
        s = min(sampler.eta, largest) if sampler.schedule == "cap" else sampler.eta * largest
        reveal = (b - (1 - s) * a) / (1 - a)
        branches = []
        for flips in itertools.product((False, True), repeat=len(free)):
            p = 1.0
            for site, flip in zip(free, flips, strict=True):
                q = reveal if canvas[site] is None else s
                p *= q if flip else 1 - q
            if p > 1e-15:
                flipped = [site for site, flip in zip(free, flips, strict=True) if flip]
                hidden = [site for site in flipped if canvas[site] is not None]
                shown = [site for site in flipped if canvas[site] is None]
                for q, tokens in _draws(sampler, model, canvas, shown):
                    after = _fill(_fill(canvas, hidden, [None] * len(hidden)), shown, tokens)
                    branches.append((p * q, after))
        outputs, cost = _mix((p, run(after, t + 1)) for p, after in branches)
        return outputs, cost + 1

    return run(start, 0)


def _run_corrected(sampler, model, start):
    free = [site for site, token in enumerate(start) if token is None]
    outputs, cost = naive_distribution(sampler.sampler, model, start)
    for site in free * sampler.sweeps:
        corrected = defaultdict(float)
        for text, mass in outputs.items():
            hidden = _fill(text, [site], [None])
            for token, p in enumerate(model.conditional(hidden, site)):
                corrected[_fill(text, [site], [token])] += mass * p
        outputs, cost = corrected, cost + 1
    return outputs, cost


def _run_checked(sampler, model, start):
    """Judge complete texts of a wrapped sampler, or the canvas after each pass of one with `Fixed` sizes."""
    free = [site for site, token in enumerate(start) if token is None]

    def accepts(canvas):
        prefix = list(itertools.takewhile(lambda token: token is not None, canvas))
        if sampler.eos in prefix:
            prefix = prefix[: prefix.index(sampler.eos) + 1]
        return bool(sampler.verifier(tuple(prefix)))

    def hide(canvas, left):
        shown = [site for site in free if canvas[site] is not None]
        size = len(shown) if sampler.remask is None else min(len(shown), sampler.remask)
        chosen = list(itertools.combinations(shown, size))
        return _mix((1 / len(chosen), run(_fill(canvas, sites, [None] * size), left - 1)) for sites in chosen)

    def run(canvas, left):
        if sampler.partial:
            return one_pass(canvas, left)
        outputs, cost = naive_distribution(sampler.sampler, model, canvas)
        found, after = _mix((mass, judged(text, left)) for text, mass in outputs.items())
        return found, cost + after

    def judged(canvas, left):
        if accepts(canvas):
            return {canvas: 1.0}, 0.0
        return hide(canvas, left) if left else ({None: 1.0}, 0.0)

    def one_pass(canvas, left):
        sites = [site for site, token in enumerate(canvas) if token is None]
        scores = _scores(sampler.sampler.order, model, canvas, sites)
        count = min(len(sites), sampler.sampler.size.positions)
        branches = []
        for r, chosen in _selections(None, sampler.sampler.order.ties, scores, count):
            for p, tokens in _draws(sampler.sampler, model, canvas, chosen):
                after = _fill(canvas, chosen, tokens)
                if None not in after:
                    branches.append((p * r, judged(after, left)))
                elif left and not accepts(after):
                    branches.append((p * r, hide(after, left)))
                else:
                    branches.append((p * r, one_pass(after, left)))
        outputs, cost = _mix(branches)
        return outputs, cost + 1

    return run(start, sampler.quota)


def _run_constrained(sampler, model, start):
    """Draw tokens one after another, where a token is allowed if some filling of the other masks is accepted.

    `naive_languages` defines which fillings are accepted.
    """
    inner = sampler.sampler

    def restricted(canvas, site, conditional):
        """Return the distribution over allowed tokens, or None if all of them have probability 0."""
        masses = [
            p if completable(sampler, _fill(canvas, [site], [token]), start) else 0.0
            for token, p in enumerate(conditional)
        ]
        return [p / sum(masses) for p in masses] if sum(masses) > 0 else None

    def run(canvas, passes):
        if None not in canvas:
            return {canvas: 1.0}, 0.0
        masked = [site for site, token in enumerate(canvas) if token is None]
        given = {site: restricted(canvas, site, model.conditional(canvas, site)) for site in masked}
        if None in given.values():
            return {None: 1.0}, 1.0
        block = _block(inner.blocks, start, canvas)
        sites = [site for site in block if canvas[site] is None]

        def fill(after, chosen):
            """Return pairs of a probability and the canvas with tokens at `chosen`, or None if there are none."""
            if not chosen:
                return [(1.0, after)]
            drawn = restricted(after, chosen[0], given[chosen[0]])
            if drawn is None:
                return [(1.0, None)]
            drawn = _tempered(inner, drawn)
            return [
                (p * q, text)
                for token, p in enumerate(drawn)
                if p > 0
                for q, text in fill(_fill(after, chosen[:1], [token]), chosen[1:])
            ]

        branches = []
        if isinstance(inner, DrawThenSelect):
            for p, full in fill(canvas, sites):
                if full is None:
                    branches.append((p, None))
                    continue
                scores = {s: round(given[s][full[s]], 9) for s in sites}
                for k, q in _counts(inner.size, list(scores.values()), len(block), passes):
                    for r, chosen in _selections(None, inner.ties, scores, k):
                        branches.append((p * q * r, _fill(canvas, chosen, [full[s] for s in chosen])))
        else:
            scores = _scores(inner.order, _Given(given), canvas, sites)
            for k, q in _counts(inner.size, list(scores.values()), len(block), passes):
                for r, chosen in _selections(inner.order, inner.order.ties, scores, k):
                    branches += [(p * q * r, after) for p, after in fill(canvas, sorted(chosen))]

        def after(following):
            if following is None:
                return {None: 1.0}, 0.0
            return run(following, passes + 1 if any(following[site] is None for site in block) else 0)

        outputs, cost = _mix((p, after(following)) for p, following in branches if p > 0)
        return outputs, cost + 1

    return run(start, 0)


class _Given:
    """Model with given distributions by site."""

    def __init__(self, distributions):
        self._distributions = distributions

    def conditional(self, canvas, site):
        return self._distributions[site]


def completable(sampler, canvas, start):
    """Return whether some filling of the masked positions of a canvas is a text of the language of a sampler."""
    pattern, pieces = sampler.verifier.pattern, sampler.verifier.pieces
    known = completable.known.setdefault((pattern, pieces, sampler.eos), {})
    first = start.index(None)
    canvas = canvas[first : sampler.judged_length or len(canvas)]
    if canvas not in known:
        hidden = [site for site, token in enumerate(canvas) if token is None]
        fillings = itertools.product(range(len(pieces)), repeat=len(hidden))
        known[canvas] = any(
            is_text(_fill(canvas, hidden, filling), pattern, pieces, sampler.eos) for filling in fillings
        )
    return known[canvas]


completable.known = {}


def is_text(tokens, pattern, pieces, eos):
    """Return whether the tokens up to the first `eos` are matched by a pattern. Tokens without a piece never are."""
    tokens = tokens[: tokens.index(eos)] if eos in tokens else tokens
    return all(pieces[token] for token in tokens) and bool(
        re.fullmatch(pattern, b"".join(pieces[token] for token in tokens).decode())
    )


RUNS = {
    Constrained: _run_constrained,
    Ordered: _run_ordered,
    DrawThenSelect: _run_ordered,
    ReMDM: _run_remdm,
    Corrected: _run_corrected,
    Checked: _run_checked,
}
