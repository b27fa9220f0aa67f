"""The option `weights`: formats of packed layers, the choice of "auto", and the self-check of the cache."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from models.tiny_pretrained import next_distribution, tiny_model, tiny_tokenizer
from refusals import expect_error
from trialogue.models.caching import position_cache
from trialogue.models.caching.cache_check import CHECKED_LENGTH, cache_error, rounding_tolerance
from trialogue.models.caching.decoder_pass import DecoderPass
from trialogue.models.hub.catalogue import models_folder
from trialogue.models.hub.pretrained import PretrainedOracle, load_pretrained
from trialogue.models.packed import choice
from trialogue.models.packed.choice import mean_total_variation
from trialogue.models.packed.formats import FORMATS, available_formats
from trialogue.models.packed.linear import Packing, pack_linear_layers

pytestmark = pytest.mark.skipif(
    available_formats() != tuple(FORMATS), reason="this machine does not multiply all formats"
)

VOCAB = 304  # The size is a valid number of rows for int4.


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Save a model whose layers have valid shapes for every format."""
    path = tmp_path_factory.mktemp("wide")
    model = tiny_model(
        scale=20, hidden_size=64, intermediate_size=96, head_dim=16, vocab_size=VOCAB, num_key_value_heads=4
    )
    model.save_pretrained(path)
    tiny_tokenizer().save_pretrained(path)
    return path


def distributions(oracle: PretrainedOracle, rows: int = 1) -> Tensor:
    return next_distribution(oracle, rows=rows).exp()


@pytest.mark.parametrize(
    ("weights", "description", "max_distance"),
    [
        ("float32", "float32 (100%)", 1e-4),
        ("bfloat16", "bfloat16 (100%)", 0.05),
        ("int8", "int8 (100%)", 0.1),
        ("int4", "int4 (78%), int8 (22%)", 0.5),
    ],
)
def test_formats_change_the_distribution_by_rounding_only(folder, weights, description, max_distance):
    stored = distributions(load_pretrained(folder, device="cpu", packed=False))
    oracle = load_pretrained(folder, device="cpu", weights=weights)
    assert oracle.weights == description
    assert float((distributions(oracle) - stored).abs().sum() / 2) < max_distance
    assert oracle.dtype == torch.float32


def two_copies(few: str) -> PretrainedOracle:
    model = tiny_model(scale=20, hidden_size=64, intermediate_size=96, head_dim=16, vocab_size=VOCAB)
    pack_linear_layers(model, Packing(few, "bfloat16", many_from=4), model.get_output_embeddings())
    return PretrainedOracle(model, tiny_tokenizer())


def test_a_model_with_two_formats_has_equal_weights_in_both(monkeypatch):
    oracle = two_copies("int4")
    assert "int4 and bfloat16" in oracle.weights
    assert float((distributions(oracle, 1) - distributions(oracle, 8)).abs().sum()) < 0.06
    monkeypatch.setitem(FORMATS, "int4", FORMATS["int4"]._replace(round=Tensor.float))
    expect_error("cached passes differ", two_copies, "int4")


def choose_format(folder: Path, monkeypatch: pytest.MonkeyPatch, few: list[float], many: list[float]) -> str:
    monkeypatch.setattr(
        choice,
        "_time_formats",
        lambda plain, head: (dict(zip(FORMATS, few, strict=True)), dict(zip(FORMATS, many, strict=True))),
    )
    shutil.rmtree(models_folder().parent, ignore_errors=True)  # Earlier choices are stored here.
    return load_pretrained(folder, device="cpu", weights="auto").weights


def test_auto_chooses_the_fastest_accurate_format(folder, monkeypatch):
    distances = []

    def record_distance(first: Tensor, second: Tensor) -> float:
        distances.append(mean_total_variation(first, second))
        return distances[-1]

    monkeypatch.setattr(choice, "mean_total_variation", record_distance)
    monkeypatch.setattr(choice, "MAX_TOTAL_VARIATION", 1.0)
    assert choose_format(folder, monkeypatch, [4, 3, 2, 1], [1, 1, 1, 1]) == "int4 (78%), int8 (22%)"
    assert choose_format(folder, monkeypatch, [4, 3, 1, 2], [1, 1, 1, 1]) == "int8 (100%)"
    assert choose_format(folder, monkeypatch, [4, 3, 1, 2], [9, 2, 4, 9]) == "int8 and bfloat16 (100%)"
    assert choose_format(folder, monkeypatch, [1, 2, 3, 4], [1, 1, 1, 1]) == "float32 (100%)"
    four, eight = distances[0], distances[1]
    assert four > eight > 0
    monkeypatch.setattr(choice, "MAX_TOTAL_VARIATION", (four + eight) / 2)
    assert choose_format(folder, monkeypatch, [4, 3, 2, 1], [1, 1, 1, 1]) == "int8 (100%)"
    monkeypatch.setattr(choice, "MAX_TOTAL_VARIATION", 0.0)
    assert choose_format(folder, monkeypatch, [4, 3, 2, 1], [1, 1, 1, 1]) == "float32 (100%)"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"weights": "int3"}, "use auto, float32, bfloat16, int8, int4"),
        ({"weights": "int8", "packed": False}, "packed=False"),
        ({"weights": "auto", "packed": False}, "packed=False"),
        ({"weights": "int4", "dtype": "bfloat16"}, "float32 models on the CPU"),
    ],
)
def test_unsupported_settings_are_rejected_in_one_line(folder, settings, message):
    caught = expect_error(message, load_pretrained, folder, device="cpu", **settings)
    assert str(settings["weights"]) in str(caught)


def test_insufficient_memory_is_reported_in_one_line(folder, monkeypatch):
    def raise_memory_error(*arguments: object) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes.")

    monkeypatch.setattr(choice, "pack_linear_layers", raise_memory_error)
    expect_error("memory is insufficient", load_pretrained, folder, device="cpu", weights="int8")


TOLERANCES = {"float32": 1e-3, "bfloat16": 0.15, "int8": 0.15, "int4": 0.15}
PACKINGS = [Packing(name, name) for name in FORMATS] + [
    Packing(name, "bfloat16", many_from=3) for name in ("int8", "int4")
]


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
