"""Start of the server: the context of the model, limited by memory, and the warm-up."""

import pytest

from models.tiny_pretrained import tiny_model, tiny_oracle, tiny_tokenizer
from trialogue.generation.settings import MachineSettings
from trialogue.models.hub.pretrained import PretrainedOracle
from trialogue.serving import starting
from trialogue.serving.server import create_application
from trialogue.serving.settings import Serving

POSITION = 2 * 2 * 2 * 4 * 4
"""Bytes of keys and values of the tiny model: two layers with two heads of width 4 in single precision."""


@pytest.mark.parametrize(
    ("free", "context", "expected"),
    [
        (None, None, 1024),
        (2 * 8 * 1024 * POSITION, None, 1024),
        (2 * 8 * 1023 * POSITION, None, 768),
        (1, None, 256),
        (1, 2000, 1024),
        (None, 100, 100),
    ],
)
def test_the_context_is_that_of_the_model_if_memory_suffices(monkeypatch, free, context, expected):
    monkeypatch.setattr(starting, "free_memory", lambda: free)
    model, reports = PretrainedOracle(tiny_model(max_position_embeddings=1024), tiny_tokenizer()), list[str]()
    assert starting.choose_context(model, context, 8, reports.append) == expected
    assert [f"limited to {expected} of 1024" in line for line in reports] == [True] * (expected in (256, 768))


def test_the_warm_up_uses_a_sampler_of_each_kind():
    serving = Serving(model="tiny")
    served = create_application(tiny_oracle(), serving, MachineSettings())
    starting.warm_up(served.worker, served.verifiers, serving)
    try:
        names = [type(sampler).__name__ for sampler, _ in served.worker._runs]
        assert names == ["Ancestral", "MaskedDecoding"]
    finally:
        served.worker.close()
