"""Tests of attention between adjacent words and of refinement against single steps."""

import numpy as np
import pytest
import torch

from refusals import expect_error
from trialogue.models.encoder_decoder.config import EncoderDecoderConfig
from trialogue.models.encoder_decoder.network import EncoderDecoder, append_eos
from trialogue.models.encoder_decoder.refiner import Refiner
from trialogue.randomness import Streams
from trialogue.samplers.chains.refinement import Refinement
from trialogue.samplers.translation.refining import most_probable_lengths, random_targets
from trialogue_lab.analysis.adjacent_attention import adjacent_attention, refined_attention


def _network(**settings):
    shape = {"vocab_size": 20, "heads": 2, "width": 16, "mlp_width": 32, "max_length": 8, "decoder_layers": 2}
    network = EncoderDecoder(EncoderDecoderConfig(**(shape | settings)), seed=1).eval()
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if "weight" in name and parameter.ndim == 2:
                parameter.mul_(8)  # makes attention far from uniform
    return network


SOURCES, TARGETS = [[5, 6, 7], [8, 9]], [[10, 10, 11], [12, 13]]


@torch.no_grad()
def test_attention_weights_reproduce_the_layer_inputs():
    network = _network(decoder_layers=1)
    sources, tokens = append_eos(SOURCES), append_eos(TARGETS)
    encoded, seen = network.encode(sources), {}
    block = network.blocks[0]
    block.projection.register_forward_hook(lambda _, inputs, __: seen.update(own=inputs[0]))
    block.source_projection.register_forward_hook(lambda _, inputs, __: seen.update(source=inputs[0]))
    network.decode(tokens, encoded)
    own, source = network.last_attention(tokens, encoded)
    assert torch.allclose(own.sum(-1), torch.ones(2, 2, 4))
    assert torch.allclose(source.sum(-1), torch.ones(2, 2, 4))
    assert own[1, :, :, 3].max() < 1e-6
    x = network.embed(tokens, torch.arange(4))
    values = block.qkv(block.attention_norm(x)).chunk(3, -1)[2].unflatten(-1, (2, -1)).transpose(1, 2)
    assert torch.allclose((own @ values).transpose(1, 2).flatten(2), seen["own"], atol=1e-5)
    read = (source @ encoded.keys_values[0][1]).transpose(1, 2).flatten(2)
    assert torch.allclose(read, seen["source"], atol=1e-5)


def test_pairs_agree_with_the_attention_weights():
    network = _network()
    found = adjacent_attention(network, SOURCES, TARGETS)
    assert found.stutter.tolist() == [True, False, False]
    assert found.target.tolist() == [0, 0, 1]
    with torch.no_grad():
        own, source = network.last_attention(append_eos(TARGETS), network.encode(append_eos(SOURCES)))
    own, source = own.double().numpy(), source.double().numpy()
    for pair, (row, left) in enumerate(((0, 0), (0, 1), (1, 0))):
        directions = [own[row, :, left, left + 1], own[row, :, left + 1, left]]
        assert np.allclose(np.sort(found.own[pair]), np.sort(np.concatenate(directions)))
        first, second = source[row, :, left], source[row, :, left + 1]
        assert np.allclose(found.variation[pair], np.abs(first - second).sum(1) / 2)
        lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
        assert np.allclose(found.cosine[pair], 1 - (first * second).sum(1) / lengths)
        likeliest = first.argmax(1) == second.argmax(1)
        assert found.source_overlap[pair, 0] == likeliest.mean()
        most = [own[row, :, left].argmax(1) == left + 1, own[row, :, left + 1].argmax(1) == left]
        assert found.own_overlap[pair, 0] == np.mean(most)
    assert (found.own_overlap[:, 1] >= found.own_overlap[:, 0]).all()
    assert (found.source_overlap[:, 1] >= found.source_overlap[:, 0]).all()


@pytest.mark.parametrize("at_once", [1, 256])
def test_refinement_agrees_with_single_steps(monkeypatch, at_once):
    """Compare with the chain itself, which runs one step of one source at a time."""
    network, chain, sources = _network(), Refinement(keep="nothing"), [[5, 6, 7], [], [8, 9]]
    refiner, stages = Refiner(network), []
    for place, source in enumerate(sources):
        if not source:
            stages.append([[]] * 4)
            continue
        model, distributions = refiner.condition_each([source])
        targets = random_targets(
            most_probable_lengths(distributions, 1)[0], 20, Streams(10, torch.tensor([place]))
        )
        state = chain.init(model, targets)
        stages.append([targets.tolist()[0]])
        for _ in range(3):
            state, _ = chain.step(model, state, None)
            stages[-1].append(state.tokens.tolist()[0])
    monkeypatch.setattr("trialogue_lab.analysis.adjacent_attention._BATCH", at_once)
    found = {passes: refined_attention(refiner, sources, passes, seed=10) for passes in (2, 3)}
    for passes in (2, 3):
        read, written = ([of[passes - before] for of in stages] for before in (1, 0))
        wanted = adjacent_attention(network, sources, read, written)
        assert all(
            np.allclose(one, other, atol=1e-5) for one, other in zip(found[passes], wanted, strict=True)
        )
    assert not np.allclose(found[2].variation, found[3].variation, atol=1e-3)
    second = found[3].where(found[3].target == 2)
    assert set(found[3].target) == {0, 2}
    assert len(second.stutter) == len(second.own) == len(stages[2][0]) - 1


def test_invalid_input_is_rejected():
    network = _network()
    expect_error("at least two tokens", adjacent_attention, network, [[5]], [[6]])
    expect_error("1 sources and 0 targets", adjacent_attention, network, [[5]], [])
    causal = _network(causal=True, positional_attention=False)
    expect_error("passes", refined_attention, Refiner(network), SOURCES, 1)
    expect_error("reads a whole target", adjacent_attention, causal, SOURCES, TARGETS)
