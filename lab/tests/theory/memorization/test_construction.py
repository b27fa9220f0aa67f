"""Built networks, by a forward pass: they answer what they were built for; what they cannot hold is refused."""

import math

import pytest
import torch

from trialogue import exact_distribution
from trialogue.errors import InputError
from trialogue.models.networks.attention_only import AttentionOnly, AttentionOnlyConfig
from trialogue.models.networks.text_network import save_text_network
from trialogue.oracles import whole_sequences
from trialogue.randomness import generator
from trialogue.samplers import Ancestral
from trialogue.training import load_model, save_model
from trialogue_lab.theory.memorization import memorize, nearest_encoder, truncated_encoder


def laws(contexts: int, vocab: int, seed: int = 0) -> torch.Tensor:
    logits = torch.randn(contexts, vocab, generator=generator(seed, "laws"), dtype=torch.float64)
    return (2 * logits).log_softmax(1)


def every(vocab: int, length: int) -> torch.Tensor:
    return whole_sequences(vocab, length)


def kl(first: torch.Tensor, second: torch.Tensor) -> float:
    return float((first.exp() * (first - second)).sum(1).mean())


@pytest.mark.parametrize("query_width", [None, 1])
@pytest.mark.parametrize("width", [19, 10])
def test_four_hundred_laws_are_held_to_nine_digits(width, query_width):
    targets, contexts = laws(400, 20), every(20, 2)
    built = memorize(targets, contexts, width, 41, 10, query_width=query_width)
    answers = built.model.next_log_probs(contexts, torch.full((400,), 2))
    assert answers.dtype == torch.float64
    assert float((answers - built.target_log_probs).abs().max()) < 1e-9
    assert built.largest_error == float((answers - built.target_log_probs).abs().max())
    assert built.accuracy == pytest.approx(float((answers.argmax(1) == targets.argmax(1)).double().mean()))
    assert (built.accuracy == 1) == (width == 19)
    assert (built.rank, built.over_provision) == (400, pytest.approx((410 + width) / 400 - 1))
    assert built.kl == pytest.approx(kl(targets, answers), abs=1e-12)
    assert 1e-7 < built.largest_error_float32 < 0.3 < built.largest_error_bfloat16
    if width == 19:
        assert float((answers - targets).abs().max()) < 1e-9
    else:
        assert built.encoder_kl == pytest.approx(nearest_encoder(targets, width).kl)
        assert 0 < built.encoder_kl < 0.8 * truncated_encoder(targets, width).kl


def test_contexts_that_end_in_few_tokens_leave_the_skip_connection_invertible():
    contexts = every(8, 3)
    few = contexts[contexts[:, -1] < 2]
    built = memorize(laws(len(few), 8), few, 8, 17, 8)
    assert built.skip_condition < 1e5
    assert built.largest_error < 1e-8


def test_the_circle_holds_a_hundred_associations_in_two_dimensions():
    tokens = torch.randint(0, 10, (100,), generator=generator(0, "tokens"))
    built = memorize(tokens, every(10, 2), 2, 49, 2, vocab_size=10)
    answers = built.model.next_log_probs(every(10, 2), torch.full((100,), 2))
    assert (answers.argmax(1) == tokens).all()
    assert built.accuracy == 1
    assert built.kl < 1e-9
    assert built.model.config.parameters == 2 * (2 + 20 + 4 * 2 * 49)


def test_a_prior_decides_what_a_narrow_network_gets_right():
    targets, contexts = laws(100, 10), every(10, 2)
    prior = torch.full((100,), 1e-6, dtype=torch.float64)
    prior[:10] = (1 - 90e-6) / 10
    built = memorize(targets, contexts, 3, 50, 2, prior=prior)
    answers = built.model.answers(contexts)
    errors = (targets.exp() * (targets - answers)).sum(1)
    assert built.kl == pytest.approx(float(prior @ errors), abs=1e-9)
    assert float(errors[:10].mean()) < 0.25 * float(errors[10:].mean())


def test_it_is_an_oracle_and_is_saved(tmp_path):
    targets, contexts = laws(27, 3), every(3, 3)
    built = memorize(targets, contexts, 3, 14, 2)
    law = exact_distribution(Ancestral(), built.model, prompt=[0, 1, 2], max_new_tokens=2)
    first, second = targets[5].exp(), targets[[15, 16, 17]].exp()
    for a in range(3):
        for b in range(3):
            assert law.probabilities[0, 1, 2, a, b] == pytest.approx(float(first[a] * second[a, b]), abs=1e-9)
    file = save_model(built.model, tmp_path / "memory.safetensors")
    read = load_model(file, AttentionOnly)
    assert torch.equal(read.answers(contexts), built.model.answers(contexts))
    assert torch.equal(read.contexts, contexts)


def test_contexts_that_are_not_stored_are_counted_and_short_prompts_refused():
    contexts = every(4, 2)[:10]
    model = memorize(laws(10, 4), contexts, 4, 4, 2).model
    before = model.unstored
    model.next_log_probs(every(4, 2), torch.full((16,), 2))
    assert model.unstored - before == 6
    with pytest.raises(InputError, match=r"lengths=1: the model reads the last 2 tokens"):
        model.next_log_probs(torch.tensor([[1, 2]]), torch.tensor([1]))
    with pytest.raises(InputError, match=r"tokens=4: use token ids from 0 to 3"):
        model.answers(torch.tensor([[4, 0]]))


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            {"heads": 5},
            r"heads=5: 100 contexts need features of rank 100: the heads have 45 .* use 11 heads of 9",
        ),
        ({"targets": laws(100, 10)[:50]}, r"contexts=\(100, 2\)"),
        ({"targets": laws(100, 10) + 1}, r"targets=(1|0\.9).*: row 0 has this log of the sum"),
        ({"targets": torch.full((100, 10), -math.inf).index_fill(1, torch.tensor([3]), 0.0)}, r"softened"),
        ({"contexts": every(10, 2) * 0}, r"contexts=\(0, 0\): this context occurs twice"),
        ({"head_width": 12}, r"head_width=12"),
    ],
)
def test_what_cannot_be_built_is_one_line(arguments, line):
    given = {"targets": laws(100, 10), "contexts": every(10, 2), "width": 9, "heads": 12, "head_width": 9}
    with pytest.raises(InputError, match=line) as raised:
        memorize(**given | arguments)
    assert "\n" not in str(raised.value)


def test_contexts_of_few_tokens_are_refused_with_what_they_need():
    contexts = every(3, 3)
    with pytest.raises(InputError, match=r"heads=3: 27 contexts .* use 6 heads"):
        memorize(laws(27, 50), contexts, 8, 3, 8)
    assert memorize(laws(27, 50), contexts, 8, 6, 8).largest_error < 1e-6


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match=r"it contains 'tokenizer.json'"):
        save_text_network(memorize(laws(9, 3), every(3, 2), 3, 4, 2).model, None, tmp_path, "")
    assert (tmp_path / "tokenizer.json").read_text() == "{}"


def test_parameters_are_those_of_the_network():
    for query_width in (None, 1, 3):
        config = AttentionOnlyConfig(
            vocab_size=7, context=3, width=5, heads=4, head_width=2, query_width=query_width
        )
        assert config.parameters == sum(weights.numel() for weights in AttentionOnly(config).parameters())
