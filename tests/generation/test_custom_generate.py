"""Samplers behind `model.generate(custom_generate=...)`: what the call says is done, or refused in one line."""

import re
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from transformers import (
    LogitsProcessorList,
    RepetitionPenaltyLogitsProcessor,
    StoppingCriteriaList,
    TemperatureLogitsWarper,
    TextIteratorStreamer,
    TopKLogitsWarper,
    TopPLogitsWarper,
    WatermarkingConfig,
    set_seed,
)
from transformers.generation import ConfidenceCriteria

from models.tiny_pretrained import tiny_model, tiny_tokenizer
from trialogue.errors import InputError
from trialogue.generation.custom_generate import call, decoder, decoding
from trialogue.models.pretrained import PretrainedOracle
from trialogue.models.tokenization import Tokenization
from trialogue.randomness import generator
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

PROMPTS = ["the cat sat on the mat, and", "a"]
MODEL = tiny_model(3)


def inputs(texts: list[str], side: str = "left") -> dict[str, torch.Tensor]:
    encoded = tiny_tokenizer()(texts, padding=True, padding_side=side, return_tensors="pt")
    return {"input_ids": encoded["input_ids"], "attention_mask": encoded["attention_mask"]}


def drawn(prompts: list[str] = PROMPTS, **settings: Any) -> Any:
    ours = {
        name: settings.pop(name)
        for name in ("sampler", "verifier", "seed", "stop", "batch_size", "rejected", "max_queries")
        if name in settings
    }
    custom = decoding(**{"seed": 0, "tokenizer": tiny_tokenizer()} | ours)
    return MODEL.generate(
        **inputs(prompts), custom_generate=custom, **{"max_new_tokens": 12, "do_sample": True} | settings
    )


def test_greedy_ancestral_is_what_transformers_does() -> None:
    wanted = MODEL.generate(**inputs(PROMPTS), max_new_tokens=30, do_sample=False)
    assert torch.equal(drawn(max_new_tokens=30, do_sample=False), wanted)


SETTINGS = {"temperature": 0.7, "top_p": 0.9, "top_k": 20}
MUTANTS: dict[str, tuple[str, Callable[..., Any]]] = {
    "padding is part of the prompt": ("_prompts", lambda ids, mask: ids.tolist()),
    "nothing is truncated": ("split", lambda *_, **__: ([], {})),
    "top-p is forgotten": ("split", lambda *_, **__: ([], {"temperature": 0.7, "top_k": 20})),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_draws_other_samples(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call, *MUTANTS[mutant])
    with pytest.raises(AssertionError):
        test_samples_are_those_of_generate_on_the_truncated_oracle()


def test_samples_are_those_of_generate_on_the_truncated_oracle() -> None:
    output = drawn(**SETTINGS, return_dict_in_generate=True, num_return_sequences=2)
    oracle = PretrainedOracle(tiny_model(3), tiny_tokenizer())
    wanted = generate(truncated(oracle, **SETTINGS), PROMPTS, num_samples=2, max_new_tokens=12)
    assert output.samples.completions() == wanted.completions()
    assert output.samples.prompt.tolist() == wanted.prompt.tolist() == [0, 0, 1, 1]
    width = inputs(PROMPTS)["input_ids"].shape[1]
    for row, completion in zip(output.sequences.tolist(), wanted.completions(), strict=True):
        assert row[width:] == [*completion, *[0] * (len(row) - width - len(completion))]
    assert torch.equal(output.sequences[::2, :width], inputs(PROMPTS)["input_ids"])


@pytest.mark.parametrize("seed", range(3))
def test_truncation_is_that_of_the_processors(seed: int) -> None:
    logits = torch.randn(5, 300, generator=generator(seed, "logits")) * 3
    ours = truncated(PretrainedOracle(MODEL, tiny_tokenizer()), 0.7, 0.8, 30).truncate(logits.log_softmax(-1))
    scores = logits
    for warper in (TemperatureLogitsWarper(0.7), TopKLogitsWarper(30), TopPLogitsWarper(0.8)):
        scores = warper(torch.zeros(5, 1, dtype=torch.long), scores)
    assert torch.allclose(ours.exp(), scores.softmax(-1), atol=1e-6)


def test_a_verifier_made_for_the_tokenizer_is_obeyed() -> None:
    made: list[Tokenization] = []

    def verifier(tokenization: Tokenization) -> GrammarVerifier:
        made.append(tokenization)
        return GrammarVerifier.regex("(cat|dog)+ [0-9]", tokenization)

    output = drawn(
        sampler=MaskedDecoding(),
        verifier=verifier,
        max_new_tokens=60,
        top_k=0,
        return_dict_in_generate=True,
    )
    assert len(made) == 1
    assert bool(output.samples.accepted.all())
    width = inputs(PROMPTS)["input_ids"].shape[1]
    for text in tiny_tokenizer().batch_decode(output.sequences[:, width:], skip_special_tokens=True):
        assert re.fullmatch("(cat|dog)+ [0-9]", text)


def test_the_ends_of_sequence_are_those_of_the_call() -> None:
    width = inputs(PROMPTS)["input_ids"].shape[1]
    ends = sorted(set(drawn(max_new_tokens=4)[:, width:].flatten().tolist()) - {0, 1, 2})[:2]
    for row in drawn(eos_token_id=ends, max_new_tokens=40, num_return_sequences=8)[:, width:].tolist():
        places = [place for place, token in enumerate(row) if token in ends]
        assert all(token == 0 for token in row[places[0] + 1 :]) if places else 0 not in row[:-1]


SPELLED: dict[str, Any] = {
    "sampler": MaskedDecoding(),
    "verifier": lambda tokenization: GrammarVerifier.regex("a*", tokenization),
    "top_k": 0,
    "num_return_sequences": 8,
    "return_dict_in_generate": True,
}


@pytest.mark.parametrize("ends", [-1, [-1], 300, []], ids=str)
def test_ends_of_sequence_beyond_the_vocabulary_mean_never(ends: Any) -> None:
    samples = drawn(eos_token_id=ends, **SPELLED).samples
    assert {len(completion) for completion in samples.completions()} == {12}
    assert bool(samples.accepted.all())
    assert all(re.fullmatch("a*", text) for text in samples.texts())


def test_ends_of_sequence_in_the_vocabulary_are_kept_beside_others() -> None:
    given, meant = (drawn(eos_token_id=ends, **SPELLED).samples for ends in ([2, -1, 300], 2))
    assert given.completions() == meant.completions()
    assert {len(completion) for completion in given.completions()} != {12}


def test_padding_without_a_token_of_its_own_is_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODEL.generation_config, "pad_token_id", None)
    width = inputs(PROMPTS)["input_ids"].shape[1]
    for ends, pad in ((-1, 0), ([-1, 2], 2)):
        stopped = drawn(eos_token_id=ends, stop="e", num_return_sequences=8, max_new_tokens=60)[:, width:]
        assert bool((stopped >= 0).all())
        assert any(row[-1] == pad for row in stopped.tolist())


def test_seeds_come_from_torch_unless_given() -> None:
    def twice(seed: int | None) -> tuple[torch.Tensor, torch.Tensor]:
        set_seed(5)
        return drawn(seed=seed), drawn(seed=seed)

    with torch.random.fork_rng(devices=[]):
        first, second = twice(None)
        again, _ = twice(None)
        fixed, same = twice(7)
    assert torch.equal(first, again)
    assert not torch.equal(first, second)
    assert torch.equal(fixed, same)


def test_samples_of_a_prompt_are_weighed_against_each_other() -> None:
    settings = {"num_return_sequences": 12, "top_k": 0, "return_dict_in_generate": True}
    rule = {
        "sampler": WeightedRejection(),
        "verifier": lambda tokenization: GrammarVerifier.regex("[a-z]{2}", tokenization),
    }
    samples = drawn(**rule, **settings).samples
    sizes = effective_sample_sizes(samples)
    assert sizes.shape == (2,)
    assert all(1 < size < 12 for size in sizes.tolist())
    chosen = resampled(samples, seed=1)
    assert chosen.prompt.tolist() == [0] * 12 + [1] * 12
    assert len(set(chosen.completions()[:12])) < len(set(samples.completions()[:12]))


class Reader:
    """A streamer that notes what it is given."""

    def __init__(self) -> None:
        self.given: list[list[int]] = []
        self.ended = 0

    def put(self, tokens: torch.Tensor) -> None:
        self.given.append(tokens.flatten().tolist())

    def end(self) -> None:
        self.ended += 1


def test_a_streamer_gets_the_completion_and_its_end() -> None:
    reader = Reader()
    sequences = drawn(PROMPTS[:1], streamer=reader)
    width = inputs(PROMPTS[:1])["input_ids"].shape[1]
    assert reader.given[0] == sequences[0, :width].tolist()
    assert reader.given[1:] == [[token] for token in sequences[0, width:].tolist()]
    assert reader.ended == 1
    text = TextIteratorStreamer(tiny_tokenizer(), skip_prompt=True, timeout=1)
    drawn(PROMPTS[:1], streamer=text)
    assert "".join(text) == tiny_tokenizer().decode(sequences[0, width:])


def test_a_streamer_gets_its_end_where_the_call_fails() -> None:
    reader = Reader()
    with pytest.raises(InputError, match="Backtracking needs one"):
        drawn(PROMPTS[:1], streamer=reader, sampler=Backtracking())
    assert reader.ended == 1


def test_stop_strings_and_small_batches() -> None:
    whole = drawn(return_dict_in_generate=True, num_return_sequences=4).samples
    batched = drawn(return_dict_in_generate=True, num_return_sequences=4, batch_size=3).samples
    assert whole.completions() == batched.completions()
    stopped = drawn(return_dict_in_generate=True, stop="e", max_new_tokens=60, num_return_sequences=8).samples
    tokenization = Tokenization(tiny_tokenizer())
    written = [tokenization.bytes(completion) for completion in stopped.completions()]
    assert any(b"e" in content for content in written)
    for completion, content in zip(stopped.completions(), written, strict=True):
        # The stop string is in the last token, or nowhere.
        assert b"e" not in tokenization.bytes(completion[:-1])
        assert b"e" in content or completion[-1] == tokenization.eos or len(completion) == 60


@pytest.mark.parametrize("ready", [True, False])
def test_a_verifier_judges_the_text_before_the_stop_string(ready: bool) -> None:
    def made(tokenization: Tokenization) -> GrammarVerifier:
        return GrammarVerifier.regex("[a-z]{1,3}", tokenization)

    verifier = made(Tokenization(tiny_tokenizer())) if ready else made
    samples = drawn(
        sampler=MaskedDecoding(),
        verifier=verifier,
        stop="e",
        top_k=0,
        max_new_tokens=5,
        num_return_sequences=20,
        return_dict_in_generate=True,
    ).samples
    tokenization = Tokenization(tiny_tokenizer())
    stopped = ["e" in tokenization.text(completion) for completion in samples.completions()]
    assert any(accepted and ended for accepted, ended in zip(samples.accepted.tolist(), stopped, strict=True))
    for text, accepted in zip(samples.texts(), samples.accepted.tolist(), strict=True):
        assert not accepted or re.fullmatch("[a-df-z]{1,3}", text)


@pytest.mark.parametrize("fails", [False, True])
def test_a_model_in_training_is_evaluated_and_left_in_training(fails: bool) -> None:
    model = tiny_model(3, attention_dropout=0.5)

    def called(**settings: Any) -> torch.Tensor:
        custom = decoding(tokenizer=tiny_tokenizer(), seed=0, **settings)
        rows: torch.Tensor = model.generate(
            **inputs(PROMPTS), custom_generate=custom, max_new_tokens=12, do_sample=True
        )
        return rows

    wanted = called()
    model.train()
    model.model.layers[0].eval()
    flags = {name: module.training for name, module in model.named_modules()}
    assert {False, True} == set(flags.values())
    for _ in range(3):
        if fails:
            with pytest.raises(InputError, match="must return a Verifier"):
                called(verifier=lambda _: 1.0)
        else:
            assert torch.equal(called(), wanted)
        assert {name: module.training for name, module in model.named_modules()} == flags


def test_dropout_makes_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder, "evaluating", nullcontext)
    with pytest.raises(AssertionError):
        test_a_model_in_training_is_evaluated_and_left_in_training(False)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "beams": (lambda: drawn(num_beams=2), "generation mode='beam_sample'"),
    "typical sampling": (
        lambda: drawn(typical_p=0.5),
        "'TypicalLogitsWarper': a sampler cuts by temperature",
    ),
    "epsilon": (lambda: drawn(epsilon_cutoff=0.1), "'EpsilonLogitsWarper': a sampler cuts"),
    "eta": (lambda: drawn(eta_cutoff=0.1), "'EtaLogitsWarper': a sampler cuts"),
    "top-h": (lambda: drawn(top_h=0.4), "'TopHLogitsWarper': a sampler cuts"),
    "a watermark": (
        lambda: drawn(watermarking_config=WatermarkingConfig()),
        "'WatermarkLogitsProcessor': it needs state",
    ),
    "guidance": (
        lambda: drawn(guidance_scale=2.0),
        "'UnbatchedClassifierFreeGuidanceLogitsProcessor': it needs",
    ),
    "a penalty of what an encoder reads": (
        lambda: drawn(encoder_repetition_penalty=1.2),
        "'EncoderRepetitionPenaltyLogitsProcessor': it needs state",
    ),
    "allowed tokens of a row of the batch": (
        lambda: drawn(prefix_allowed_tokens_fn=lambda row, tokens: [5, 6]),
        "'PrefixConstrainedLogitsProcessor': of a batch it must know",
    ),
    "counts of prompts that begin with one another": (
        lambda: drawn(["a cat", "a"], min_new_tokens=3),
        "one begins with another",
    ),
    "a penalty that ignores rows otherwise": (
        lambda: drawn(
            logits_processor=LogitsProcessorList(
                [RepetitionPenaltyLogitsProcessor(1.2, prompt_ignore_length=torch.tensor([3, 3]))]
            )
        ),
        "it ignores other tokens than padding",
    ),
    "a criterion that needs scores": (
        lambda: drawn(stopping_criteria=StoppingCriteriaList([ConfidenceCriteria(0.5)])),
        "'ConfidenceCriteria': it needs scores",
    ),
    "attentions": (
        lambda: drawn(output_attentions=True, return_dict_in_generate=True),
        "output_attentions=True",
    ),
    "scores of a sampler that goes back": (
        lambda: drawn(
            output_scores=True,
            return_dict_in_generate=True,
            sampler=TokenwiseRejection(),
            verifier=FunctionVerifier(bool),
        ),
        "output_scores=True: TokenwiseRejection takes tokens back",
    ),
    "scores of a sampler that draws in parts": (
        lambda: drawn(
            output_scores=True,
            return_dict_in_generate=True,
            sampler=WeightedRejection(),
            verifier=FunctionVerifier(bool),
        ),
        "output_scores=True: WeightedRejection takes",
    ),
    "greedy rejection": (
        lambda: drawn(do_sample=False, sampler=Backtracking(), verifier=lambda _: FunctionVerifier(bool)),
        "do_sample=False: Backtracking",
    ),
    "right padding": (
        lambda: MODEL.generate(
            **inputs(PROMPTS, "right"), custom_generate=decoding(tokenizer=tiny_tokenizer()), max_new_tokens=3
        ),
        "pad on the left",
    ),
    "embeddings": (
        lambda: MODEL.generate(
            inputs_embeds=torch.zeros(1, 2, 16),
            custom_generate=decoding(tokenizer=tiny_tokenizer()),
            max_new_tokens=3,
        ),
        "give input_ids",
    ),
    "an assistant": (lambda: drawn(PROMPTS[:1], assistant_model=tiny_model(4)), "assistant_model="),
    "several devices": (lambda: drawn(synced_gpus=True), "synced_gpus='bool': leave it out"),
    "positions of one's own": (
        lambda: drawn(
            PROMPTS[:1], position_ids=7 + torch.arange(inputs(PROMPTS[:1])["input_ids"].shape[1])[None]
        ),
        "position_ids=",
    ),
    "arguments of the model's own": (
        lambda: drawn(PROMPTS[:1], labels=inputs(PROMPTS[:1])["input_ids"]),
        "labels='Tensor': leave it out",
    ),
    "no verifier": (lambda: drawn(sampler=Backtracking()), "Backtracking needs one"),
    "a verifier that is none": (lambda: drawn(verifier=3), "give a Verifier, or a function that makes one"),
    "a policy that is none": (lambda: drawn(rejected="drop"), "rejected='drop'"),
}


@pytest.mark.parametrize("output", ["output_scores", "output_attentions", "output_hidden_states"])
def test_what_is_not_returned_is_ignored(output: str) -> None:
    rule = {"sampler": TokenwiseRejection(), "verifier": FunctionVerifier(lambda tokens: tokens[-1] % 2 == 0)}
    assert torch.equal(drawn(**rule, **{output: True}), drawn(**rule))


@pytest.fixture
def nothing_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def loaded(*arguments: Any, **settings: Any) -> None:
        raise AssertionError("the model was loaded")

    monkeypatch.setattr(decoder, "oracle_of", loaded)


@pytest.mark.usefixtures("nothing_is_loaded")
@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_honoured_is_refused_in_one_line(case: str) -> None:
    call, words = REFUSED[case]
    with pytest.raises(InputError, match=re.escape(words)) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_what_can_be_honoured_is_loaded(nothing_is_loaded: None) -> None:
    with pytest.raises(AssertionError, match="loaded"):
        drawn()


def test_a_function_that_makes_no_verifier_is_refused() -> None:
    with pytest.raises(InputError, match="must return a Verifier"):
        drawn(verifier=lambda _: 1.0)


@pytest.mark.parametrize(
    "verifier", [lambda text: text.startswith("a"), re.compile("a+").fullmatch, lambda text: True]
)
def test_a_function_of_text_is_no_maker_of_verifiers(verifier):
    with pytest.raises(InputError, match="TextVerifier"):
        drawn(PROMPTS[:1], sampler=MaskedDecoding(), verifier=verifier)
