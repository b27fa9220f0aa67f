"""Encoder-decoders: their oracles satisfy the contracts and agree with full passes of the network."""

from dataclasses import replace

import pytest
import torch

from models.small_encoder_decoders import LONGEST, VOCAB, small_network
from refusals import calls_without_expected_error
from trialogue import exact_distribution, target_distribution, total_variation
from trialogue.data.parallel.vocabulary import BOS, EOS, MASK, PAD
from trialogue.models.encoder_decoder.config import EncoderDecoderConfig
from trialogue.models.encoder_decoder.network import EncoderDecoder, append_eos
from trialogue.models.encoder_decoder.refiner import Refiner
from trialogue.models.encoder_decoder.twin import CausalTranslator
from trialogue.oracles import next_log_probs
from trialogue.randomness import generator
from trialogue.samplers import MaskedDecoding, Rejection
from trialogue.testing.models import check_masked
from trialogue.testing.oracles import check_oracle
from trialogue.training import load_model, save_model

TWIN, REFINER = small_network(causal=True), small_network(causal=False)
RELU = small_network(causal=True, relu=True)
SOURCES = ([4, 5, 6], [7, 4, 8, 5, 5, 6], [8])


def full_pass(twin, source, tokens, length):
    """Return the log-probabilities after the first `length` tokens, computed by one full pass of `twin`."""
    inputs = torch.tensor([[BOS, *tokens[:length].tolist()]])
    logits = twin(append_eos([source]), inputs)[0, -1]
    logits[[PAD, MASK, BOS]] = -torch.inf
    return logits.log_softmax(-1)


@torch.no_grad()
def cache_error(source, expected_source, twin=TWIN, expected_twin=None) -> float:
    """Return the largest difference between cached decoding of `source` and full passes on `expected_source`."""
    expected_twin = twin if expected_twin is None else expected_twin
    oracle = CausalTranslator(twin).condition(source)
    tokens = torch.randint(4, VOCAB, (8, LONGEST), generator=generator(0, "tokens"))
    lengths = torch.tensor([0, 1, 2, 3, 4, 5, 6, 3])
    distributions = next_log_probs(oracle, tokens, lengths)
    rows = zip(distributions, tokens, lengths.tolist(), strict=True)
    return max(
        float((distribution.exp() - full_pass(expected_twin, expected_source, row, n).exp()).abs().max())
        for distribution, row, n in rows
    )


def test_cached_decoding_equals_full_passes():
    for source in SOURCES:
        for twin in (TWIN, RELU):
            assert cache_error(source, source, twin) < 1e-5
    # The check detects another source and another activation.
    assert cache_error(SOURCES[0], SOURCES[1]) > 1e-2
    assert cache_error(SOURCES[0], SOURCES[0], RELU, TWIN) > 1e-2


def test_the_twin_keeps_the_contract_of_oracles():
    check_oracle(CausalTranslator(TWIN).condition(SOURCES[1]), steps=15, seeds=(0,))


@torch.no_grad()
def test_rows_with_different_sources_have_the_results_of_single_rows():
    together = CausalTranslator(TWIN).condition_each(SOURCES).open(3, 4)
    tokens, rows = torch.tensor([[4, 5, 0, 0]] * 3), torch.arange(3)
    for length in (0, 1, 2):
        stop = torch.full((3,), length)
        distributions = together.log_probs(together.features(tokens, stop, stop, rows))
        for source, distribution in zip(SOURCES, distributions, strict=True):
            assert distribution.exp() == pytest.approx(
                full_pass(TWIN, source, tokens[0], length).exp(), abs=1e-5
            )
    forked = together.fork(torch.tensor([2, 0]), 4)
    stop = torch.full((2,), 2)
    distributions = forked.log_probs(forked.features(tokens[:2], stop, stop, rows[:2]))
    for source, distribution in zip((SOURCES[2], SOURCES[0]), distributions, strict=True):
        assert distribution.exp() == pytest.approx(full_pass(TWIN, source, tokens[0], 2).exp(), abs=1e-5)


def no_five(tokens):
    return 5 not in tokens


def test_exact_distributions_are_computed_on_the_twin():
    oracle = CausalTranslator(TWIN).condition(SOURCES[0])
    target = target_distribution(oracle, no_five, max_new_tokens=2)
    exact = exact_distribution(Rejection(), oracle, no_five, max_new_tokens=2)
    assert total_variation(exact.probabilities, target) < 1e-9
    masked = exact_distribution(MaskedDecoding(), oracle, no_five, max_new_tokens=2)
    assert total_variation(masked.probabilities, target) > 1e-3


def test_the_refiner_keeps_the_contract_of_masked_oracles():
    check_masked(Refiner(REFINER).condition(SOURCES[0]), sites=3, tolerance=1e-5)


@torch.no_grad()
def test_the_refiner_has_the_conditionals_of_the_network():
    tokens, masked = torch.tensor([[4, 5, 6, 7]]), torch.tensor([[False, True, False, True]])
    oracle = Refiner(REFINER).condition(SOURCES[1])
    for log_probs, sites in ((oracle.log_probs, [1, 3]), (oracle.refined_log_probs, [0, 1, 2, 3])):
        inputs = torch.tensor([[4, MASK, 6, MASK, EOS]])
        logits = REFINER(append_eos([SOURCES[1]]), inputs)[0, sites]
        logits[:, :4] = -torch.inf
        assert log_probs(tokens, masked)[0, sites].exp() == pytest.approx(logits.softmax(-1), abs=1e-5)


@torch.no_grad()
def test_padding_does_not_change_results():
    model, lengths = Refiner(REFINER).condition_each(SOURCES)
    tokens = torch.tensor([[4, 5, PAD, PAD], [6, 7, 8, 4], [5, PAD, PAD, PAD]])
    masked = torch.tensor([[True, False] * 2] * 3)
    distributions = model.refined_log_probs(tokens, masked)
    assert (distributions[tokens == PAD].exp() == torch.eye(VOCAB)[PAD]).all()
    for row, source in enumerate(SOURCES):
        count = int((tokens[row] != PAD).sum())
        single_source, length = Refiner(REFINER).condition_each([source])
        own = single_source.refined_log_probs(tokens[row : row + 1, :count], masked[:1, :count])
        assert distributions[row, :count].exp() == pytest.approx(own[0].exp(), abs=1e-5)
        assert lengths[row] == pytest.approx(length[0], abs=1e-5)
    chosen = model.rows(torch.tensor([2, 0])).refined_log_probs(tokens[[2, 0]], masked[:2])
    assert chosen.exp() == pytest.approx(distributions[[2, 0]].exp(), abs=1e-5)


@torch.no_grad()
def test_attention_by_position_does_not_see_tokens():
    block = REFINER.blocks[0]
    weights = block.position_weights(REFINER.position_embedding.weight[:4], torch.zeros(1, 1, 1, 4))
    assert weights.shape == (1, 2, 4, 4)
    assert weights.sum(-1) == pytest.approx(torch.ones(1, 2, 4), abs=1e-6)
    without = EncoderDecoder(replace(REFINER.config, positional_attention=False))
    assert not [name for name, _ in without.named_parameters() if ".position_" in name]


def test_shared_embeddings_are_shared_after_loading(tmp_path):
    assert REFINER.head.weight is REFINER.token_embedding.weight
    save_model(REFINER, tmp_path / "refiner.safetensors")
    again = load_model(tmp_path / "refiner.safetensors", EncoderDecoder)
    assert again.head.weight is again.token_embedding.weight
    sources, inputs = append_eos(SOURCES), torch.full((3, 4), 5)
    assert torch.equal(again(sources, inputs), REFINER(sources, inputs))


@pytest.mark.parametrize("causal", [True, False])
def test_dropout_applies_to_all_residual_branches_during_training_only(causal):
    sources, inputs = append_eos(SOURCES), torch.full((3, 4), 5)
    whole, nothing, half = (
        small_network(causal=causal, dropout=rate).train(rate > 0) for rate in (0.0, 1 - 1e-9, 0.5)
    )
    states = nothing.encode(sources).states
    assert torch.equal(states, nothing.encoder_norm(torch.zeros_like(states)))
    # The source has no effect either, because keys and values of constant states are the same at all positions.
    decoded = nothing.decode(inputs, nothing.encode(sources))
    assert torch.equal(decoded, nothing.final_norm(torch.zeros_like(decoded)))
    embedded = half.embed(torch.full((400,), 5), torch.zeros(400, dtype=torch.long))
    kept = whole.embed(torch.tensor(5), torch.tensor(0))
    assert torch.equal(embedded, torch.where(embedded == 0, 0, 2 * kept))
    assert abs((embedded == 0).float().mean() - 0.5) < 0.05
    assert torch.equal(half.eval()(sources, inputs), whole(sources, inputs))


def test_gradients_reach_every_parameter():
    for network in (TWIN, REFINER):
        network.zero_grad()
        sources = append_eos(SOURCES)
        loss = network(sources, torch.randint(4, VOCAB, (3, 4))).square().sum()
        if not network.config.causal:
            loss = loss + network.length_logits(sources, network.encode(sources)).square().sum()
        loss.backward()
        assert not [name for name, each in network.named_parameters() if each.grad is None]
        network.zero_grad()


BAD = [
    ("vocab_size=", lambda: EncoderDecoderConfig(vocab_size=4)),
    ("width=", lambda: EncoderDecoderConfig(vocab_size=9, width=10, heads=4)),
    ("positional_attention=", lambda: EncoderDecoderConfig(vocab_size=9, causal=True)),
    ("activation=", lambda: EncoderDecoderConfig(vocab_size=9, activation="tanh")),
    ("dropout=", lambda: EncoderDecoderConfig(vocab_size=9, dropout=1.0)),
    ("model=", lambda: CausalTranslator(REFINER)),
    ("model=", lambda: Refiner(TWIN)),
    ("source=", lambda: Refiner(REFINER).condition([4] * 7)),
    ("capacity=", lambda: CausalTranslator(TWIN).condition(SOURCES[0]).open(1, 8)),
    ("layers=", lambda: CausalTranslator(TWIN).condition(SOURCES[0]).open(1, 4, (3,))),
    ("targets=", lambda: TWIN(append_eos(SOURCES), torch.full((3, 8), 5))),
]


def test_invalid_input_is_reported():
    assert not calls_without_expected_error(BAD)
