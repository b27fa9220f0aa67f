"""Penalties of an open run, against a model whose logits are changed by separate code."""

from typing import Any

import pytest
import torch
from transformers import MinNewTokensLengthLogitsProcessor, RepetitionPenaltyLogitsProcessor

from models.tiny_pretrained import tiny_model, tiny_tokenizer
from trialogue import generate, truncated
from trialogue.models.hub.pretrained import PretrainedOracle
from trialogue.models.wrappers.processed import Processed
from trialogue.samplers import (
    AdaptiveRejection,
    Ancestral,
    Backtracking,
    MaskedDecoding,
    OpenRun,
    SequentialMonteCarlo,
    Terms,
    WeightedRejection,
)
from trialogue.samplers.penalties import Penalties
from trialogue.verifiers import GrammarVerifier

PENALTIES = Penalties(((5, 2.5), (9, -100.0)), 1.3, 0.4, -0.7, ((2, 3), (7, 10**9)))
SAMPLERS = [
    Ancestral(),
    MaskedDecoding(),
    AdaptiveRejection(),
    Backtracking(2, 2),
    SequentialMonteCarlo(3, proposal="mask"),
    WeightedRejection(),
]


@pytest.fixture(scope="module")
def oracle():
    return PretrainedOracle(tiny_model().double(), tiny_tokenizer(), name="tiny")


def processed(oracle: PretrainedOracle, start: int) -> Processed:
    """Return the model with the changes of `PENALTIES`, written token by token or by transformers."""
    repeat = RepetitionPenaltyLogitsProcessor(1.3)
    minimum = MinNewTokensLengthLogitsProcessor(start, 3, [2])

    def process(prefix: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        scores = scores.clone()
        scores[0, 5] += 2.5
        scores[0, 9] -= 100
        scores = repeat(prefix, scores)
        for token in set(prefix[0, start:].tolist()):
            scores[0, token] -= 0.4 * prefix[0, start:].tolist().count(token) - 0.7
        scores = minimum(prefix, scores)
        scores[0, 7] = -torch.inf
        return scores

    return Processed(oracle, process)


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: type(sampler).__name__)
def test_samples_are_those_of_the_changed_model(oracle, sampler):
    prompt = oracle.tokenization.encode("the cat sat")
    verifier = None if sampler == Ancestral() else GrammarVerifier.regex("[^x]{0,60}", oracle.tokenization)
    settings: dict[str, Any] = {"max_new_tokens": 6, "num_samples": 3, "seed": 2, "token_log_probs": True}
    expected = generate(
        truncated(processed(oracle, len(prompt)), 0.8, 0.9),
        [prompt],
        sampler=sampler,
        verifier=verifier,
        max_steps=300,
        **settings,
    )
    run = OpenRun(oracle, sampler, batch_size=16, capacity=64)
    # Another request with other settings must not change the result.
    run.submit(prompt, Terms(verifier, 6, temperature=1.3), num_samples=2, max_steps=100)
    terms = Terms(verifier, settings.pop("max_new_tokens"), 0.8, 0.9, penalties=PENALTIES)
    submission = run.submit(prompt, terms, max_steps=300, **settings)
    found = {}
    while run.busy:
        for owner, samples in run.step():
            if owner is submission:
                found |= {sample.index: sample for sample in samples}
    assert not run._penalties
    for sample in expected:
        assert found[sample.index].tokens == sample.tokens
        assert found[sample.index].accepted == sample.accepted
        # Both report the log-probability under the unchanged model, and weights under the changed one.
        assert found[sample.index].log_prob == pytest.approx(sample.log_prob)
        assert found[sample.index].log_weight == pytest.approx(sample.log_weight)
    assert any(sample.accepted for sample in expected)


def test_a_stop_token_ends_a_completion_and_is_not_part_of_its_text(oracle):
    prompt = oracle.tokenization.encode("the cat")
    run = OpenRun(oracle, batch_size=4, capacity=64)

    def sample(**settings: Any) -> Any:
        run.submit(prompt, Terms(max_new_tokens=12, **settings), seed=3)
        while True:
            for _, samples in run.step():
                return samples[0]

    plain = sample()
    stop = plain.tokens[4]
    place = plain.tokens.index(stop)
    stopped = sample(stop_tokens=(stop, 299))
    assert stopped.tokens == plain.tokens[: place + 1]
    assert stopped.text == oracle.tokenization.text(plain.tokens[:place])
