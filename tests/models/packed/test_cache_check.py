"""The self-check of the cache by format: rounding stays well within its tolerance, and mistakes do not."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from models.tiny_pretrained import tiny_model, tiny_tokenizer
from trialogue.errors import InputError
from trialogue.models.caching import position_cache
from trialogue.models.caching.cache_check import CHECKED_LENGTH, cache_error, tolerance
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


def oracle_of(packing: Packing, seed: int = 0, **settings: Any) -> PretrainedOracle:
    model = tiny_model(seed, 20, hidden_size=64, intermediate_size=96, head_dim=16, vocab_size=304)
    pack_linear_layers(model, packing, model.get_output_embeddings())
    return PretrainedOracle(model, tiny_tokenizer(), **settings)


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
def test_rounding_stays_well_within_the_tolerance_of_its_format(packing: Packing) -> None:
    for seed in range(2):
        oracle = oracle_of(packing, seed)
        assert tolerance(oracle) == TOLERANCES[packing.few]
        assert oracle.decoder is not None
        tokens = (torch.arange(2 * CHECKED_LENGTH).view(2, -1) * 37 + seed) % oracle.vocab_size
        for decoder in (oracle.decoder, None):
            oracle.decoder = decoder
            assert cache_error(oracle, tokens) < TOLERANCES[packing.few] / 2


def late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys and values lie one place too far."""
    written = position_cache.PositionLayer._write

    def wrong(self: Any, store: Tensor, states: Tensor) -> Any:
        place = self.place
        self.place = place._replace(positions=(place.positions + 1) % CHECKED_LENGTH, at=-1, first=-1)
        try:
            return written(self, store, states)
        finally:
            self.place = place

    monkeypatch.setattr(position_cache.PositionLayer, "_write", wrong)


def kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written first stays when a row rewinds."""
    written = position_cache.PositionLayer._write

    def wrong(self: Any, store: Tensor, states: Tensor) -> Any:
        before = store.clone()
        found = written(self, store, states)
        filled = before.abs().sum((1, 3), keepdim=True) > 0
        store.copy_(torch.where(filled, before, store))
        return found

    monkeypatch.setattr(position_cache.PositionLayer, "_write", wrong)


def of_decoder(change: Callable[..., tuple[Any, ...]]) -> Callable[[pytest.MonkeyPatch], None]:
    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        right = DecoderPass.__call__
        monkeypatch.setattr(
            DecoderPass, "__call__", lambda self, *arguments: right(self, *change(*arguments))
        )

    return patch


DECODERS = {
    "turned": of_decoder(lambda ids, at, mask, cache: (ids, at + 1 * (ids.shape[1] == 1), mask, cache)),
    "unmasked": of_decoder(lambda ids, at, mask, cache: (ids, at, None, cache)),
}


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
def test_a_wrong_cache_is_refused_and_a_wrong_pass_is_left_in_every_format(packing: Packing) -> None:
    for mistake in (late, kept):
        with pytest.MonkeyPatch.context() as patch:
            mistake(patch)
            with pytest.raises(InputError, match="cached passes differ from uncached ones"):
                oracle_of(packing)
    for name, mistake in DECODERS.items():
        with pytest.MonkeyPatch.context() as patch:
            mistake(patch)
            assert oracle_of(packing).decoder is None, name
