"""Generation configs in `model.generate(custom_generate=...)`: the results equal those of transformers."""

import copy
import math
import pickle
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import (
    LogitsProcessor,
    LogitsProcessorList,
    MaxLengthCriteria,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    StoppingCriteria,
    StoppingCriteriaList,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
    pipeline,
)

from generation.generate_calls import MODEL, PROMPTS, Reader, draw, inputs
from models.tiny_pretrained import tiny_model, tiny_tokenizer
from trialogue.errors import InputError
from trialogue.generation.custom_generate import RejectedSamplesError, call, decoding, oracles, processors
from trialogue.generation.custom_generate import rejected as rejections
from trialogue.models.hub.pretrained import PretrainedOracle
from trialogue.models.tokenization import Tokenization
from trialogue.samplers import Ancestral, MaskedDecoding, Rejection, WeightedRejection
from trialogue.verifiers import FunctionVerifier, GrammarVerifier

LETTERS = re.compile(rb"[a-e ]*")


def letters(tokenization: Tokenization) -> GrammarVerifier:
    return GrammarVerifier.regex("[a-e ]*", tokenization)


class Shifted(LogitsProcessor):
    """A processor that favours a token determined by the last token and the length."""

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        for row, tokens in enumerate(input_ids.tolist()):
            scores[row, (7 * tokens[-1] + 3 * len(tokens)) % scores.shape[1]] += 4.0
        return scores


SHIFTED = LogitsProcessorList([Shifted()])
OF_TOKENS: dict[str, dict[str, Any]] = {
    "repetition": {"repetition_penalty": 1.4},
    "n-grams": {"no_repeat_ngram_size": 2},
    "bad words": {"bad_words_ids": [[15], [182, 182]]},
    "biases": {"sequence_bias": [[[12], 6.0], [[40, 41], -3.0]]},
    "suppressed": {"suppress_tokens": [15, 131, 210]},
    "custom": {"logits_processor": SHIFTED},
    "all": {
        "repetition_penalty": 1.2,
        "no_repeat_ngram_size": 3,
        "bad_words_ids": [[15]],
        "suppress_tokens": [7],
        "logits_processor": SHIFTED,
    },
}
OF_LENGTHS: dict[str, dict[str, Any]] = {
    "new tokens": {"min_new_tokens": 25, "eos_token_id": 210},
    "least length": {"min_length": 30, "eos_token_id": 210},
    "a forced end": {"forced_eos_token_id": 2},
    "a decaying penalty": {"exponential_decay_length_penalty": (3, 1.8)},
    "a beginning": {"begin_suppress_tokens": list(range(3, 150))},
}


@pytest.mark.parametrize("case", OF_TOKENS)
def test_greedy_decoding_equals_transformers_on_each_prompt(case):
    output = {"return_dict_in_generate": True, "output_scores": True}
    settings = {"max_new_tokens": 30, "do_sample": False, **output, **OF_TOKENS[case]}
    found = draw(**settings)
    plain = MODEL.generate(**inputs(PROMPTS), max_new_tokens=30, do_sample=False)
    assert not torch.equal(found.sequences, plain)
    width = inputs(PROMPTS)["input_ids"].shape[1]
    for row, prompt in enumerate(PROMPTS):
        single_input = inputs([prompt])
        expected = MODEL.generate(**single_input, **settings)
        tokens = expected.sequences[0, single_input["input_ids"].shape[1] :].tolist()
        completion = found.sequences[row, width:].tolist()
        assert completion[: len(tokens)] == tokens
        assert set(completion[len(tokens) :]) <= {0}
        log_probs = torch.cat(expected.scores).log_softmax(-1)
        scores = torch.stack([step[row] for step in found.scores[: len(tokens)]])
        torch.testing.assert_close(scores, log_probs, rtol=0, atol=1e-4)


@pytest.mark.parametrize("case", OF_LENGTHS)
def test_greedy_decoding_counts_tokens_like_transformers_on_a_batch(case):
    prompts = PROMPTS[::2]
    settings = {"max_new_tokens": 40, "do_sample": False, **OF_LENGTHS[case]}
    expected = MODEL.generate(**inputs(prompts), **settings)
    assert torch.equal(draw(prompts, **settings), expected)
    plain = {
        name: settings[name] for name in settings.keys() & {"max_new_tokens", "do_sample", "eos_token_id"}
    }
    assert not torch.equal(expected, MODEL.generate(**inputs(prompts), **plain))


SAMPLED: dict[str, Any] = {
    "repetition_penalty": 1.3,
    "temperature": 0.7,
    "top_k": 12,
    "top_p": 0.97,
    "min_p": 0.2,
}


def expected_scores(prompt: list[int], completion: list[int], mask: Callable[[Tensor], Tensor]) -> Tensor:
    """Return scores (steps, vocab) computed with the processors of transformers and with `mask`."""
    tokens = torch.tensor([[*prompt, *completion]])
    logits = MODEL(tokens).logits[0].detach()
    scores = []
    for place in range(len(completion)):
        prefix = tokens[:, : len(prompt) + place]
        row = logits[None, prefix.shape[1] - 1]
        row = mask(RepetitionPenaltyLogitsProcessor(SAMPLED["repetition_penalty"])(prefix, row))
        for warper in (
            TemperatureLogitsWarper(SAMPLED["temperature"]),
            TopKLogitsWarper(SAMPLED["top_k"]),
            TopPLogitsWarper(SAMPLED["top_p"]),
            MinPLogitsWarper(SAMPLED["min_p"]),
        ):
            row = warper(prefix, row)
        scores.append(row[0].log_softmax(-1))
    return torch.stack(scores)


def by_letters(scores: Tensor) -> Tensor:
    """Return `scores` (1, vocab) with -inf for all tokens except letters and the end of sequence."""
    tokenization = Tokenization(tiny_tokenizer())
    spelled = [tokenization.bytes([token]) for token in range(scores.shape[1])]
    allowed = [bool(text and LETTERS.fullmatch(text)) or token == 2 for token, text in enumerate(spelled)]
    return scores.masked_fill(~torch.tensor(allowed), -math.inf)


@pytest.mark.parametrize(
    ("options", "mask"),
    [({}, lambda scores: scores), ({"sampler": MaskedDecoding(), "verifier": letters}, by_letters)],
    ids=["ancestral", "mask"],
)
def test_scores_equal_those_of_transformers_with_the_mask(options, mask):
    output = draw(
        **options,
        **SAMPLED,
        num_return_sequences=3,
        return_dict_in_generate=True,
        output_scores=True,
        output_logits=True,
    )
    samples, width = output.samples, inputs(PROMPTS)["input_ids"].shape[1]
    assert len(output.scores) == len(output.logits) == output.sequences.shape[1] - width
    for row, (sequence, start) in enumerate(
        zip(samples.sequences(), samples.prompt_lengths.tolist(), strict=True)
    ):
        prompt, completion = list(sequence[:start]), list(sequence[start:])
        found = torch.stack([scores[row] for scores in output.scores])
        expected = expected_scores(prompt, completion, mask)
        assert torch.allclose(found[: len(completion)].exp(), expected.exp(), atol=1e-4)
        assert bool((found[range(len(completion)), completion] > -math.inf).all())
        assert found[len(completion) :, 0].tolist() == [0.0] * (len(found) - len(completion))
        logits = torch.stack([step[row] for step in output.logits])[: len(completion)]
        expected_logits = MODEL(torch.tensor([sequence])).logits[0, start - 1 : -1].detach()
        assert torch.allclose(logits, expected_logits, atol=1e-3)
        log_prob = expected_logits.double().log_softmax(-1).gather(1, torch.tensor(completion)[:, None]).sum()
        assert float(samples.log_prob[row]) == pytest.approx(float(log_prob), abs=1e-2)


def test_scores_without_processors_are_detected(monkeypatch):
    original = processors.split_processors
    monkeypatch.setattr(call, "split_processors", lambda *a, **b: ([], original(*a, **b)[1]))
    with pytest.raises(AssertionError):
        test_scores_equal_those_of_transformers_with_the_mask({}, lambda scores: scores)


def no_e(tokens: tuple[int, ...]) -> bool:
    return b"e" not in Tokenization(tiny_tokenizer()).bytes(tokens)


@pytest.mark.parametrize("drawing", [{"do_sample": False}, {"top_k": 9}], ids=["greedy", "sampled"])
@pytest.mark.parametrize(
    "rule",
    [{}, {"sampler": MaskedDecoding(), "verifier": FunctionVerifier(no_e, scope="completion")}],
    ids=["ancestral", "function"],
)
def test_samples_do_not_depend_on_the_returned_outputs(rule, drawing):
    settings = {**rule, **drawing, "repetition_penalty": 1.2, "return_dict_in_generate": True}
    plain = draw(**settings)
    with_outputs = draw(**settings, output_scores=True, output_logits=True)
    assert torch.equal(with_outputs.sequences, plain.sequences)
    for name in ("tokens", "lengths", "log_prob", "log_weight", "accepted"):
        assert np.array_equal(getattr(with_outputs.samples, name), getattr(plain.samples, name)), name
    for name in ("queries", "verifier_calls"):
        assert getattr(with_outputs.samples.total, name) == getattr(plain.samples.total, name)
    assert (plain.get("scores"), plain.get("logits")) == (None, None)
    width = inputs(PROMPTS)["input_ids"].shape[1]
    if drawing == {"do_sample": False}:
        for step, scores in enumerate(with_outputs.scores):
            assert torch.equal(scores.argmax(1), with_outputs.sequences[:, width + step])


RULE = r"(Paris|Rome|Madrid) in (19|20)[0-9]{2}"


def test_a_mask_after_the_truncation_fails_with_a_reason():
    rule = {"verifier": lambda tokenization: GrammarVerifier.regex(RULE, tokenization)}
    with pytest.raises(RejectedSamplesError, match="no token allowed among those that temperature"):
        draw(sampler=MaskedDecoding(mask_first=False), **rule, temperature=0.6, top_p=0.9)


def test_rejected_samples_raise_or_warn():
    rule = {"sampler": Ancestral(), "verifier": letters, "num_return_sequences": 3}
    with pytest.raises(RejectedSamplesError) as caught:
        draw(**rule)
    reader = Reader()
    with pytest.raises(RejectedSamplesError):
        draw(PROMPTS[:1], streamer=reader, verifier=letters)
    assert reader.ended == 1
    samples = caught.value.samples
    rejected = int((~samples.accepted).sum())
    assert str(caught.value).startswith(f"{rejected} of 9 samples are not accepted: ")
    assert "\n" not in str(caught.value)
    assert "cut at max_new_tokens=12: rejected by the verifier" in str(caught.value)
    with pytest.warns(UserWarning, match=f"{rejected} of 9 samples are not accepted") as warned:
        sequences = draw(rejected="warn", **rule)
    assert len(warned) == 1
    assert torch.equal(sequences, caught.value.sequences)
    assert torch.equal(draw(rejected="keep", **rule), sequences)
    assert draw(num_return_sequences=2).shape[0] == 6


@pytest.mark.parametrize(
    ("tokens", "start", "reason"),
    [
        ([5, 6, 0], 1, "eos"),
        ([5, 6, 6, 0], 1, "eos"),
        ([5, 0], 2, "stop"),  # the end of the prompt
        ([5, 6, 6, 6], 1, "max_new_tokens"),
        ([5] * 8, 6, "context"),
        ([5, 6], 1, "stop"),
    ],
)
def test_the_end_of_a_rejected_sample_is_explained(tokens: list[int], start: int, reason: str):
    lengths, starts = torch.tensor([len(tokens)]), torch.tensor([start])
    samples = SimpleNamespace(tokens=torch.tensor([tokens]), lengths=lengths, prompt_lengths=starts)
    assert rejections._end_reason(samples, 0, 3, SimpleNamespace(eos=0, max_length=8)) == reason


def test_an_exhausted_budget_is_a_reason():
    with pytest.raises(RejectedSamplesError, match="stopped by max_queries"):
        draw(["a"], sampler=Rejection(), verifier=lambda _: GrammarVerifier.regex("zzzz", _), max_queries=30)


def test_pipelines_follow_the_policy_for_rejected_samples():
    pipe = pipeline("text-generation", model=MODEL, tokenizer=tiny_tokenizer())

    def written(**options: Any) -> list[str]:
        custom = decoding(tokenizer=tiny_tokenizer(), seed=0, verifier=letters, **options)
        found = pipe("a cat", custom_generate=custom, max_new_tokens=8, return_full_text=False)
        return [one["generated_text"] for one in found]

    assert all(re.fullmatch("[a-e ]*", text) for text in written(sampler=MaskedDecoding()))
    with pytest.raises(RejectedSamplesError):
        written()
    with pytest.warns(UserWarning, match="1 of 1 samples are not accepted"):
        assert not re.fullmatch("[a-e ]*", written(rejected="warn")[0])


@pytest.mark.parametrize("given", [{"tokenizer": tiny_tokenizer()}, {}], ids=["tokenizer", "ours"])
def test_stop_strings_of_the_call_are_used(given):
    settings = {"max_new_tokens": 40, "do_sample": False, "stop_strings": ["8", "\x13"]}
    expected = MODEL.generate(**inputs(PROMPTS), **settings, tokenizer=tiny_tokenizer())
    found = draw(**settings, **given)
    assert torch.equal(found, expected)
    assert not torch.equal(found, draw(max_new_tokens=40, do_sample=False))


class Ending(StoppingCriteria):
    """A criterion that stops a row whose tokens sum to a multiple of five. `seen` lists the given rows."""

    def __init__(self) -> None:
        self.seen: list[list[int]] = []

    def __call__(self, input_ids: Tensor, scores: Any, **others: Any) -> Tensor:
        assert scores is None
        self.seen += input_ids.tolist()
        return input_ids.sum(1) % 5 == 0


def test_custom_criteria_and_stop_strings_end_rows():
    ending = Ending()
    output = draw(
        stopping_criteria=StoppingCriteriaList([ending]),
        stop_strings=["e"],
        stop="1",
        num_return_sequences=6,
        max_new_tokens=40,
        return_dict_in_generate=True,
    )
    tokenization, samples = Tokenization(tiny_tokenizer()), output.samples
    # A criterion receives entire prompts without padding.
    prompts = [tokenization.encode(prompt) for prompt in PROMPTS]
    assert all(any(row[: len(one)] == one for one in prompts) for row in ending.seen)
    reasons = set()
    for row, start in zip(samples.sequences(), samples.prompt_lengths.tolist(), strict=True):
        for length in range(start + 1, len(row) + 1):
            text = tokenization.bytes(row[start:length])
            over = {"e": b"e" in text, "1": b"1" in text, "sum": sum(row[:length]) % 5 == 0}
            over |= {"eos": row[length - 1] == 2, "length": length - start == 40}
            assert any(over.values()) == (length == len(row))
        reasons |= {name for name, holds in over.items() if holds}
    assert {"e", "sum"} <= reasons


@pytest.mark.parametrize("lengths", [(5,), (3, 6), (6, 3), (30,)], ids=str)
def test_the_smallest_maximum_length_applies(lengths):
    width = inputs(PROMPTS)["input_ids"].shape[1]
    settings = {"max_new_tokens": 20, "do_sample": False, "eos_token_id": -1}

    def criteria() -> StoppingCriteriaList:
        return StoppingCriteriaList(MaxLengthCriteria(width + length) for length in lengths)

    expected = MODEL.generate(**inputs(PROMPTS), **settings, stopping_criteria=criteria())
    assert expected.shape[1] == width + min(lengths)
    assert torch.equal(draw(**settings, stopping_criteria=criteria()), expected)


def test_errors_in_processors_and_criteria_are_reported_in_one_line():
    class Broken(LogitsProcessor):
        def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
            raise KeyError("no\nsuch token")

    with pytest.raises(InputError, match="logits_processor='Broken': KeyError"):
        draw(logits_processor=LogitsProcessorList([Broken()]))

    class Scored(StoppingCriteria):
        def __call__(self, input_ids: Tensor, scores: Any, **others: Any) -> Tensor:
            return scores[-1] > 0

    with pytest.raises(InputError, match="stopping_criteria='Scored': TypeError"):
        draw(stopping_criteria=StoppingCriteriaList([Scored()]))


def test_a_processor_with_state_is_rejected():
    class Counting(LogitsProcessor):
        calls = 0

        def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
            self.calls += 1
            return scores.index_fill(1, torch.tensor([self.calls]), 50.0)

    with pytest.raises(InputError, match="'Counting': remove its state or use a verifier"):
        draw(logits_processor=LogitsProcessorList([Counting()]))


def test_a_single_prompt_may_have_a_function_of_allowed_tokens():
    allowed = {"prefix_allowed_tokens_fn": lambda row, tokens: [10 + len(tokens), 40 + row]}
    settings = {"do_sample": False, "max_new_tokens": 9, **allowed}
    assert torch.equal(draw(PROMPTS[:1], **settings), MODEL.generate(**inputs(PROMPTS[:1]), **settings))


@pytest.mark.parametrize(
    ("sampler", "live"),
    [(Ancestral(), True), (MaskedDecoding(), True), (WeightedRejection(), True), (Rejection(), False)],
    ids=repr,
)
def test_a_streamer_receives_each_token_when_it_is_sampled(sampler, live):
    reader, distances = Reader(), []

    class Watching(StoppingCriteria):
        def __call__(self, input_ids: Tensor, scores: Any, **others: Any) -> Tensor:
            distances.append(input_ids.shape[1] - len(reader.tokens()))
            return torch.tensor([False])

    rule = {"verifier": letters, "sampler": sampler, "rejected": "keep", "max_queries": 60}
    rows = draw(PROMPTS[:1], streamer=reader, stopping_criteria=StoppingCriteriaList([Watching()]), **rule)
    assert (reader.tokens(), reader.ended) == (rows[0].tolist(), 1)
    assert (set(distances) == {1}) == live


def test_an_oracle_is_built_once_and_the_latest_is_stored_with_its_model(monkeypatch):
    made: list[Any] = []

    def build_and_count(*arguments: Any, **settings: Any) -> PretrainedOracle:
        made.append(arguments)
        return PretrainedOracle(*arguments, **settings)

    monkeypatch.setattr(oracles, "PretrainedOracle", build_and_count)
    model = tiny_model(5)

    def width(**settings: Any) -> int:
        custom = decoding(tokenizer=tiny_tokenizer(), seed=1)
        rows = model.generate(
            **inputs(PROMPTS), custom_generate=custom, max_new_tokens=30, do_sample=True, **settings
        )
        return int(rows.shape[1])

    long = width(eos_token_id=-1)
    assert width(eos_token_id=list(range(3, 250))) < long
    assert width(eos_token_id=-1) == long
    assert len(made) == 1
    model.to(torch.float64)
    width()
    assert len(made) == 2
    model.to(torch.float32)
    width()
    assert len(made) == 3
    assert len(vars(model)[oracles._ATTRIBUTE]) == 1
    other = copy.deepcopy(model)
    assert not vars(other)[oracles._ATTRIBUTE]
    assert not pickle.loads(pickle.dumps(vars(model)[oracles._ATTRIBUTE]))
