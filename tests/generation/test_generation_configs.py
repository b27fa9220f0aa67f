"""Generation configs behind `model.generate(custom_generate=...)`: what the call says is what transformers does."""

import copy
import math
import pickle
import re
from collections.abc import Callable
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

from generation.generate_calls import MODEL, PROMPTS, Reader, drawn, inputs
from models.tiny_pretrained import tiny_model, tiny_tokenizer
from trialogue.errors import InputError
from trialogue.generation.custom_generate import RejectedSamplesError, call, decoding, oracles, processors
from trialogue.models.pretrained import PretrainedOracle
from trialogue.models.tokenization import Tokenization
from trialogue.samplers import (
    Ancestral,
    MaskedDecoding,
    Rejection,
    WeightedRejection,
)
from trialogue.verifiers import FunctionVerifier, GrammarVerifier

LETTERS = re.compile(rb"[a-e ]*")


def letters(tokenization: Tokenization) -> GrammarVerifier:
    return GrammarVerifier.regex("[a-e ]*", tokenization)


class Shifted(LogitsProcessor):
    """Favours a token that depends on the last two and on how many there are."""

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        for row, tokens in enumerate(input_ids.tolist()):
            scores[row, (7 * tokens[-1] + 3 * len(tokens)) % scores.shape[1]] += 4.0
        return scores


def own() -> LogitsProcessorList:
    return LogitsProcessorList([Shifted()])


OF_TOKENS: dict[str, dict[str, Any]] = {
    "repetition": {"repetition_penalty": 1.4},
    "n-grams": {"no_repeat_ngram_size": 2},
    "bad words": {"bad_words_ids": [[15], [182, 182]]},
    "biases": {"sequence_bias": [[[12], 6.0], [[40, 41], -3.0]]},
    "suppressed": {"suppress_tokens": [15, 131, 210]},
    "the user's own": {"logits_processor": Shifted},
    "all": {
        "repetition_penalty": 1.2,
        "no_repeat_ngram_size": 3,
        "bad_words_ids": [[15]],
        "suppress_tokens": [7],
        "logits_processor": Shifted,
    },
}
OF_LENGTHS: dict[str, dict[str, Any]] = {
    "new tokens": {"min_new_tokens": 25, "eos_token_id": 210},
    "least length": {"min_length": 30, "eos_token_id": 210},
    "a forced end": {"forced_eos_token_id": 2},
    "a decaying penalty": {"exponential_decay_length_penalty": (3, 1.8)},
    "a beginning": {"begin_suppress_tokens": list(range(3, 150))},
}


def settings_of(case: dict[str, Any]) -> dict[str, Any]:
    made = dict(case)
    if "logits_processor" in made:
        made["logits_processor"] = own()
    return {"max_new_tokens": 30, "do_sample": False, **made}


@pytest.mark.parametrize("case", OF_TOKENS)
def test_greedy_is_what_transformers_does_to_each_prompt_alone(case: str) -> None:
    settings = settings_of(OF_TOKENS[case])
    plain = MODEL.generate(**inputs(PROMPTS), max_new_tokens=30, do_sample=False)
    found = drawn(**settings)
    width = inputs(PROMPTS)["input_ids"].shape[1]
    assert not torch.equal(found, plain)
    for place, prompt in enumerate(PROMPTS):
        alone = inputs([prompt])
        wanted = MODEL.generate(**alone, **settings_of(OF_TOKENS[case]))[0, alone["input_ids"].shape[1] :]
        row = found[place, width:]
        assert row[: len(wanted)].tolist() == wanted.tolist()
        assert set(row[len(wanted) :].tolist()) <= {0}


@pytest.mark.parametrize("case", OF_LENGTHS)
def test_greedy_counts_tokens_as_transformers_does_to_the_batch(case: str) -> None:
    prompts = PROMPTS[::2]
    settings = {"max_new_tokens": 40, "do_sample": False, **OF_LENGTHS[case]}
    wanted = MODEL.generate(**inputs(prompts), **settings)
    assert torch.equal(drawn(prompts, **settings), wanted)
    plain = {
        name: value
        for name, value in settings.items()
        if name in ("max_new_tokens", "do_sample", "eos_token_id")
    }
    assert not torch.equal(wanted, MODEL.generate(**inputs(prompts), **plain))


def test_counting_without_padding_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processors._Padding, "padded", lambda padding, prefix: prefix)
    with pytest.raises(AssertionError):
        test_greedy_counts_tokens_as_transformers_does_to_the_batch("a forced end")


SAMPLED: dict[str, Any] = {
    "repetition_penalty": 1.3,
    "temperature": 0.7,
    "top_k": 12,
    "top_p": 0.97,
    "min_p": 0.2,
}


def scores_due(prompt: list[int], completion: list[int], mask: Callable[[Tensor], Tensor]) -> Tensor:
    """Scores (steps, vocab) by transformers' own processors and warpers, `mask` between them."""
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
    """`scores` (1, vocab) of the tokens that are letters and of the end; of others -inf."""
    tokenization = Tokenization(tiny_tokenizer())
    spelled = [tokenization.bytes([token]) for token in range(scores.shape[1])]
    allowed = [bool(text and LETTERS.fullmatch(text)) or token == 2 for token, text in enumerate(spelled)]
    return scores.masked_fill(~torch.tensor(allowed), -math.inf)


@pytest.mark.parametrize(
    ("ours", "mask"),
    [({}, lambda scores: scores), ({"sampler": MaskedDecoding(), "verifier": letters}, by_letters)],
    ids=["ancestral", "mask"],
)
def test_scores_are_those_of_the_processors_the_mask_and_the_warpers(
    ours: dict[str, Any], mask: Callable[[Tensor], Tensor]
) -> None:
    output = drawn(
        **ours,
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
        due = scores_due(prompt, completion, mask)
        assert torch.allclose(found[: len(completion)].exp(), due.exp(), atol=1e-4)
        assert bool((found[range(len(completion)), completion] > -math.inf).all())
        assert found[len(completion) :, 0].tolist() == [0.0] * (len(found) - len(completion))
        logits = torch.stack([step[row] for step in output.logits])[: len(completion)]
        own_law = MODEL(torch.tensor([sequence])).logits[0, start - 1 : -1].detach()
        assert torch.allclose(logits, own_law, atol=1e-3)
        log_prob = own_law.double().log_softmax(-1).gather(1, torch.tensor(completion)[:, None]).sum()
        assert float(samples.log_prob[row]) == pytest.approx(float(log_prob), abs=1e-2)


class LastPenalised(LogitsProcessor):
    """A repetition penalty that sees the last token alone."""

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        penalty = RepetitionPenaltyLogitsProcessor(SAMPLED["repetition_penalty"])
        answer: Tensor = penalty(input_ids[:, -1:], scores)
        return answer


SCORE_MUTANTS: dict[str, Callable[..., Any]] = {
    "processors are left out": lambda before, truncation: ([], truncation),
    "min-p is forgotten": lambda before, truncation: (before, truncation | {"min_p": 0.0}),
    "processors see a part": lambda before, truncation: ([LastPenalised()], truncation),
}


@pytest.mark.parametrize("mutant", SCORE_MUTANTS)
def test_scores_of_mutants_are_told_apart(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = processors.split
    monkeypatch.setattr(call, "split", lambda *a, **b: SCORE_MUTANTS[mutant](*right(*a, **b)))
    with pytest.raises(AssertionError):
        test_scores_are_those_of_the_processors_the_mask_and_the_warpers(
            {"sampler": MaskedDecoding(), "verifier": letters}, by_letters
        )


def no_e(tokens: tuple[int, ...]) -> bool:
    return b"e" not in Tokenization(tiny_tokenizer()).bytes(tokens)


@pytest.mark.parametrize("drawing", [{"do_sample": False}, {"top_k": 9}], ids=["greedy", "sampled"])
@pytest.mark.parametrize(
    "rule",
    [
        {},
        {"sampler": MaskedDecoding(), "verifier": FunctionVerifier(no_e, scope="completion")},
    ],
    ids=["ancestral", "function"],
)
def test_samples_are_the_same_whatever_else_is_returned(
    rule: dict[str, Any], drawing: dict[str, Any]
) -> None:
    settings = {**rule, **drawing, "repetition_penalty": 1.2, "return_dict_in_generate": True}
    plain = drawn(**settings)
    asked = drawn(**settings, output_scores=True, output_logits=True)
    assert torch.equal(asked.sequences, plain.sequences)
    for name in ("tokens", "lengths", "log_prob", "log_weight", "accepted"):
        assert np.array_equal(getattr(asked.samples, name), getattr(plain.samples, name)), name
    for name in ("queries", "verifier_calls"):
        assert getattr(asked.samples.total, name) == getattr(plain.samples.total, name)
    assert (plain.get("scores"), plain.get("logits")) == (None, None)
    width = inputs(PROMPTS)["input_ids"].shape[1]
    if drawing == {"do_sample": False}:
        for step, scores in enumerate(asked.scores):
            assert torch.equal(scores.argmax(1), asked.sequences[:, width + step])


RULE = r"(Paris|Rome|Madrid) in (19|20)[0-9]{2}"


def test_masks_behind_the_cut_fail_and_say_so() -> None:
    rule = {"verifier": lambda tokenization: GrammarVerifier.regex(RULE, tokenization)}
    with pytest.raises(RejectedSamplesError, match="no token allowed among those that temperature"):
        drawn(sampler=MaskedDecoding(mask_first=False), **rule, temperature=0.6, top_p=0.9)


def test_samples_that_are_not_accepted_are_never_returned_without_a_word() -> None:
    rule = {"sampler": Ancestral(), "verifier": letters, "num_return_sequences": 3}
    with pytest.raises(RejectedSamplesError) as caught:
        drawn(**rule)
    reader = Reader()
    with pytest.raises(RejectedSamplesError):
        drawn(PROMPTS[:1], streamer=reader, verifier=letters)
    assert reader.ended == 1
    samples = caught.value.samples
    rejected = int((~samples.accepted).sum())
    assert str(caught.value).startswith(f"{rejected} of 9 samples are not accepted: ")
    assert "\n" not in str(caught.value)
    assert "cut at max_new_tokens=12: rejected by the verifier" in str(caught.value)
    with pytest.warns(UserWarning, match=f"{rejected} of 9 samples are not accepted") as warned:
        sequences = drawn(rejected="warn", **rule)
    assert len(warned) == 1
    assert torch.equal(sequences, caught.value.sequences)
    assert torch.equal(drawn(rejected="keep", **rule), sequences)
    assert drawn(num_return_sequences=2).shape[0] == 6


def test_a_budget_that_is_used_up_is_a_reason() -> None:
    with pytest.raises(RejectedSamplesError, match="stopped by max_queries"):
        drawn(["a"], sampler=Rejection(), verifier=lambda _: GrammarVerifier.regex("zzzz", _), max_queries=30)


def test_pipelines_obey_the_policy() -> None:
    pipe = pipeline("text-generation", model=MODEL, tokenizer=tiny_tokenizer())

    def written(**ours: Any) -> list[str]:
        custom = decoding(tokenizer=tiny_tokenizer(), seed=0, verifier=letters, **ours)
        found = pipe("a cat", custom_generate=custom, max_new_tokens=8, return_full_text=False)
        return [one["generated_text"] for one in found]

    assert all(re.fullmatch("[a-e ]*", text) for text in written(sampler=MaskedDecoding()))
    with pytest.raises(RejectedSamplesError):
        written()
    with pytest.warns(UserWarning, match="1 of 1 samples are not accepted"):
        assert not re.fullmatch("[a-e ]*", written(rejected="warn")[0])


@pytest.mark.parametrize("given", [{"tokenizer": tiny_tokenizer()}, {}], ids=["tokenizer", "ours"])
def test_stop_strings_are_those_of_the_call(given: dict[str, Any]) -> None:
    settings = {"max_new_tokens": 40, "do_sample": False, "stop_strings": ["8", "\x13"]}
    wanted = MODEL.generate(**inputs(PROMPTS), **settings, tokenizer=tiny_tokenizer())
    found = drawn(**settings, **given)
    assert torch.equal(found, wanted)
    assert not torch.equal(found, drawn(max_new_tokens=40, do_sample=False))


class Ending(StoppingCriteria):
    """Stops a row whose tokens add up to a multiple of five; `seen` are the rows that were passed to it."""

    def __init__(self) -> None:
        self.seen: list[list[int]] = []

    def __call__(self, input_ids: Tensor, scores: Any, **others: Any) -> Tensor:
        assert scores is None
        self.seen += input_ids.tolist()
        return input_ids.sum(1) % 5 == 0


def test_criteria_of_the_users_own_end_rows_beside_stop_strings() -> None:
    ending = Ending()
    output = drawn(
        stopping_criteria=StoppingCriteriaList([ending]),
        stop_strings=["e"],
        stop="1",
        num_return_sequences=6,
        max_new_tokens=40,
        return_dict_in_generate=True,
    )
    tokenization, samples = Tokenization(tiny_tokenizer()), output.samples
    # A criterion sees whole prompts, without padding.
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
def test_the_least_of_the_lengths_counts(lengths: tuple[int, ...]) -> None:
    width = inputs(PROMPTS)["input_ids"].shape[1]
    settings = {"max_new_tokens": 20, "do_sample": False, "eos_token_id": -1}

    def criteria() -> StoppingCriteriaList:
        return StoppingCriteriaList(MaxLengthCriteria(width + length) for length in lengths)

    wanted = MODEL.generate(**inputs(PROMPTS), **settings, stopping_criteria=criteria())
    assert wanted.shape[1] == width + min(lengths)
    assert torch.equal(drawn(**settings, stopping_criteria=criteria()), wanted)


def test_what_a_processor_or_a_criterion_raises_is_one_line() -> None:
    class Broken(LogitsProcessor):
        def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
            raise KeyError("no\nsuch token")

    with pytest.raises(InputError, match="logits_processor='Broken': KeyError"):
        drawn(logits_processor=LogitsProcessorList([Broken()]))

    class Scored(StoppingCriteria):
        def __call__(self, input_ids: Tensor, scores: Any, **others: Any) -> Tensor:
            return scores[-1] > 0

    with pytest.raises(InputError, match="stopping_criteria='Scored': TypeError"):
        drawn(stopping_criteria=StoppingCriteriaList([Scored()]))


def test_a_processor_that_keeps_state_is_refused() -> None:
    class Counting(LogitsProcessor):
        calls = 0

        def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
            self.calls += 1
            return scores.index_fill(1, torch.tensor([self.calls]), 50.0)

    with pytest.raises(InputError, match="'Counting': it answers otherwise when it is asked again"):
        drawn(logits_processor=LogitsProcessorList([Counting()]))


def test_one_prompt_may_have_a_function_of_its_allowed_tokens() -> None:
    allowed = {"prefix_allowed_tokens_fn": lambda row, tokens: [10 + len(tokens), 40 + row]}
    settings = {"do_sample": False, "max_new_tokens": 9, **allowed}
    assert torch.equal(drawn(PROMPTS[:1], **settings), MODEL.generate(**inputs(PROMPTS[:1]), **settings))


@pytest.mark.parametrize(
    ("sampler", "live"),
    [
        (Ancestral(), True),
        (MaskedDecoding(), True),
        (WeightedRejection(), True),
        (Rejection(), False),
    ],
    ids=repr,
)
def test_a_streamer_gets_each_token_when_it_is_drawn(sampler: Any, live: bool) -> None:
    reader, behind = Reader(), []

    class Watching(StoppingCriteria):
        def __call__(self, input_ids: Tensor, scores: Any, **others: Any) -> Tensor:
            behind.append(input_ids.shape[1] - len(reader.tokens()))
            return torch.tensor([False])

    rule = {"verifier": letters, "sampler": sampler, "rejected": "keep", "max_queries": 60}
    rows = drawn(PROMPTS[:1], streamer=reader, stopping_criteria=StoppingCriteriaList([Watching()]), **rule)
    assert (reader.tokens(), reader.ended) == (rows[0].tolist(), 1)
    assert (set(behind) == {1}) == live


def test_an_oracle_is_made_once_and_the_latest_stays_with_its_model(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    def counted(*arguments: Any, **settings: Any) -> PretrainedOracle:
        made.append(arguments)
        return PretrainedOracle(*arguments, **settings)

    monkeypatch.setattr(oracles, "PretrainedOracle", counted)
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
    assert len(vars(model)[oracles._PLACE]) == 1
    other = copy.deepcopy(model)
    assert not vars(other)[oracles._PLACE]
    assert not pickle.loads(pickle.dumps(vars(model)[oracles._PLACE]))
