"""Exact distributions of unmasking samplers, against naive enumeration and against samples."""

import itertools
import math
from collections import Counter
from unittest import mock

import pytest
import torch
from scipy.stats import chi2

from mutants.unmasking import MUTANTS
from refusals import calls_without_expected_error
from samplers.chains.small_models import Energies
from samplers.unmasking.languages import language, random_constraint
from samplers.unmasking.naive_passes import RandomConditionals, naive_distribution
from trialogue import exact_distribution, unmask
from trialogue.data import Ising, PottsChain, Table
from trialogue.errors import InputError
from trialogue.randomness import Streams, generator, numpy_generator
from trialogue.samplers import ChainRule
from trialogue.samplers.chains.subsets import choose_members as choose_members_of
from trialogue.samplers.exact import kullback_leibler, total_variation
from trialogue.samplers.exact.unmasking_states import Exploration
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
    RandomSizes,
    ReMDM,
    Schedule,
    Threshold,
    checked,
    text_log_probs,
)
from trialogue.samplers.unmasking.contract import Planned

TABLES = 25


class Pick:
    """Random settings."""

    def __init__(self, name):
        self._generator = numpy_generator(0, name)

    def choice(self, options):
        return options[int(self._generator.integers(len(options)))]

    def permutation(self, size):
        return tuple(self._generator.permutation(size).tolist())


def drawing(pick):
    """Return random settings of the draws of tokens."""
    return {
        "temperature": pick.choice([0, 0.5, 1.0, 1.0, 2.0]),
        "top_p": pick.choice([None, None, 0.612, 0.876]),
    }


def ties(pick):
    return pick.choice(["first", "random"])


def size(pick):
    return pick.choice(
        [
            Fixed(pick.choice([1, 2])),
            Schedule("linear", 2),
            Schedule("cosine", pick.choice([2, 3])),
            RandomSizes(2),
        ]
    )


def ordered(pick, sites):
    orders = [
        Random(),
        LeftToRight(),
        Permutation(pick.permutation(sites)),
        pick.choice([Entropy, Margin, Confidence])(ties(pick)),
    ]
    return Ordered(pick.choice(orders), size(pick), blocks=pick.choice([None, 2]), **drawing(pick))


def by_confidence(pick):
    return pick.choice([Threshold(pick.choice([0.5, 0.75, 0.9])), Factor(pick.choice([0.5, 1.0, 1.5]))])


SETTINGS = {
    "ordered": ordered,
    "scored": lambda pick, sites: Ordered(
        pick.choice([Entropy, Margin, Confidence])(ties(pick)), Fixed(1), **drawing(pick)
    ),
    "by-confidence": lambda pick, sites: Ordered(
        Confidence(ties(pick)), by_confidence(pick), blocks=pick.choice([None, 2]), **drawing(pick)
    ),
    "draw-then-select": lambda pick, sites: DrawThenSelect(
        pick.choice([size, by_confidence])(pick),
        blocks=pick.choice([None, 2]),
        ties=ties(pick),
        **drawing(pick),
    ),
    "remdm": lambda pick, sites: ReMDM(
        pick.choice([1, 2, 3]), pick.choice([0.0, 0.3, 1.0]), pick.choice(["cap", "rescale"]), **drawing(pick)
    ),
    "corrected": lambda pick, sites: Corrected(ordered(pick, sites), pick.choice([1, 2])),
    "checked": lambda pick, sites: Checked(
        lambda text: sum(text) % 2 == 0 or text[-1:] == (1,),
        ordered(pick, sites),
        remask=pick.choice([None, 1, 2]),
        quota=pick.choice([0, 1, 2]),
        eos=pick.choice([None, 1]),
    ),
    "constrained": lambda pick, sites: Ordered(
        pick.choice([Random(), LeftToRight(), Confidence(ties(pick))]),
        Fixed(pick.choice([1, 2, 3])),
        blocks=pick.choice([None, None, 2]),
        **drawing(pick),
    ),
    "constrained-draws": lambda pick, sites: DrawThenSelect(Fixed(pick.choice([1, 2])), ties=ties(pick)),
    "checked-partial": lambda pick, sites: Checked(
        lambda text: sum(text) < 2,
        Ordered(pick.choice([Random(), Confidence()]), Fixed(pick.choice([1, 2]))),
        remask=pick.choice([None, 1]),
        quota=pick.choice([1, 2]),
        partial=True,
    ),
}
"""Functions that return a sampler with random settings, given a source of random settings and a number of positions."""


def cases(kind, count=TABLES):
    """Yield samplers of one kind, random models and prompts."""
    pick = Pick(kind)
    for seed in range(count):
        vocab, sites = pick.choice([(2, 3), (3, 3), (3, 3), (2, 4)])
        if kind == "scored":  # The three scores agree on the order of two probabilities.
            vocab, sites = pick.choice([(3, 3), (4, 3)])
        if kind in ("remdm", "checked", "checked-partial"):
            vocab, sites = pick.choice([(2, 3), (3, 2), (2, 2)])
        if kind.startswith("constrained"):
            vocab, sites = pick.choice([(3, 3), (4, 3), (2, 4), (3, 4)])
        model = RandomConditionals(seed, vocab, sites, pick.choice([None, None, 4, 8]))
        prompt = [None] * sites
        if pick.choice(range(3)) == 0:
            prompt[pick.choice(range(sites))] = pick.choice(range(vocab))
        sampler = SETTINGS[kind](pick, sites)
        if kind.startswith("constrained"):
            sampler = random_constraint(seed, vocab, prompt, sampler)
        yield sampler, model, prompt


def difference(sampler, model, prompt):
    """Return the largest difference of the exact and the naive probabilities and numbers of passes.

    Samplers with plans or random sizes are also enumerated by `step` alone.
    """
    expected, passes = naive_distribution(sampler, model, prompt)
    differences = []
    names = ("_planned_sampler", "_random_size_passes")
    shortcuts = {name: getattr(Exploration, name) for name in names}
    by_step = dict.fromkeys(names, lambda *_: None)
    has_shortcut = isinstance(getattr(sampler, "sampler", sampler), Planned | DrawThenSelect)
    for replaced in [shortcuts, by_step][: 1 + has_shortcut]:
        with mock.patch.multiple(Exploration, **replaced):
            found = exact_distribution(sampler, model, prompt=prompt)
        masses = {**found.probabilities, None: found.rejected}
        differences += [
            abs(masses.get(x, 0.0) - expected.get(x, 0.0)) for x in masses.keys() | expected.keys()
        ]
        differences.append(abs(found.expected_passes - passes))
    return max(differences)


@pytest.mark.parametrize("kind", SETTINGS)
def test_exact_distributions_equal_a_naive_enumeration(kind):
    for sampler, model, prompt in cases(kind, 60 if kind == "constrained" else TABLES):
        assert difference(sampler, model, prompt) < 1e-9, (sampler, prompt)


@pytest.mark.parametrize(
    ("kind", "where", "name", "fault"), MUTANTS, ids=lambda value: getattr(value, "__name__", "")
)
def test_the_comparison_detects_faults(kind, where, name, fault, monkeypatch):
    monkeypatch.setattr(where, name, fault)

    def detected(case):
        try:
            return difference(*case) > 1e-6
        except (InputError, ValueError):  # probabilities whose sum is not one
            return True

    assert any(map(detected, cases(kind)))


SAMPLERS = [
    Ordered(Random(), Fixed(2)),
    Ordered(Confidence("random"), Schedule("cosine", 3), temperature=0.7, top_p=0.95),
    Ordered(Confidence(), Threshold(0.7), blocks=3),
    Ordered(Random(), RandomSizes(3)),
    DrawThenSelect(Fixed(2)),
    ReMDM(3, 0.5, "rescale"),
    Corrected(DrawThenSelect(Fixed(3))),
    Checked(lambda text: sum(text) < 3, remask=2, partial=True, quota=2),
    Constrained(language("a{2}(?:a|aa)?", 2), Ordered(Confidence(), Fixed(2)), eos=1),
]
MODEL = Ising.clique(6, 3, 0.4, 0.1)


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: type(sampler).__name__)
def test_10000_samples_follow_the_exact_distribution(sampler):
    exact = exact_distribution(sampler, MODEL)
    samples = unmask(MODEL, sampler, num_samples=10_000, seed=1, batch_size=2_000)
    counts = Counter(map(tuple, samples.tokens[samples.accepted].tolist()))
    counts[None] = int((~samples.accepted).sum())
    masses = {x: p for x, p in {**exact.probabilities, None: exact.rejected}.items() if p > 0}
    statistic = sum((counts[x] - 10_000 * p) ** 2 / (10_000 * p) for x, p in masses.items())
    assert sum(counts.values()) == sum(counts[x] for x in masses)
    assert chi2.sf(statistic, len(masses) - 1) > 1e-3
    error = float(samples.passes.double().std()) / 100
    assert abs(float(samples.passes.double().mean()) - exact.expected_passes) <= 4 * error + 1e-9
    error = float(samples.positions.double().std()) / 100
    assert abs(float(samples.positions.double().mean()) - exact.expected_positions) <= 4 * error + 1e-9


def joint(model):
    return dict(zip(map(tuple, model.states().tolist()), model.probabilities().tolist(), strict=True))


def test_true_conditionals_are_exact_with_one_position_per_pass_and_wrong_with_more():
    model = Ising.clique(5, 4, 0.5, -0.2)
    expected = joint(model)
    for order in (Random(), LeftToRight(), Confidence("random"), Entropy(), Margin()):
        exact = exact_distribution(Ordered(order, Fixed(1)), model)
        assert total_variation(exact.probabilities, expected) < 1e-12
        assert (exact.expected_passes, exact.expected_positions) == pytest.approx((5, 15))
    assert (
        total_variation(exact_distribution(Ordered(Random(), Fixed(2)), model).probabilities, expected) > 0.01
    )
    biased = exact_distribution(DrawThenSelect(), model).probabilities
    corrected = exact_distribution(Corrected(DrawThenSelect()), model).probabilities
    assert total_variation(biased, expected) > 0.2
    assert kullback_leibler(corrected, expected) < kullback_leibler(biased, expected)
    # Masking everything again restricts the distribution to accepted texts, up to the quota.
    checked = exact_distribution(Checked(lambda text: sum(text) == 2, quota=4), model)
    accepted = sum(p for x, p in expected.items() if sum(x) == 2)
    assert checked.rejected == pytest.approx((1 - accepted) ** 5)
    assert checked.expected_passes == pytest.approx(5 * sum((1 - accepted) ** count for count in range(5)))
    for text, p in checked.probabilities.items():
        assert p / (1 - checked.rejected) == pytest.approx(expected[text] / accepted)


def test_random_order_is_the_mixture_of_all_orders():
    model = RandomConditionals(3, 2, 4)
    orders = [
        exact_distribution(Ordered(Permutation(order), Fixed(1)), model).probabilities
        for order in itertools.permutations(range(4))
    ]
    mixture = exact_distribution(Ordered(Random(), Fixed(1)), model).probabilities
    assert mixture == pytest.approx({x: sum(p[x] for p in orders) / 24 for x in mixture}, abs=1e-12)


@pytest.mark.parametrize(
    "sampler",
    [
        Ordered(LeftToRight(), Fixed(2), temperature=0.7, top_p=0.876),
        Ordered(Confidence(), Threshold(0.7), blocks=2),
        Ordered(Entropy(), Schedule("cosine", 2)),
    ],
)
def test_text_log_probs_are_the_exact_distribution(sampler):
    model = RandomConditionals(5, 2, 4)
    texts = torch.tensor(list(itertools.product(range(2), repeat=4)))
    for prompt in ([None] * 4, [None, 1, None, None]):
        exact = exact_distribution(sampler, model, prompt=prompt).probabilities
        found = text_log_probs(sampler, model, texts, [prompt]).exp().tolist()
        assert found == pytest.approx([exact.get(tuple(text), 0.0) for text in texts.tolist()], abs=1e-12)


def test_outputs_of_variable_length_are_cut_after_the_distribution_is_computed():
    model, sampler = RandomConditionals(1, 3, 3), Ordered(Random(), Fixed(2))
    full = exact_distribution(sampler, model).probabilities
    cut = exact_distribution(sampler, model, eos=2).probabilities
    assert cut[2,] == pytest.approx(sum(p for x, p in full.items() if x[0] == 2))
    assert cut[0, 2] == pytest.approx(sum(p for x, p in full.items() if x[:2] == (0, 2)))
    assert math.fsum(cut.values()) == pytest.approx(1)
    samples = unmask(model, sampler, num_samples=50, eos=2)
    for row, length in zip(samples.tokens.tolist(), samples.lengths.tolist(), strict=True):
        assert length == (row.index(2) + 1 if 2 in row else 3)


def test_samples_depend_on_the_seed_and_the_index_only():
    sampler = Checked(lambda text: sum(text) < 4, Ordered(Confidence("random"), Threshold(0.7)), remask=2)
    prompts = [[None] * 6, [0, 1, None, None, None, 0]]
    several = unmask(MODEL, sampler, prompts, num_samples=20, seed=3, batch_size=7)
    for batch_size in (1, 64):
        again = unmask(MODEL, sampler, prompts, num_samples=20, seed=3, batch_size=batch_size)
        for name in ("tokens", "passes", "positions", "accepted"):
            assert getattr(again, name).equal(getattr(several, name))
    assert not unmask(MODEL, sampler, prompts, num_samples=20, seed=4).tokens.equal(several.tokens)
    assert (several.tokens[20:, [0, 1, 5]] == torch.tensor([0, 1, 0])).all()
    assert several.calls < int(several.passes.sum())


@pytest.mark.parametrize(("order", "sampler"), [("forward", Ordered(LeftToRight())), ("random", Ordered())])
def test_the_chain_rule_of_markov_chains_draws_the_same_tokens(order, sampler):
    model = RandomConditionals(2, 3, 4)
    masked = torch.ones(50, 4, dtype=torch.bool)
    choose = Streams(7, torch.arange(50)).choose
    drawn = ChainRule(model, order).draw_block(torch.zeros(50, 4, dtype=torch.int64), masked, choose)
    assert unmask(model, sampler, num_samples=50, seed=7).tokens.equal(drawn)


def test_the_model_is_evaluated_once_per_pass_on_unfinished_rows():
    rows = []

    class Counting(RandomConditionals):
        def log_probs(self, tokens, masked):
            assert (tokens[masked] == 0).all()
            assert masked.any(1).all()
            rows.append((len(tokens), int(masked.sum())))
            return super().log_probs(tokens, masked)

    samples = unmask(Counting(0, 2, 5), Ordered(Confidence(), Threshold(0.8)), num_samples=12, batch_size=8)
    assert samples.calls == len(rows)
    assert int(samples.passes.sum()) == sum(count for count, _ in rows)
    assert int(samples.positions.sum()) == sum(count for _, count in rows)
    assert max(count for count, _ in rows) == 8


def test_small_sequences_take_little_time():
    model = PottsChain.from_patterns(vocab_size=3, patterns=[[0, 1], [2, 2]]).at(6, 1.0)
    assert exact_distribution(Ordered(Random(), Fixed(1)), model).states == 4**6 - 3**6
    # The states do not depend on the remaining rejections, nor on which positions are masked again.
    checked = Checked(lambda text: sum(text) % 2 == 0, remask=2)
    assert exact_distribution(checked, model).states == 4**6 - 3**6


def test_canvases_are_evaluated_once_and_judged_texts_are_masked_again_once():
    evaluated, model = [], RandomConditionals(0, 2, 4)

    def count(tokens, masked):
        evaluated.append(len(tokens))
        return RandomConditionals.log_probs(model, tokens, masked)

    with mock.patch.object(model, "log_probs", count):
        exact_distribution(ReMDM(5, 0.5), model)
    # Each canvas with a masked position, and the complete texts, which a later pass may mask again.
    assert sum(evaluated) == 3**4
    chosen = []

    def choose_members(sets, sizes, choose):
        chosen.append(int((sizes > 0).sum()))
        return choose_members_of(sets, sizes, choose)

    with mock.patch.object(checked, "choose_members", choose_members):
        exact_distribution(Checked(lambda text: False, remask=1), model)
    # Each of the 16 texts has one outcome for each of its 4 positions, however it was completed.
    assert sum(chosen) == 16 * 4


@pytest.mark.parametrize("vocab_size", [1, 2, 255, 256, 700])
@pytest.mark.parametrize("order", [Entropy(), Margin()])
def test_scores_in_single_precision_equal_those_in_double_precision(order, vocab_size):
    logits = torch.randn(3, 5, vocab_size, generator=generator(vocab_size)).mul_(4)
    logits[0, 0, 1:] = -torch.inf
    logits[1, :, -1] = logits[1].amax(1)
    log_probs = logits.double().log_softmax(2)
    found, expected = order.scores(log_probs.float()), order.scores(log_probs)
    assert found.shape == expected.shape
    assert (found - expected).abs().max() < 2e-5
    if vocab_size > 1:
        assert expected.std() > 0.01


def test_bad_input_has_one_clear_message():
    run = Ordered(Random(), Fixed(1))
    table = Table([[0.1, 0.4], [0.2, 0.3]])
    free = RandomConditionals(0, 2, None)
    random_order = Ordered(Random(), Fixed(2))
    cases = [
        ("sampler=.*give an unmasking sampler", lambda: unmask(MODEL, Ordered)),
        ("sampler=.*give an unmasking sampler", lambda: unmask(MODEL, Confidence())),
        ("model=.*masked model", lambda: unmask(table, run)),
        ("model=.*masked model", lambda: exact_distribution(run, Energies(torch.ones(2, 2)))),
        ("prompts=.*shape \\(prompts, 6\\)", lambda: unmask(MODEL, run, [[None, 0]])),
        ("prompts=.*shape", lambda: unmask(MODEL, run, [[None, 0], [None]])),
        ("prompts=.*vocab_size=2", lambda: unmask(MODEL, run, [[None, 2, 0, 0, 0, 0]])),
        ("prompts=.*mask at least one", lambda: unmask(MODEL, run, [[0] * 6])),
        ("length=None", lambda: unmask(free, run)),
        ("length=.*shape \\(prompts, 6\\)", lambda: unmask(MODEL, run, length=5)),
        ("length=.*prompts define it", lambda: unmask(MODEL, run, [[None] * 6], length=6)),
        ("eos=2", lambda: unmask(MODEL, run, eos=2)),
        ("num_samples=0", lambda: unmask(MODEL, run, num_samples=0)),
        ("order=.*Confidence", lambda: Ordered(Entropy(), Threshold(0.9))),
        ("order=.*give an order", lambda: Ordered(Fixed(2))),
        ("size=.*give a size", lambda: Ordered(Random(), 2)),
        ("temperature=-1", lambda: DrawThenSelect(temperature=-1)),
        ("positions=", lambda: unmask(MODEL, Ordered(Permutation((0, 1))))),
        ("positions=.*unique", lambda: Permutation((0, 0))),
        ("max_states=10", lambda: exact_distribution(run, MODEL, max_states=10)),
        ("sampler=.*without random", lambda: text_log_probs(random_order, MODEL, torch.zeros(1, 6).long())),
        ("sampler=.*use Ordered", lambda: text_log_probs(ReMDM(), MODEL, torch.zeros(1, 6).long())),
        ("sampler=.*give an unmasking", lambda: Checked(lambda text: True, Random())),
        ("sampler=.*give an unmasking", lambda: Corrected(Random())),
        ("log_probs=.*sum to 1", lambda: unmask(Unnormalised(0, 2, 3), run)),
    ]
    assert calls_without_expected_error(cases) == []


class Unnormalised(RandomConditionals):
    def log_probs(self, tokens, masked):
        return super().log_probs(tokens, masked) + 1


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: type(sampler).__name__)
def test_entries_of_unmasked_positions_are_not_read(sampler):
    """Samples are the same if the model returns NaN at unmasked positions."""
    expected = unmask(MODEL, sampler, num_samples=20, seed=3)

    def undefined(model, tokens, masked):
        return model.log_probs(tokens, masked).masked_fill(~masked[:, :, None], float("nan"))

    with mock.patch.object(type(MODEL), "masked_log_probs", undefined):
        found = unmask(MODEL, sampler, num_samples=20, seed=3)
    assert torch.equal(found.tokens, expected.tokens)
