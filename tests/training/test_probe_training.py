"""Test probes, verifiers trained on texts with a planted signal in one layer, and their files and cards."""

from dataclasses import replace
from typing import cast

import pytest
import torch

from models.tiny_pretrained import tiny_model, tiny_oracle, tiny_tokenizer
from refusals import expect_error
from training.planted_signal import Planted, marked_texts
from trialogue.errors import InputError
from trialogue.models.hub.pretrained import PretrainedOracle
from trialogue.models.networks.probe import Probe, hidden_states, hidden_states_of_prefixes
from trialogue.models.networks.saved import save_model
from trialogue.models.networks.transformer import Transformer, TransformerConfig
from trialogue.randomness import generator
from trialogue.samplers import Ancestral, Backtracking, generate, truncated
from trialogue.training.probes.grid import ProbeConfig, search_probes, train_probe
from trialogue.training.probes.probe_examples import prefix_examples
from trialogue.training.probes.probe_files import ProbeFile, load_probe, make_card, save_probe
from trialogue.training.probes.probe_training import ProbeTrainingConfig, resolve_layers, train_verifier
from trialogue.verifiers.functions.function import Threshold
from trialogue.verifiers.probe import ProbeVerifier

PLANTED = cast(PretrainedOracle, Planted())
CONFIG = ProbeTrainingConfig(layers="all", depths=(1,), correct_prefixes=2, false_rejections=0.1)


def is_accurate(file: ProbeFile) -> bool:
    """Return whether the verifier distinguishes marked prefixes from others in new texts."""
    examples = prefix_examples(marked_texts(60, seed=1).texts, PLANTED.tokenization, correct_prefixes=2)
    states = hidden_states_of_prefixes(PLANTED, examples.sequences, examples.lengths, (file.layer,))[:, 0]
    verdicts = file.probe.probability(states) >= file.threshold
    return float((verdicts == (examples.labels == 1)).double().mean()) > 0.9


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
    ignorant = replace(CONFIG, layers=(1, 2, 4), threshold=0.5)
    expect_error("no better than chance", train_verifier, PLANTED, marked_texts(240), ignorant)


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
    assert resolve_layers("all", 4) == (1, 2, 3, -1)
    assert resolve_layers("every:4", 10) == (2, 6, -1)
    assert resolve_layers("every:9", 4) == (-1,)
    assert resolve_layers((4, 0, -1, 2), 4) == (-1, 0, 2)
    for wrong in ("every:0", "every:x", "some", (5,), (-2,), ()):
        expect_error("layers=", resolve_layers, wrong, 4)


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


def test_layers_and_lengths_out_of_range_are_rejected():
    shape = TransformerConfig(vocab_size=3, width=16, heads=2, mlp_width=32, max_length=9)
    model, tokens = Transformer(shape, seed=3).eval(), [[0, 1, 2, 0, 1, 2, 0, 1, 2]]
    expect_error("layers=", hidden_states_of_prefixes, model, tokens, [[3]], ())
    for wrong in ([[3, 3]], [[4, 2]], [[10]], [[-1]], [[]], [[1], [2]]):
        expect_error("lengths=", hidden_states_of_prefixes, model, tokens, wrong)


ORACLE = tiny_oracle(1)


@pytest.fixture(scope="module")
def file():
    config = ProbeTrainingConfig(layers=(1, -1), depths=(2, 1), threshold="youden", hidden=8, epochs=20)
    return train_verifier(ORACLE, marked_texts(120), config, name="marked.jsonl")


def test_saved_probe_is_restored(file, tmp_path):
    save_probe(file, tmp_path / "probe.safetensors")
    read = load_probe(tmp_path / "probe.safetensors")
    weights = [own.probe.state_dict() for own in (file, read)]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    assert replace(read, probe=file.probe) == file
    assert sorted(path.name for path in tmp_path.iterdir()) == ["probe.md", "probe.safetensors"]


@pytest.mark.parametrize("layer", [-1, 1])
def test_verifier_reads_the_stored_layer(file, layer, tmp_path):
    save_probe(replace(file, layer=layer), tmp_path / "probe.safetensors")
    read = load_probe(tmp_path / "probe.safetensors")
    read.check(ORACLE)
    prompts = [ORACLE.tokenization.encode("the cat")] * 60
    samples = generate(
        ORACLE, prompts, sampler=Ancestral(), verifier=read.verifier(), max_new_tokens=4, seed=2
    )
    states = hidden_states(ORACLE, samples.tokens, samples.lengths, (layer,))[:, 0]
    probability = read.probe.probability(states)
    sure = (probability - read.threshold).abs() > 1e-3
    assert torch.equal(samples.accepted[sure], (probability >= read.threshold)[sure])
    strict = generate(
        ORACLE, prompts, sampler=Ancestral(), verifier=read.verifier(1.0), max_new_tokens=4, seed=2
    )
    assert not strict.accepted[probability < 0.99].any()


def test_probe_of_another_model_is_rejected(file):
    wide = PretrainedOracle(tiny_model(hidden_size=32), tiny_tokenizer(), name="wide")
    caught = expect_error("probe='tiny': it was trained on 'tiny' and does not fit", file.check, wide)
    assert "probe width=16" in str(caught)
    expect_error("layers=7", replace(file, layer=7).check, ORACLE)
    prompts = [wide.tokenization.encode("the cat")]
    with pytest.raises(InputError, match="hidden states here have width 32"):
        generate(wide, prompts, sampler=Ancestral(), verifier=file.verifier(), max_new_tokens=2)


def test_card_contains_the_metrics(file, tmp_path):
    text = save_probe(file, tmp_path / "probe.safetensors").read_text(encoding="utf-8")
    numbers, first = file.numbers, file.grid[0]
    assert f"| AUROC | {numbers.auroc:.4f} |" in text
    assert f"({numbers.detections.events} of {numbers.detections.total};" in text
    assert f"below {file.threshold:.4g}." in text
    assert (
        f"| {first.layer} | {first.depth} | {first.epoch} | {first.log_loss:.4f} | {first.accuracy:.4f} |"
        in text
    )
    for settings, words in (
        ({"threshold": None, "false_rejections": 0.05}, "expected to reject at most 5.00%"),
        ({"threshold": 0.3}, "set by the user"),
    ):
        assert words in make_card(replace(file, settings=settings), "probe.safetensors")


def test_file_that_is_not_a_probe_is_rejected(file, tmp_path):
    path = tmp_path / "probe.safetensors"
    expect_error("no such file", load_probe, path)
    path.write_bytes(b"pickle")
    expect_error("create it again with `trialogue probe`", load_probe, path)
    save_model(Transformer(TransformerConfig(vocab_size=3)), path)
    expect_error("not a file of kind 'trialogue probe 1'", load_probe, path)
    save_probe(file, path)
    content = path.read_bytes()
    path.write_bytes(content.replace(b'\\"width\\": 16', b'\\"width\\": 17'))
    expect_error("do not agree", load_probe, path)


MODEL = Transformer(
    TransformerConfig(vocab_size=3, width=16, heads=2, mlp_width=32, max_length=9), seed=3
).eval()


def examples(depth: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return states that are separated by a hyperplane (depth 1) or by the sign of a product (depth 2)."""
    states = torch.randn(600, 8, generator=generator(0, "states"))
    margin = states[:, 0] if depth == 1 else states[:, 0] * states[:, 1]
    far = margin.abs() > 0.1
    return states[far], (margin[far] > 0).long()


@pytest.mark.parametrize("depth", [1, 2])
def test_probe_separates_classes_for_its_depth(depth):
    trained = train_probe(*examples(depth), ProbeConfig(depth=depth, validation=0.2))
    assert trained.validation_accuracy > 0.95
    assert trained.train_size + trained.validation_size == len(examples(depth)[0])


def test_linear_probe_fails_on_products_and_all_probes_fail_on_noise():
    states, labels = examples(2)
    assert train_probe(states, labels, ProbeConfig(validation=0.5)).validation_accuracy < 0.65
    noise = torch.randint(0, 2, labels.shape, generator=generator(0, "noise"))
    assert abs(train_probe(states, noise, ProbeConfig(validation=0.5)).validation_accuracy - 0.5) < 0.15


def test_missing_label_is_rejected():
    states, labels = examples(1)
    expect_error("labels=0: give more erroneous examples", train_probe, states, torch.ones_like(labels))


@pytest.mark.parametrize("layer", [-1, 0, 1, 2])
def test_hidden_states_match_a_full_pass(layer):
    tokens = torch.randint(0, 3, (5, 9), generator=generator(0, "tokens"))
    lengths = torch.tensor([9, 1, 0, 4, 7])
    states = hidden_states(MODEL, tokens, lengths, (layer,))[:, 0]
    inputs = torch.cat((torch.full((5, 1), MODEL.bos), tokens), 1)
    whole = MODEL.hidden_states(inputs)[layer].detach()
    assert torch.allclose(states, whole[torch.arange(5), lengths], atol=1e-5)
    shifted = whole[torch.arange(5), (lengths - 1).clamp_min(0)]
    assert not torch.allclose(states, shifted, atol=1e-2)


@pytest.mark.parametrize("layer", [-1, 1])
def test_probe_verifier_reuses_the_states_of_prefixes(layer):
    probe = Probe(16, seed=1).requires_grad_(False)
    verifier = Threshold(ProbeVerifier(probe, layer), 0.5)
    prompts = torch.randint(0, 3, (40, 3), generator=generator(0, "prompts"))
    samples = generate(MODEL, prompts, sampler=Backtracking(2, 2), verifier=verifier, seed=5)
    states = hidden_states(MODEL, samples.tokens, samples.lengths, (layer,))[:, 0]
    sure = (probe.probability(states) - 0.5).abs() > 1e-4
    assert torch.equal(samples.accepted[sure], (probe.probability(states) >= 0.5)[sure])
    free = generate(MODEL, prompts, sampler=Ancestral(), seed=5)
    judged = generate(MODEL, prompts, sampler=Ancestral(), verifier=verifier, seed=5)
    assert torch.equal(free.tokens, judged.tokens)
    # Only complete sequences, which need no next token, are evaluated for the verifier alone.
    assert judged.total.positions - free.total.positions <= len(prompts)
