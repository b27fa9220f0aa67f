"""Test batches and losses of encoder-decoders, and train both networks on a small language."""

from dataclasses import replace
from itertools import product

import pytest
import torch
import torch.nn.functional as F

from models.small_encoder_decoders import VOCAB, small_network
from refusals import calls_without_expected_error
from trialogue.data.parallel.vocabulary import EOS, MASK, PAD
from trialogue.models.encoder_decoder.network import append_eos
from trialogue.models.encoder_decoder.refiner import Refiner
from trialogue.models.encoder_decoder.twin import CausalTranslator
from trialogue.samplers.translation.refining import LengthBeam
from trialogue.samplers.translation.writing import BeamSearch
from trialogue.training import TrainingConfig, load_or_train
from trialogue.training.loop import _identity
from trialogue.training.translation.batches import TranslationBatches
from trialogue.training.translation.distillation import cached_translations, greedy_translations
from trialogue.training.translation.objectives import Noise, refinement_loss, translation_loss
from trialogue.training.translation.recipes import TranslationTraining, encode_pairs, list_rows

# All texts of one to three tokens out of three. The translation is reversed and uses three other tokens.
TEXTS = [list(text) for count in (1, 2, 3) for text in product((4, 5, 6), repeat=count)]
PAIRS = encode_pairs(TEXTS, [[token + 1 for token in reversed(text)] for text in TEXTS], 6)
SMALL = TranslationTraining(
    layers=1, heads=2, width=32, mlp_width=64, max_length=6, steps=400, batch_size=13, learning_rate=5e-3
)


def test_epoch_has_each_pair_once_with_pairs_of_similar_length():
    batches = TranslationBatches(*PAIRS, batch_size=13, seed=1)
    assert batches.epoch == 3
    seen = []
    for step in range(3, 6):
        sources, targets = batches(step)
        assert sources.shape == targets.shape == (13, sources.shape[1])
        assert int((targets != PAD).sum(1).max()) > targets.shape[1] - 2
        assert [row[::-1] for row in list_rows(sources)] == [
            [t - 1 for t in row] for row in list_rows(targets)
        ]
        seen += [tuple(row) for row in list_rows(sources)]
    assert len(set(seen)) == len(seen) == 39
    assert not all(torch.equal(batches(step)[0], batches(step + 3)[0]) for step in range(3))
    again = TranslationBatches(*PAIRS, batch_size=13, seed=1)
    assert all(torch.equal(*each) for each in zip(batches(4), again(4), strict=True))


def test_noise_has_the_right_rates():
    targets = torch.cat((torch.full((4000, 4), 5), torch.full((4000, 1), EOS)), 1)
    with torch.random.fork_rng([]):
        torch.default_generator.manual_seed(0)
        read = Noise(0.3, 0.25).corrupt(targets, VOCAB)
        kept = (Noise(None, 1.0).corrupt(targets, VOCAB)[:, :4] == 5).double().mean(1)
    assert torch.equal(read[:, 4], targets[:, 4])
    counts = torch.bincount(read[:, :4].flatten(), minlength=VOCAB) / 16_000
    random = 0.7 * 0.75 / 5
    expected = torch.tensor([0, 0, 0.7 * 0.25, 0, random, 0.3 + random, random, random, random])
    assert counts == pytest.approx(expected, abs=0.02)
    assert float(kept.var()) == pytest.approx(1 / 12 + 1 / 24, abs=0.01)  # a separate rate for every row
    assert (Noise(0.0, 1.0).corrupt(targets, VOCAB)[:, :4] == MASK).all()


@torch.no_grad()
def test_translation_loss_is_the_cross_entropy_of_each_token():
    network, total = small_network(causal=True), []
    for source, target in zip(TEXTS[:8], list_rows(PAIRS[1])[:8], strict=True):
        logits = network(append_eos([source]), torch.tensor([[3, *target]]))[0]
        total += F.cross_entropy(logits, torch.tensor([*target, EOS]), reduction="none").tolist()
    loss = translation_loss(network, PAIRS[0][:8], PAIRS[1][:8])
    assert float(loss) == pytest.approx(sum(total) / len(total), abs=1e-5)


@torch.no_grad()
def test_later_stages_read_the_argmax_of_the_previous_stage():
    network = small_network(causal=False)
    sources, targets = PAIRS[0][12:20], PAIRS[1][12:20]
    words = (targets != PAD) & (targets != EOS)
    noise, losses = Noise(0.0, 1.0), []
    inputs = torch.where(words, MASK, targets)
    for _ in range(3):
        logits = network(sources, inputs)[words]
        losses.append(F.cross_entropy(logits, targets[words]))
        inputs = inputs.masked_scatter(words, logits.argmax(-1))
    for stages in (1, 2, 3):
        loss = refinement_loss(network, sources, targets, noise, stages, length_weight=0.0)
        assert float(loss) == pytest.approx(float(sum(losses[:stages])) / stages, abs=1e-5)
    assert abs(float(losses[0] - losses[1])) > 1e-3  # a stage that reads masks again gives another loss


@torch.no_grad()
def test_lengths_are_predicted_by_cross_entropy():
    network = small_network(causal=False)
    sources, targets = PAIRS[0][:20], PAIRS[1][:20]
    noise = Noise(1.0)
    without = refinement_loss(network, sources, targets, noise, length_weight=0.0)
    logits = network.length_logits(sources, network.encode(sources))
    lengths = torch.tensor([len(row) for row in list_rows(targets)])
    expected = float(without) + 2 * float(F.cross_entropy(logits, lengths))
    loss = refinement_loss(network, sources, targets, noise, length_weight=2.0)
    assert float(loss) == pytest.approx(expected, abs=1e-4)


def test_empty_targets_train_only_the_length():
    network = small_network(causal=False)
    sources = append_eos([[4, 5], [6]])
    loss = refinement_loss(network, sources, append_eos([[], []]), stages=2)
    loss.backward()
    logits = network.length_logits(sources, network.encode(sources))
    expected = 0.1 * F.cross_entropy(logits, torch.zeros(2).long())
    assert loss.item() == pytest.approx(expected.item(), abs=1e-6)


@pytest.mark.slow
def test_both_networks_learn_to_reverse(tmp_path):
    twin = CausalTranslator(load_or_train(SMALL.twin(VOCAB, *PAIRS), tmp_path).network)
    found = [each.best for each in BeamSearch().translate(twin, TEXTS)]
    assert sum(each == wanted for each, wanted in zip(found, list_rows(PAIRS[1]), strict=True)) > 30
    assert greedy_translations(twin, TEXTS) == found
    kept = tmp_path / "kept.safetensors"
    assert torch.equal(cached_translations(twin, PAIRS[0], kept), append_eos(found))
    assert torch.equal(
        cached_translations(None, PAIRS[0], kept), append_eos(found)
    )  # the file is read, and the twin is not called
    refiner = Refiner(load_or_train(SMALL.refiner(VOCAB, *PAIRS), tmp_path).network)
    pupil = SMALL.refiner(VOCAB, *PAIRS, twin.model).begun().state_dict()
    known = twin.model.state_dict()
    assert all(torch.equal(pupil[name], weights) for name, weights in known.items())
    assert {name.split(".")[-2].split("_")[0] for name in set(pupil) - set(known)} == {"position", "length"}
    translations = LengthBeam(4, 1, drop_repeats=False).translate(refiner, TEXTS)
    assert (
        sum(each.best == wanted for each, wanted in zip(translations, list_rows(PAIRS[1]), strict=True)) > 20
    )


def test_dropout_applies_to_both_networks():
    training = replace(SMALL, dropout=0.3)
    recipes = training.twin(VOCAB, *PAIRS), training.refiner(VOCAB, *PAIRS)
    assert [each.begun().config.dropout for each in recipes] == [0.3, 0.3]


def test_hash_without_dropout_is_unchanged():
    without = SMALL.twin(VOCAB, *PAIRS), SMALL.refiner(VOCAB, *PAIRS)
    assert [each.hash for each in without] == ["d13700e053ffbc75", "5b5ffdfc7fe6b47b"]
    assert replace(SMALL, dropout=0.1).twin(VOCAB, *PAIRS).hash != without[0].hash
    config = TrainingConfig(steps=1, batch_size=1)
    described = [_identity(small_network(causal=True, dropout=rate), config) for rate in (0.0, 0.1)]
    assert ["network.dropout" in each for each in described] == [False, True]
    assert described[0]["network.width"] == 8


BAD = [
    ("targets=", lambda: TranslationBatches(PAIRS[0], PAIRS[1][:3], 2)),
    ("batch_size=", lambda: TranslationBatches(*PAIRS, 40)),
    ("correct=", lambda: Noise(1.5)),
    ("masked=", lambda: Noise(masked=-0.1)),
    ("stages=", lambda: TranslationTraining(stages=0)),
    ("width=", lambda: TranslationTraining(width=30)),
    ("steps=", lambda: TranslationTraining(steps=0)),
    ("max_length=", lambda: encode_pairs([[4] * 5], [[4]], 4)),
    ("targets=", lambda: encode_pairs([[4]], [], 4)),
]


def test_invalid_input_is_rejected():
    assert not calls_without_expected_error(BAD)
