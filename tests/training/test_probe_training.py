"""Test verifiers that are trained on texts with a planted signal in one layer."""

from dataclasses import replace
from typing import cast

import pytest
import torch

from models.tiny_pretrained import tiny_oracle
from refusals import expect_error, expect_failure
from training.planted_signal import Planted, marked_texts
from trialogue.errors import InputError
from trialogue.models.caching.position_cache import PositionCache
from trialogue.models.hub.pretrained import PretrainedOracle
from trialogue.models.networks.probe import hidden_states_of_prefixes
from trialogue.models.networks.transformer import Transformer, TransformerConfig
from trialogue.randomness import generator
from trialogue.samplers import truncated
from trialogue.training.probes.grid import ProbeConfig, search_probes
from trialogue.training.probes.probe_examples import LabelledTexts, prefix_examples
from trialogue.training.probes.probe_files import ProbeFile
from trialogue.training.probes.probe_training import ProbeTrainingConfig, chosen_layers, train_verifier

PLANTED = cast(PretrainedOracle, Planted())
CONFIG = ProbeTrainingConfig(layers="all", depths=(1,), correct_prefixes=2, false_rejections=0.1)


def is_accurate(file: ProbeFile) -> bool:
    """Return whether the verifier distinguishes marked prefixes from others in new texts."""
    examples = prefix_examples(marked_texts(60, seed=1).texts, PLANTED.tokenization, correct_prefixes=2)
    states = hidden_states_of_prefixes(PLANTED, examples.sequences, examples.lengths, (file.layer,))[:, 0]
    verdicts = file.probe.probability(states) >= file.threshold
    return float((verdicts == (examples.labels == 1)).double().mean()) > 0.9


def flipped(data: LabelledTexts) -> LabelledTexts:
    """Return the texts with exchanged labels."""
    texts = [replace(text, label=int(text.error is not None), error=None) for text in data.texts]
    return LabelledTexts(texts, data.sha256)


@pytest.fixture(scope="module")
def trained():
    return train_verifier(PLANTED, marked_texts(240), CONFIG, name="marked.jsonl")


def test_search_finds_the_layer_with_the_signal(trained):
    assert is_accurate(trained)
    assert trained.layer == 3
    assert [entry.layer for entry in trained.grid if entry.log_loss < 0.3] == [3]
    assert sorted(entry.layer for entry in trained.grid) == [-1, 1, 2, 3, 4]
    assert trained.numbers.auroc > 0.99
    assert trained.numbers.detections.value > 0.9


def test_broken_verifiers_are_rejected(trained):
    assert not is_accurate(replace(trained, layer=trained.layer + 1))
    assert not is_accurate(replace(trained, layer=trained.layer - 1))
    assert not is_accurate(replace(trained, probe=trained.probe.rescaled(-1, 0)))
    assert not is_accurate(train_verifier(PLANTED, flipped(marked_texts(240)), CONFIG))
    ignorant = replace(CONFIG, layers=(1, 2, 4), threshold=0.5)
    expect_error("no better than chance", train_verifier, PLANTED, marked_texts(240), ignorant)
    assert not is_accurate(train_verifier(PLANTED, marked_texts(240), replace(ignorant, calibration="none")))


@pytest.mark.parametrize(("given", "expected"), [("youden", None), (0.4, 0.4)])
def test_threshold_can_be_youden_or_fixed(given, expected):
    config = replace(CONFIG, layers=(3,), threshold=given, calibration="temperature")
    file = train_verifier(PLANTED, marked_texts(240), config)
    assert is_accurate(file)
    assert file.calibration.offset == 0
    if expected is not None:
        assert file.threshold == expected


def test_probe_has_the_weights_of_its_best_epoch():
    states = torch.randn(400, 2, 8, generator=generator(0, "states"))
    noise = torch.randn(400, generator=generator(0, "noise"))
    labels = (states[:, 1, 0] + noise > 0).long()
    rows = torch.arange(400)
    config = ProbeConfig(learning_rate=3e-2, seed=3)
    found = search_probes(states, labels, (5, 7), (1, 2), rows[:200], rows[200:], config, patience=5)
    assert [candidate.log_loss for candidate in found] == sorted(candidate.log_loss for candidate in found)
    assert found[0].layer == 7
    assert {(candidate.layer, candidate.depth) for candidate in found} == {(5, 1), (5, 2), (7, 1), (7, 2)}
    assert all(candidate.epoch < 95 for candidate in found)
    for candidate in found:
        for epochs, same in (
            (candidate.epoch, True),
            (candidate.epoch + 4, True),
            (candidate.epoch - 1, False),
        ):
            if not epochs:
                continue
            (again,) = search_probes(
                states[:, [(5, 7).index(candidate.layer)]],
                labels,
                (candidate.layer,),
                (candidate.depth,),
                rows[:200],
                rows[200:],
                replace(config, epochs=epochs),
            )
            weights = [torch.cat([p.flatten() for p in own.probe.parameters()]) for own in (again, candidate)]
            assert torch.equal(*weights) == same
        held_out = candidate.probe(states[200:, (5, 7).index(candidate.layer)])
        loss = torch.nn.functional.cross_entropy(held_out.double(), labels[200:])
        assert candidate.log_loss == pytest.approx(float(loss), abs=1e-6)


def test_layers_are_resolved():
    assert chosen_layers("all", 4) == (1, 2, 3, -1)
    assert chosen_layers("every:4", 10) == (2, 6, -1)
    assert chosen_layers("every:9", 4) == (-1,)
    assert chosen_layers((4, 0, -1, 2), 4) == (-1, 0, 2)
    for wrong in ("every:0", "every:x", "some", (5,), (-2,), ()):
        expect_error("layers=", chosen_layers, wrong, 4)


def test_invalid_settings_are_rejected():
    for settings, words in (
        ({"false_rejections": 0.01}, "use at least 0.0"),
        ({"layers": (9,)}, "has 5 blocks"),
    ):
        with pytest.raises(InputError, match=words):
            train_verifier(PLANTED, marked_texts(60), ProbeTrainingConfig(**{"layers": (3,), **settings}))


def test_states_of_one_pass_match_those_of_a_verifier():
    oracle = tiny_oracle(3)
    sequences = torch.randint(3, 300, (7, 20), generator=generator(0, "tokens")).tolist()
    lengths = [[20], [1, 2, 3], [], [5, 17], [4, 19, 20], [1], [9]]
    read = [
        hidden_states_of_prefixes(model, sequences, lengths, (-1, 0, 1), batch_size=3)
        for model in (oracle, truncated(oracle))
    ]
    assert torch.allclose(*read, rtol=1e-3, atol=1e-3)
    assert not torch.allclose(read[0][:, 0], read[1][:, 2], atol=1e-1)
    assert not torch.allclose(read[0], read[1].roll(1, 0), atol=1e-1)


BEGINNINGS = torch.randint(3, 300, (2, 14), generator=generator(1, "beginnings")).tolist()
ENDS = torch.randint(3, 300, (9, 9), generator=generator(2, "ends")).tolist()
SHARING = [BEGINNINGS[row % 2] + end[: 9 - row] for row, end in enumerate(ENDS)] + [
    ENDS[0],
    BEGINNINGS[0][:5],
]
LENGTHS = [[14, 23], [15, 18], [], [16], [17, 18, 19], [13, 18], [15], [2, 16], [15], [1, 4, 9], [5]]


@pytest.mark.parametrize("kind", ["cached", "recomputed", "stepwise"])
def test_shared_prefix_is_evaluated_once(kind):
    oracle = tiny_oracle(3, recompute=kind == "recomputed")
    model = truncated(oracle) if kind == "stepwise" else oracle
    settled: list[int] = []
    given: list[int] = []

    def count(layer: object, arguments: object, settings: dict[str, torch.Tensor]) -> None:
        given.append(settings["input_ids"].numel())

    with_count = oracle.body.register_forward_pre_hook(count, with_kwargs=True)
    together = hidden_states_of_prefixes(
        model, SHARING, LENGTHS, (-1, 1), batch_size=4, evaluated=settled.append
    )
    with_count.remove()
    single_passes = [
        hidden_states_of_prefixes(oracle, [own], [[length]], (-1, 1))
        for own, lengths in zip(SHARING, LENGTHS, strict=True)
        for length in lengths
    ]
    assert torch.allclose(together, torch.cat(single_passes), rtol=1e-3, atol=1e-3)
    separately = sum(own[-1] for own in LENGTHS if own)
    assert sum(settled) == separately + sum(map(bool, LENGTHS))
    # Padding is included.
    assert sum(given) >= separately if kind == "recomputed" else sum(given) < 0.9 * separately


def test_check_rejects_shared_prefix_that_is_not_copied(monkeypatch):
    monkeypatch.setattr(PositionCache, "copy", lambda *arguments: None)
    expect_failure("", test_shared_prefix_is_evaluated_once, "cached")


def test_layers_and_lengths_out_of_range_are_rejected():
    shape = TransformerConfig(vocab_size=3, width=16, heads=2, mlp_width=32, max_length=9)
    model, tokens = Transformer(shape, seed=3).eval(), [[0, 1, 2, 0, 1, 2, 0, 1, 2]]
    expect_error("layers=", hidden_states_of_prefixes, model, tokens, [[3]], ())
    for wrong in ([[3, 3]], [[4, 2]], [[10]], [[-1]], [[]], [[1], [2]]):
        expect_error("lengths=", hidden_states_of_prefixes, model, tokens, wrong)
