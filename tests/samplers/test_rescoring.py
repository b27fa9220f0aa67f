"""Ranking of candidates by the twin: scores do not depend on the other candidates."""

import math

import pytest
import torch

from models.small_encoder_decoders import LONGEST, small_network
from refusals import calls_without_expected_error
from trialogue.data.parallel.vocabulary import EOS
from trialogue.models.encoder_decoder import twin as twin_module
from trialogue.models.encoder_decoder.refiner import Refiner
from trialogue.models.encoder_decoder.twin import CausalTranslator
from trialogue.oracles import next_log_probs
from trialogue.samplers.translation.hypotheses import NOTHING, Hypothesis, Translation
from trialogue.samplers.translation.refining import LengthBeam
from trialogue.samplers.translation.writing import rescored

TWIN = CausalTranslator(small_network(causal=True, seed=4))
REFINER = Refiner(small_network(causal=False, seed=2))
SOURCES = ([4, 5, 6], [7, 4, 8, 5, 5, 6], [], [8])
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
    reranked = rescored(TWIN, SOURCES, refined, alpha)
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
    [ranked] = rescored(TWIN, [[4]], refined)
    assert sorted(each.tokens for each in ranked.hypotheses) == [[5, 5, 6], [5, 6]]


ONE = Translation([Hypothesis([4], 0.0, 0.0)], 1)
BAD = [
    ("alpha=", lambda: rescored(TWIN, [[4]], [ONE], math.inf)),
    ("candidates=0: use tokens from 4 to", lambda: TWIN.log_probs([[4]], [[[4], [5, 0, 6]]])),
    (f"candidates={EOS}: use tokens from 4 to", lambda: TWIN.log_probs([[4]], [[[4], [5, EOS]]])),
    ("candidates=99: use tokens from 4 to", lambda: TWIN.log_probs([[4]], [[[4], [99]]])),
    ("each of the 2 sources", lambda: TWIN.log_probs([[4], [5]], [[[4]]])),
    ("each of the 1 sources", lambda: rescored(TWIN, [[4]], [NOTHING, NOTHING])),
    (f"reads at most {LONGEST} tokens", lambda: TWIN.log_probs([[4]], [[[5] * (LONGEST + 1)]])),
]


def test_invalid_input_is_reported():
    assert not calls_without_expected_error(BAD)


def test_an_empty_translation_needs_no_pass():
    assert rescored(TWIN, [[4], [5]], [Translation([], 2), NOTHING])[0] == Translation([], 2)
