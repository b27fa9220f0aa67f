"""Tests of constructed networks by a forward pass, and of rejected constructions."""

import math

import pytest
import torch

from theory.memorization.targets import kl, random_log_probs
from trialogue import exact_distribution
from trialogue.errors import InputError
from trialogue.models.networks.attention_only import AttentionOnly, AttentionOnlyConfig
from trialogue.models.networks.text_network import save_text_network
from trialogue.oracles import enumerate_sequences
from trialogue.randomness import generator
from trialogue.samplers import Ancestral
from trialogue.training import load_model, save_model
from trialogue_lab.theory.memorization import memorize, nearest_encoder, truncated_encoder


@pytest.mark.parametrize("query_width", [None, 1])
@pytest.mark.parametrize("width", [19, 10])
def test_network_stores_four_hundred_distributions_to_nine_digits(width, query_width):
    targets, contexts = random_log_probs(400, 20), enumerate_sequences(20, 2)
    built = memorize(targets, contexts, width, 41, 10, query_width=query_width)
    predictions = built.model.next_log_probs(contexts, torch.full((400,), 2))
    assert predictions.dtype == torch.float64
    assert float((predictions - built.target_log_probs).abs().max()) < 1e-9
    assert built.largest_error == float((predictions - built.target_log_probs).abs().max())
    assert built.accuracy == pytest.approx(
        float((predictions.argmax(1) == targets.argmax(1)).double().mean())
    )
    assert (built.accuracy == 1) == (width == 19)
    assert (built.rank, built.over_provision) == (400, pytest.approx((410 + width) / 400 - 1))
    assert built.kl == pytest.approx(kl(targets, predictions), abs=1e-12)
    assert 1e-7 < built.largest_error_float32 < 0.3 < built.largest_error_bfloat16
    if width == 19:
        assert float((predictions - targets).abs().max()) < 1e-9
    else:
        assert built.encoder_kl == pytest.approx(nearest_encoder(targets, width).kl)
        assert 0 < built.encoder_kl < 0.8 * truncated_encoder(targets, width).kl


def test_skip_connection_is_invertible_if_contexts_end_in_few_tokens():
    contexts = enumerate_sequences(8, 3)
    few = contexts[contexts[:, -1] < 2]
    built = memorize(random_log_probs(len(few), 8), few, 8, 17, 8)
    assert built.skip_condition < 1e5
    assert built.largest_error < 1e-8


def test_two_dimensions_store_a_hundred_associations():
    tokens = torch.randint(0, 10, (100,), generator=generator(0, "tokens"))
    built = memorize(tokens, enumerate_sequences(10, 2), 2, 49, 2, vocab_size=10)
    predictions = built.model.next_log_probs(enumerate_sequences(10, 2), torch.full((100,), 2))
    assert (predictions.argmax(1) == tokens).all()
    assert built.accuracy == 1
    assert built.kl < 1e-9
    assert built.model.config.parameters == 2 * (2 + 20 + 4 * 2 * 49)


def test_narrow_network_is_more_accurate_on_contexts_with_a_large_prior():
    targets, contexts = random_log_probs(100, 10), enumerate_sequences(10, 2)
    prior = torch.full((100,), 1e-6, dtype=torch.float64)
    prior[:10] = (1 - 90e-6) / 10
    built = memorize(targets, contexts, 3, 50, 2, prior=prior)
    predictions = built.model.context_log_probs(contexts)
    errors = (targets.exp() * (targets - predictions)).sum(1)
    assert built.kl == pytest.approx(float(prior @ errors), abs=1e-9)
    assert float(errors[:10].mean()) < 0.25 * float(errors[10:].mean())


def test_network_is_an_oracle_and_can_be_saved(tmp_path):
    targets, contexts = random_log_probs(27, 3), enumerate_sequences(3, 3)
    built = memorize(targets, contexts, 3, 14, 2)
    distribution = exact_distribution(Ancestral(), built.model, prompt=[0, 1, 2], max_new_tokens=2)
    first, second = targets[5].exp(), targets[[15, 16, 17]].exp()
    for a in range(3):
        for b in range(3):
            assert distribution.probabilities[0, 1, 2, a, b] == pytest.approx(
                float(first[a] * second[a, b]), abs=1e-9
            )
    file = save_model(built.model, tmp_path / "memory.safetensors")
    read = load_model(file, AttentionOnly)
    assert torch.equal(read.context_log_probs(contexts), built.model.context_log_probs(contexts))
    assert torch.equal(read.contexts, contexts)


def test_unstored_contexts_are_counted_and_short_prompts_are_rejected():
    contexts = enumerate_sequences(4, 2)[:10]
    model = memorize(random_log_probs(10, 4), contexts, 4, 4, 2).model
    before = model.unstored
    model.next_log_probs(enumerate_sequences(4, 2), torch.full((16,), 2))
    assert model.unstored - before == 6
    with pytest.raises(InputError, match=r"lengths=1: the model reads the last 2 tokens"):
        model.next_log_probs(torch.tensor([[1, 2]]), torch.tensor([1]))
    with pytest.raises(InputError, match=r"tokens=4: use token ids from 0 to 3"):
        model.context_log_probs(torch.tensor([[4, 0]]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"heads": 5},
            r"heads=5: 100 contexts need features of rank 100: the heads have 45 .* use 11 heads of 9",
        ),
        ({"targets": random_log_probs(100, 10)[:50]}, r"contexts=\(100, 2\)"),
        ({"targets": random_log_probs(100, 10) + 1}, r"targets=(1|0\.9).*: row 0 has this log of the sum"),
        ({"targets": torch.full((100, 10), -math.inf).index_fill(1, torch.tensor([3]), 0.0)}, r"softened"),
        ({"contexts": enumerate_sequences(10, 2) * 0}, r"contexts=\(0, 0\): this context occurs twice"),
        ({"head_width": 12}, r"head_width=12"),
    ],
)
def test_impossible_constructions_raise_a_one_line_error(arguments, message):
    tables = {"targets": random_log_probs(100, 10), "contexts": enumerate_sequences(10, 2)}
    with pytest.raises(InputError, match=message) as raised:
        memorize(**tables | {"width": 9, "heads": 12, "head_width": 9} | arguments)
    assert "\n" not in str(raised.value)


def test_folder_with_other_files_is_not_overwritten(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match=r"it contains 'tokenizer.json'"):
        save_text_network(
            memorize(random_log_probs(9, 3), enumerate_sequences(3, 2), 3, 4, 2).model, None, tmp_path, ""
        )
    assert (tmp_path / "tokenizer.json").read_text() == "{}"


def test_config_counts_the_parameters_of_the_network():
    for query_width in (None, 1, 3):
        config = AttentionOnlyConfig(
            vocab_size=7, context=3, width=5, heads=4, head_width=2, query_width=query_width
        )
        assert config.parameters == sum(weights.numel() for weights in AttentionOnly(config).parameters())
