"""Samplers in `model.generate(custom_generate=...)`: each option of the call is used or rejected."""

import re
from functools import partial
from typing import Any

import pytest
import torch
from transformers import (
    LogitsProcessorList,
    RepetitionPenaltyLogitsProcessor,
    StoppingCriteriaList,
    WatermarkingConfig,
    set_seed,
)
from transformers.generation import ConfidenceCriteria

from generation import generate_calls
from generation.generate_calls import MODEL, Reader, inputs
from models.tiny_pretrained import tiny_model, tiny_tokenizer
from refusals import expect_error, expect_failure
from trialogue.generation.custom_generate import call, decoder, decoding
from trialogue.models.hub.pretrained import PretrainedOracle
from trialogue.models.tokenization import Tokenization
from trialogue.samplers import (
    Backtracking,
    MaskedDecoding,
    TokenwiseRejection,
    WeightedRejection,
    effective_sample_sizes,
    generate,
    resampled,
    truncated,
)
from trialogue.verifiers import FunctionVerifier, GrammarVerifier

PROMPTS = generate_calls.PROMPTS[:2]
draw = partial(generate_calls.draw, PROMPTS)
draw_one = partial(generate_calls.draw, PROMPTS[:1])
WIDTH = inputs(PROMPTS)["input_ids"].shape[1]


SETTINGS = {"temperature": 0.7, "top_p": 0.9, "top_k": 20}


def test_a_forgotten_option_is_detected(monkeypatch):
    without_top_p = {name: SETTINGS[name] for name in ("temperature", "top_k")}
    monkeypatch.setattr(call, "split_processors", lambda *_, **__: ([], without_top_p))
    expect_failure("", test_samples_equal_those_of_generate_on_the_truncated_oracle)


def test_samples_equal_those_of_generate_on_the_truncated_oracle():
    output = draw(**SETTINGS, return_dict_in_generate=True, num_return_sequences=2)
    oracle = PretrainedOracle(tiny_model(3), tiny_tokenizer())
    expected = generate(truncated(oracle, **SETTINGS), PROMPTS, num_samples=2, max_new_tokens=12)
    assert output.samples.completions() == expected.completions()
    assert output.samples.prompt.tolist() == expected.prompt.tolist() == [0, 0, 1, 1]
    for row, completion in zip(output.sequences.tolist(), expected.completions(), strict=True):
        assert row[WIDTH:] == [*completion, *[0] * (len(row) - WIDTH - len(completion))]
    assert torch.equal(output.sequences[::2, :WIDTH], inputs(PROMPTS)["input_ids"])


def test_the_ends_of_sequence_of_the_call_are_used():
    ends = sorted(set(draw(max_new_tokens=4)[:, WIDTH:].flatten().tolist()) - {0, 1, 2})[:2]
    for row in draw(eos_token_id=ends, max_new_tokens=40, num_return_sequences=8)[:, WIDTH:].tolist():
        places = [place for place, token in enumerate(row) if token in ends]
        assert all(token == 0 for token in row[places[0] + 1 :]) if places else 0 not in row[:-1]


SPELLED: dict[str, Any] = {
    "sampler": MaskedDecoding(),
    "verifier": lambda tokenization: GrammarVerifier.regex("a*", tokenization),
    "top_k": 0,
    "num_return_sequences": 8,
    "return_dict_in_generate": True,
}


def test_ends_of_sequence_beyond_the_vocabulary_are_never_drawn():
    for ends in (-1, [-1], 300, []):
        samples = draw(eos_token_id=ends, **SPELLED).samples
        assert {len(completion) for completion in samples.completions()} == {12}
        assert all(re.fullmatch("a*", text) for text in samples.texts())
    given, meant = (draw(eos_token_id=ends, **SPELLED).samples for ends in ([2, -1, 300], 2))
    assert given.completions() == meant.completions()
    assert {len(completion) for completion in given.completions()} != {12}


def test_padding_without_a_padding_token_uses_a_valid_token(monkeypatch):
    monkeypatch.setattr(MODEL.generation_config, "pad_token_id", None)
    for ends, pad in ((-1, 0), ([-1, 2], 2)):
        stopped = draw(eos_token_id=ends, stop="e", num_return_sequences=8, max_new_tokens=60)[:, WIDTH:]
        assert bool((stopped >= 0).all())
        assert any(row[-1] == pad for row in stopped.tolist())


def test_the_default_seed_comes_from_torch():
    def twice(seed: int | None) -> tuple[torch.Tensor, torch.Tensor]:
        set_seed(5)
        return draw(seed=seed), draw(seed=seed)

    with torch.random.fork_rng(devices=[]):
        first, second = twice(None)
        again, _ = twice(None)
        fixed, same = twice(7)
    assert torch.equal(first, again)
    assert not torch.equal(first, second)
    assert torch.equal(fixed, same)


def test_weights_compare_the_samples_of_one_prompt():
    samples = draw(
        sampler=WeightedRejection(),
        verifier=lambda tokenization: GrammarVerifier.regex("[a-z]{2}", tokenization),
        num_return_sequences=12,
        top_k=0,
        return_dict_in_generate=True,
    ).samples
    assert all(1 < size < 12 for size in effective_sample_sizes(samples).tolist())
    chosen = resampled(samples, seed=1)
    assert chosen.prompt.tolist() == [0] * 12 + [1] * 12
    assert len(set(chosen.completions()[:12])) < len(set(samples.completions()[:12]))


def test_a_streamer_is_ended_if_the_call_fails():
    reader = Reader()
    expect_error("Backtracking needs a verifier", draw_one, streamer=reader, sampler=Backtracking())
    assert reader.ended == 1


def test_the_batch_size_does_not_change_samples():
    whole, batched = (
        draw(return_dict_in_generate=True, num_return_sequences=4, **size).samples
        for size in ({}, {"batch_size": 3})
    )
    assert whole.completions() == batched.completions()


def test_the_verifier_judges_the_text_before_the_stop_string():
    tokenization = Tokenization(tiny_tokenizer())
    samples = draw(
        sampler=MaskedDecoding(),
        verifier=GrammarVerifier.regex("[a-z]{1,3}", tokenization),
        stop="e",
        top_k=0,
        max_new_tokens=5,
        num_return_sequences=20,
        return_dict_in_generate=True,
    ).samples
    accepted = [one for one, good in zip(samples, samples.accepted.tolist(), strict=True) if good]
    assert any("e" in tokenization.text(one.tokens) for one in accepted)
    assert all(re.fullmatch("[a-df-z]{1,3}", one.text) for one in accepted)


@pytest.mark.parametrize("fails", [False, True])
def test_a_model_in_training_mode_is_evaluated_and_restored(fails):
    model = tiny_model(3, attention_dropout=0.5)

    def called(**settings: Any) -> torch.Tensor:
        custom = decoding(tokenizer=tiny_tokenizer(), seed=0, **settings)
        rows: torch.Tensor = model.generate(
            **inputs(PROMPTS), custom_generate=custom, max_new_tokens=12, do_sample=True
        )
        return rows

    expected = called()
    model.train()
    model.model.layers[0].eval()
    flags = {name: module.training for name, module in model.named_modules()}
    assert {False, True} == set(flags.values())
    for _ in range(3):
        if fails:
            expect_error("must return a Verifier", called, verifier=lambda _: 1.0)
        else:
            assert torch.equal(called(), expected)
        assert {name: module.training for name, module in model.named_modules()} == flags


VALUED = {"verifier": FunctionVerifier(bool), "output_scores": True, "return_dict_in_generate": True}
PENALTY = RepetitionPenaltyLogitsProcessor(1.2, prompt_ignore_length=torch.tensor([3, 3]))
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"num_beams": 2}, "generation mode='beam_sample'"),
    ({"typical_p": 0.5}, "'TypicalLogitsWarper': use temperature, top_k"),
    ({"epsilon_cutoff": 0.1}, "'EpsilonLogitsWarper': use temperature, top_k"),
    ({"eta_cutoff": 0.1}, "'EtaLogitsWarper': use temperature, top_k"),
    ({"top_h": 0.4}, "'TopHLogitsWarper': use temperature, top_k"),
    (
        {"watermarking_config": WatermarkingConfig()},
        "'WatermarkLogitsProcessor': leave it out: it needs state",
    ),
    ({"guidance_scale": 2.0}, "'UnbatchedClassifierFreeGuidanceLogitsProcessor': leave it out: it needs"),
    (
        {"encoder_repetition_penalty": 1.2},
        "'EncoderRepetitionPenaltyLogitsProcessor': leave it out: it needs state",
    ),
    (
        {"prefix_allowed_tokens_fn": lambda row, tokens: [5]},
        "'PrefixConstrainedLogitsProcessor': use a verifier",
    ),
    ({"prompts": ["a cat", "a"], "min_new_tokens": 3}, "one call per prompt length"),
    ({"logits_processor": LogitsProcessorList([PENALTY])}, "use a custom processor: per-row"),
    (
        {"stopping_criteria": StoppingCriteriaList([ConfidenceCriteria(0.5)])},
        "'ConfidenceCriteria': leave it out: it needs",
    ),
    ({"output_attentions": True, "return_dict_in_generate": True}, "output_attentions=True"),
    (VALUED | {"sampler": TokenwiseRejection()}, "output_scores=True: TokenwiseRejection does not sample"),
    (VALUED | {"sampler": WeightedRejection()}, "output_scores=True: WeightedRejection does not sample"),
    (
        VALUED | {"do_sample": False, "output_scores": False, "sampler": Backtracking()},
        "do_sample=False: Backtracking",
    ),
    ({"attention_mask": inputs(PROMPTS, "right")["attention_mask"]}, "pad on the left"),
    ({"inputs_embeds": torch.zeros(2, 2, 16), "input_ids": None, "attention_mask": None}, "use input_ids"),
    ({"prompts": PROMPTS[:1], "assistant_model": tiny_model(4)}, "assistant_model="),
    ({"synced_gpus": True}, "synced_gpus='bool': leave it out"),
    ({"position_ids": 7 + torch.arange(WIDTH).repeat(2, 1)}, "position_ids="),
    ({"labels": inputs(PROMPTS)["input_ids"]}, "labels='Tensor': leave it out"),
    ({"sampler": Backtracking()}, "Backtracking needs a verifier"),
    ({"verifier": 3}, "use a Verifier, or a function that creates one"),
    ({"rejected": "drop"}, "rejected='drop'"),
]


@pytest.mark.parametrize("output", ["output_scores", "output_attentions", "output_hidden_states"])
def test_outputs_that_are_not_returned_are_ignored(output):
    rule = {"sampler": TokenwiseRejection(), "verifier": FunctionVerifier(lambda tokens: tokens[-1] % 2 == 0)}
    assert torch.equal(draw(**rule, **{output: True}), draw(**rule))


def test_unsupported_options_are_rejected_in_one_line(monkeypatch):
    def loaded(*arguments: Any, **settings: Any) -> None:
        raise AssertionError("the model was loaded")

    monkeypatch.setattr(decoder, "get_oracle", loaded)
    for settings, words in REFUSED:
        expect_error(re.escape(words), generate_calls.draw, **{"prompts": PROMPTS} | settings)
    expect_failure("loaded", draw)


@pytest.mark.parametrize(
    "verifier", [lambda text: text.startswith("a"), re.compile("a+").fullmatch, lambda text: True]
)
def test_a_function_of_text_is_rejected_as_a_factory_of_verifiers(verifier):
    expect_error("TextVerifier", draw_one, sampler=MaskedDecoding(), verifier=verifier)
