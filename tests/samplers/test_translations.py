"""Translations: length beams, ranking by the twin, counted passes, and independence of the batch."""

import math
from itertools import product

import pytest
import torch

from models.small_encoder_decoders import LONGEST, VOCAB, small_network
from refusals import calls_without_expected_error
from trialogue.data.parallel.vocabulary import EOS
from trialogue.models.encoder_decoder import twin as twin_module
from trialogue.models.encoder_decoder.network import EncoderDecoder, append_eos
from trialogue.models.encoder_decoder.refiner import Refiner
from trialogue.models.encoder_decoder.twin import CausalTranslator
from trialogue.oracles import next_log_probs
from trialogue.randomness import Streams
from trialogue.samplers.chains.refinement import Refinement
from trialogue.samplers.translation.hypotheses import (
    NOTHING,
    Hypothesis,
    Translation,
    rank_hypotheses,
    remove_repeats,
)
from trialogue.samplers.translation.refining import LengthBeam, most_probable_lengths, random_targets
from trialogue.samplers.translation.writing import BeamSearch, rerank

TWIN = CausalTranslator(small_network(causal=True, seed=4))
REFINER = Refiner(small_network(causal=False, seed=2))
SOURCES = ([4, 5, 6], [7, 4, 8, 5, 5, 6], [], [8])
CHAINS = {
    "thesis": Refinement(),
    "all": Refinement(keep="nothing"),
    "mask": Refinement(start="mask"),
    "mask-predict": Refinement(start="mask", keep="confident", steps=3),
    "sampled": Refinement(choice="sampled"),
}


def refined_by_hand(source, length, start, steps):
    """Return tokens, log-probability and passes of plain refinement, one step at a time."""
    oracle, tokens, passes = REFINER.condition(source), torch.tensor([start]), 0
    nothing = torch.zeros(1, length, dtype=torch.bool)
    for _ in range(steps):
        distributions = oracle.refined_log_probs(tokens, nothing)
        passes += 1
        found = distributions.argmax(-1)
        done, tokens = torch.equal(found, tokens), found
        if done:
            break
    return tokens[0].tolist(), float(distributions.max(-1).values.sum()), passes


@torch.no_grad()
@pytest.mark.parametrize("steps", [1, 2, 7])
def test_every_likely_length_is_refined_and_passes_are_counted(steps):
    beam = LengthBeam(steps, 3, CHAINS["all"], alpha=0.5, drop_repeats=False)
    found = beam.translate(REFINER, SOURCES, seed=5)
    for number, source in enumerate(SOURCES):
        if not source:
            assert found[number].hypotheses == [Hypothesis([], 0.0, 0.0)]
            assert found[number].passes == 0
            continue
        _, distributions = REFINER.condition_each([source])
        lengths = most_probable_lengths(distributions, 3)[0]
        assert sorted(distributions[0, 1:].tolist())[-3:][::-1] == pytest.approx(
            distributions[0, lengths].tolist()
        )
        starts = random_targets(lengths, VOCAB, Streams(5, number * 3 + torch.arange(3)))
        expected = {}
        decode_and_count = 0
        for length, start in zip(lengths.tolist(), starts.tolist(), strict=True):
            tokens, log_prob, passes = refined_by_hand(source, length, start[:length], steps)
            expected[tuple(tokens)] = log_prob / ((5 + length) / 6) ** 0.5
            decode_and_count = max(decode_and_count, passes)
        scores = {tuple(each.tokens): each.score for each in found[number].hypotheses}
        assert scores == pytest.approx(expected, abs=1e-4)
        assert [each.score for each in found[number].hypotheses] == sorted(scores.values(), reverse=True)
        assert found[number].passes == decode_and_count <= steps


@pytest.mark.parametrize("name", CHAINS)
def test_a_translation_does_not_depend_on_the_batch(name):
    beam = LengthBeam(4, 2, CHAINS[name])
    together = beam.translate(REFINER, SOURCES, seed=1)
    for number, source in enumerate(SOURCES):
        single = beam.translate(REFINER, [source], seed=1, numbers=[number])[0]
        assert [each.tokens for each in single.hypotheses] == [
            each.tokens for each in together[number].hypotheses
        ]
        assert single.passes == together[number].passes
    other = beam.translate(REFINER, SOURCES, seed=2)
    assert name.startswith("mask") or other != together


@pytest.mark.parametrize("hypotheses", [1, 3])
def test_a_translation_of_the_twin_does_not_depend_on_the_batch(hypotheses):
    network = small_network(causal=True, seed=4, longest=30)
    with torch.no_grad():
        network.token_embedding.weight[EOS] = 0  # an end of sequence is now improbable
    twin, search = CausalTranslator(network), BeamSearch(hypotheses, ratio=1.0)
    sources = [[4], [5, 6, 7] * 8, [], [8, 4]]
    for source, found in zip(sources, search.translate(twin, sources), strict=True):
        single = search.translate(twin, [source])[0]
        assert [each.tokens for each in found.hypotheses] == [each.tokens for each in single.hypotheses]
        assert [each.log_prob for each in found.hypotheses] == pytest.approx(
            [each.log_prob for each in single.hypotheses], abs=1e-4
        )
        assert found.passes == single.passes <= len(source) + 11
    assert search.translate(twin, [sources[1]])[0].passes > 20  # longer than the limit of the shorter sources


def test_mask_predict_takes_the_given_number_of_passes():
    found = LengthBeam(3, 1, CHAINS["mask-predict"], drop_repeats=False).translate(REFINER, [SOURCES[1]])[0]
    length = len(found.best)
    assert found.passes == math.ceil(length / math.ceil(length / 3))


def test_random_targets_are_uniform():
    drawn = random_targets(torch.full((4000,), 3), VOCAB, Streams(0, torch.arange(4000)))
    counts = torch.bincount(drawn.flatten(), minlength=VOCAB)
    assert counts[:4].tolist() == [0, 0, 0, 0]
    assert float(((counts[4:] - 2400) ** 2 / 2400).sum()) < 30  # five values; exceeded with probability 5e-6


def test_dropping_repeats_keeps_the_score():
    assert remove_repeats([4, 4, 5, 4, 4, 4]) == [4, 5, 4]
    candidates = [([4, 4, 5], -1.0), ([4, 5], -3.0), ([5], -2.0)]
    assert rank_hypotheses(candidates, 0.0, True) == [
        Hypothesis([4, 5], -1.0, -1.0),
        Hypothesis([5], -2.0, -2.0),
    ]
    assert [each.tokens for each in rank_hypotheses(candidates, 0.0, False)] == [[4, 4, 5], [5], [4, 5]]
    assert rank_hypotheses(candidates, 1.0, False)[0].score == pytest.approx(-1 / (8 / 6))


def log_probs_of(source):
    """Return the log-probabilities of all translations of up to two tokens, including EOS."""
    oracle = TWIN.condition(source)

    def log_prob(row):
        tokens = torch.tensor([row]).repeat(len(row), 1)
        distributions = next_log_probs(oracle, tokens, torch.arange(len(row)))
        return float(distributions[torch.arange(len(row)), torch.tensor(row)].sum())

    texts = [text for count in range(3) for text in product(range(4, VOCAB), repeat=count)]
    return {text: log_prob([*text, EOS]) for text in texts}


@torch.no_grad()
def test_a_wide_beam_finds_the_most_probable_translations():
    wide = BeamSearch(200, ratio=0.0)
    for source in SOURCES[:2]:
        best = sorted(log_probs_of(source).items(), key=lambda each: -each[1])[:5]
        found = [each for each in wide.translate(TWIN, [source])[0].hypotheses if len(each.tokens) <= 2][:5]
        assert [tuple(each.tokens) for each in found] == [text for text, _ in best]
        assert [each.log_prob for each in found] == pytest.approx([value for _, value in best], abs=1e-4)


@torch.no_grad()
def test_greedy_translations_equal_those_of_full_forward_passes():
    found = BeamSearch().translate(TWIN, SOURCES)
    for source, translation in zip(SOURCES, found, strict=True):
        if not source:
            assert translation.best == []
            continue
        written, total = [3], 0.0
        while len(written) <= LONGEST + 1 and written[-1] != EOS:
            logits = TWIN.model(append_eos([source]), torch.tensor([written]))[0, -1]
            logits[[0, 2, 3]] = -torch.inf
            best = logits.log_softmax(-1).max(-1)
            written.append(int(best.indices))
            total += float(best.values)
        assert translation.best == [token for token in written[1:] if token != EOS][:LONGEST]
        assert translation.hypotheses[0].log_prob == pytest.approx(total, abs=1e-4)
        assert translation.passes == min(len(translation.best) + 1, LONGEST + 1)


@pytest.mark.parametrize("hypotheses", [1, 3])
@pytest.mark.parametrize("name", CHAINS)
def test_passes_count_the_calls_of_the_decoder(name, hypotheses, monkeypatch):
    decode, calls = EncoderDecoder.decode, []

    def decode_and_count(*arguments):
        calls.append(arguments)
        return decode(*arguments)

    monkeypatch.setattr(EncoderDecoder, "decode", decode_and_count)
    for source in SOURCES:
        found = LengthBeam(4, hypotheses, CHAINS[name]).translate(REFINER, [source])
        assert found[0].passes == len(calls)
        ranked_again = rerank(TWIN, [source], found)
        assert ranked_again[0].passes == len(calls)
        calls.clear()


CANDIDATES = ([[4], [5, 6, 6, 7, 8, 4], []], [[8, 8]], [], [[6, 7, 5], [4]])


def by_prefixes(source, text):
    """Return the log-probability of a text and its EOS, computed prefix by prefix."""
    oracle, tokens = TWIN.condition(source), torch.tensor([[*text, EOS]])
    distributions = [
        next_log_probs(oracle, tokens, torch.tensor([place]))[0] for place in range(len(text) + 1)
    ]
    return sum(
        float(distribution[token]) for distribution, token in zip(distributions, tokens[0], strict=True)
    )


@pytest.mark.parametrize("positions", [3, 2048])
def test_candidates_have_the_log_probabilities_of_their_prefixes(positions, monkeypatch):
    monkeypatch.setattr(twin_module, "_POSITIONS_AT_ONCE", positions)
    found = TWIN.log_probs(SOURCES, CANDIDATES)
    for source, texts, log_probs in zip(SOURCES, CANDIDATES, found, strict=True):
        assert log_probs == pytest.approx([by_prefixes(source, text) for text in texts], abs=1e-4)
        single_source = TWIN.log_probs([source], [texts])[0]
        assert single_source == pytest.approx(log_probs, abs=1e-4)


def test_an_empty_list_of_candidates_has_no_log_probabilities():
    assert TWIN.log_probs([], []) == []
    assert TWIN.log_probs(SOURCES[:2], [[], []]) == [[], []]


@pytest.mark.parametrize("alpha", [0.0, 1.5])
def test_the_twin_ranks_the_candidates_of_the_refiner(alpha):
    refined = LengthBeam(3, 4, alpha=9.0).translate(REFINER, SOURCES, seed=3)
    reranked = rerank(TWIN, SOURCES, refined, alpha)
    assert reranked[2] == NOTHING
    for source, before, after in zip(SOURCES, refined, reranked, strict=True):
        if not source:
            continue
        assert after.passes == before.passes + 1
        scores = {tuple(each.tokens): by_prefixes(source, each.tokens) for each in before.hypotheses}
        assert {tuple(each.tokens): each.log_prob for each in after.hypotheses} == pytest.approx(
            scores, abs=1e-4
        )
        ranks = [
            scores[tuple(each.tokens)] / ((5 + len(each.tokens)) / 6) ** alpha for each in after.hypotheses
        ]
        assert ranks == sorted(ranks, reverse=True)
        assert [each.score for each in after.hypotheses] == pytest.approx(ranks, abs=1e-4)
    # The rankings differ, because the refiner prefers long texts here.
    orders = [[[each.tokens for each in one.hypotheses] for one in found] for found in (reranked, refined)]
    assert orders[0] != orders[1]


def test_candidates_with_repeated_tokens_are_ranked_unchanged():
    refined = [Translation([Hypothesis([5, 5, 6], 0.0, 0.0), Hypothesis([5, 6], -1.0, -1.0)], 1)]
    [rank_hypotheses] = rerank(TWIN, [[4]], refined)
    assert sorted(each.tokens for each in rank_hypotheses.hypotheses) == [[5, 5, 6], [5, 6]]


ONE = Translation([Hypothesis([4], 0.0, 0.0)], 1)
BAD = [
    ("steps=", lambda: LengthBeam(steps=0)),
    ("hypotheses=", lambda: LengthBeam(hypotheses=0)),
    ("alpha=", lambda: LengthBeam(alpha=-1.0)),
    ("hypotheses=", lambda: BeamSearch(0)),
    ("source=", lambda: LengthBeam().translate(REFINER, [[4] * 7])),
    ("source=", lambda: BeamSearch().translate(TWIN, [[4] * 7])),
    ("alpha=", lambda: rerank(TWIN, [[4]], [ONE], math.inf)),
    ("candidates=0: use tokens from 4 to", lambda: TWIN.log_probs([[4]], [[[4], [5, 0, 6]]])),
    (f"candidates={EOS}: use tokens from 4 to", lambda: TWIN.log_probs([[4]], [[[4], [5, EOS]]])),
    ("candidates=99: use tokens from 4 to", lambda: TWIN.log_probs([[4]], [[[4], [99]]])),
    ("each of the 2 sources", lambda: TWIN.log_probs([[4], [5]], [[[4]]])),
    ("each of the 1 sources", lambda: rerank(TWIN, [[4]], [NOTHING, NOTHING])),
    (f"reads at most {LONGEST} tokens", lambda: TWIN.log_probs([[4]], [[[5] * (LONGEST + 1)]])),
]


def test_invalid_input_is_reported():
    assert not calls_without_expected_error(BAD)


def test_an_empty_translation_needs_no_pass():
    assert rerank(TWIN, [[4], [5]], [Translation([], 2), NOTHING])[0] == Translation([], 2)
