"""Self-check of the cache for all weight formats: rounding errors pass, and mistakes are detected."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from models.tiny_pretrained import tiny_model, tiny_tokenizer
from refusals import expect_error
from trialogue.models.caching import position_cache
from trialogue.models.caching.cache_check import CHECKED_LENGTH, cache_error, rounding_tolerance
from trialogue.models.caching.decoder_pass import DecoderPass
from trialogue.models.hub.pretrained import PretrainedOracle
from trialogue.models.packed.formats import FORMATS, available
from trialogue.models.packed.linear import Packing, pack_linear_layers

TOLERANCES = {"float32": 1e-3, "bfloat16": 0.15, "int8": 0.15, "int4": 0.15}
PACKINGS = [Packing(name, name) for name in FORMATS] + [
    Packing(name, "bfloat16", many_from=3) for name in ("int8", "int4")
]

pytestmark = pytest.mark.skipif(
    available() != tuple(FORMATS), reason="this machine does not multiply all formats"
)


def make_oracle(packing: Packing, seed: int = 0, **settings: Any) -> PretrainedOracle:
    model = tiny_model(seed, 20, hidden_size=64, intermediate_size=96, head_dim=16, vocab_size=304)
    pack_linear_layers(model, packing, model.get_output_embeddings())
    return PretrainedOracle(model, tiny_tokenizer(), **settings)


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
def test_rounding_errors_are_within_the_tolerance(packing):
    for seed in range(2):
        oracle = make_oracle(packing, seed)
        assert rounding_tolerance(oracle) == TOLERANCES[packing.few]
        assert oracle.decoder is not None
        tokens = (torch.arange(2 * CHECKED_LENGTH).view(2, -1) * 37 + seed) % oracle.vocab_size
        for decoder in (oracle.decoder, None):
            oracle.decoder = decoder
            assert cache_error(oracle, tokens) < TOLERANCES[packing.few] / 2


def shift_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Store keys and values one position too late."""
    written = position_cache.PositionLayer._write

    def wrong(self: Any, store: Tensor, states: Tensor) -> Any:
        place = self.place
        self.place = place._replace(positions=(place.positions + 1) % CHECKED_LENGTH, at=-1, first=-1)
        try:
            return written(self, store, states)
        finally:
            self.place = place

    monkeypatch.setattr(position_cache.PositionLayer, "_write", wrong)


def keep_first_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the old entries when a row is rewound."""
    written = position_cache.PositionLayer._write

    def wrong(self: Any, store: Tensor, states: Tensor) -> Any:
        before = store.clone()
        found = written(self, store, states)
        filled = before.abs().sum((1, 3), keepdim=True) > 0
        store.copy_(torch.where(filled, before, store))
        return found

    monkeypatch.setattr(position_cache.PositionLayer, "_write", wrong)


def change_decoder(change: Callable[..., tuple[Any, ...]]) -> Callable[[pytest.MonkeyPatch], None]:
    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        original = DecoderPass.__call__
        monkeypatch.setattr(
            DecoderPass, "__call__", lambda self, *arguments: original(self, *change(*arguments))
        )

    return patch


DECODERS = {
    "turned": change_decoder(lambda ids, at, mask, cache: (ids, at + 1 * (ids.shape[1] == 1), mask, cache)),
    "unmasked": change_decoder(lambda ids, at, mask, cache: (ids, at, None, cache)),
}


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
def test_a_wrong_cache_is_rejected_and_a_wrong_decoder_pass_is_not_used(packing):
    for mistake in (shift_positions, keep_first_entries):
        with pytest.MonkeyPatch.context() as patch:
            mistake(patch)
            expect_error("cached passes differ from uncached ones", make_oracle, packing)
    for name, mistake in DECODERS.items():
        with pytest.MonkeyPatch.context() as patch:
            mistake(patch)
            assert make_oracle(packing).decoder is None, name
