"""Log-probabilities of given texts, compared with enumeration and transformers, and reasons of rejections."""

import math

import pytest
import torch

from models.tiny_pretrained import tiny_model, tiny_oracle, tiny_tokenizer
from refusals import calls_without_expected_error
from trialogue import generate, judge, score
from trialogue.data import Table
from trialogue.models.hub.pretrained import PretrainedOracle
from trialogue.models.tokenization import Tokenization
from trialogue.samplers import truncated
from trialogue.verifiers import All, FunctionVerifier, GrammarVerifier, ProbeVerifier

PROMPTS = [(5, 9, 30), (5, 9, 30), (7,), (5, 9, 30), (5, 9, 31)]
COMPLETIONS = [(4, 8, 15), (16,), (23, 42), (), (4, 8, 15, 16, 23)]


def reference(model, prompt, completion):
    """Return the log-probabilities of the tokens of a completion, from one forward pass of transformers."""
    tokens = torch.tensor([[*prompt, *completion]])
    with torch.inference_mode():
        log_probs = model(tokens).logits[0].double().log_softmax(-1)
    places = torch.arange(len(prompt), tokens.shape[1])
    return log_probs[places - 1, tokens[0, places]]


@pytest.mark.parametrize("batch_size", [1, 3, 16])
@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("recompute", [False, True])
def test_scores_are_those_of_transformers(batch_size, plain, recompute, monkeypatch):
    monkeypatch.setattr(PretrainedOracle, "_has_plain_head", lambda self: plain)
    oracle, model = tiny_oracle(recompute=recompute), tiny_model()
    scores = score(oracle, PROMPTS, COMPLETIONS, batch_size=batch_size)
    assert scores.tokens == [list(completion) for completion in COMPLETIONS]
    for prompt, completion, found in zip(PROMPTS, COMPLETIONS, scores.token_log_probs, strict=True):
        torch.testing.assert_close(found, reference(model, prompt, completion), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(
        scores.log_prob, torch.tensor([float(found.sum()) for found in scores.token_log_probs]).double()
    )


def test_a_shared_prompt_is_evaluated_once():
    done = list[int]()
    oracle, passes = tiny_oracle(), list[tuple[int, ...]]()
    hook = oracle.body.register_forward_hook(
        lambda _, arguments, settings, output: passes.append(tuple(settings["input_ids"].shape)),
        with_kwargs=True,
    )
    score(oracle, [range(3, 103)] * 8, [(4, 8, 15)] * 8, progress=done.append)
    hook.remove()
    assert sum(rows * width for rows, width in passes) <= 99 + 8 * 3
    assert sum(done) == 8 * 103


def test_scores_of_samples_are_their_log_probabilities():
    oracle = truncated(tiny_oracle(), temperature=0.7, top_k=9)
    samples = generate(oracle, PROMPTS[:3], num_samples=4, max_new_tokens=6, seed=3)
    prompts = [PROMPTS[place] for place in samples.prompt.tolist()]
    found = score(oracle, prompts, samples.completions())
    torch.testing.assert_close(found.log_prob, samples.log_prob, rtol=1e-5, atol=1e-4)


def test_scores_of_a_table_are_exact():
    table = Table(
        lambda prefix: [0.5, 0.25, 0.25] if len(prefix) % 2 else [0.125, 0.875, 0.0], 3, max_length=4, eos=2
    )
    scores = score(table, [(), (1,)], [(1, 0), (2, 0)])
    assert scores.log_prob.tolist() == pytest.approx([math.log(0.875 / 2), math.log(0.25 / 8)], abs=1e-12)
    assert score(table, [()], [(2,)]).log_prob.tolist() == [-math.inf]
    assert score(table, [], []).log_prob.shape == (0,)


def test_texts_are_tokenized_after_their_prompt():
    oracle = tiny_oracle()
    joined = oracle.tokenization.encode("the cat sat")
    before = oracle.tokenization.encode("the cat")
    assert score(oracle, ["the cat"], [" sat"]).tokens == [joined[len(before) :]]
    alone = oracle.tokenization.tokenizer(" sat", add_special_tokens=False)["input_ids"]
    assert score(oracle, [before], [" sat"]).tokens == [alone]


def test_the_reason_of_a_rejection():
    tokenization = Tokenization(tiny_tokenizer())
    multiple = {"type": "object", "properties": {"a": {"multipleOf": 7}}, "additionalProperties": False}
    schema = GrammarVerifier.json_schema(multiple, tokenization)
    digits = GrammarVerifier.regex("[0-9]{4}", tokenization)
    no_cat = FunctionVerifier(lambda tokens: "cat" not in tokenization.text(tokens), "completion")
    none = FunctionVerifier(lambda tokens: len(tokens) > 2)
    for verifier, text, reason in (
        (schema, '{"a":14}', None),
        (schema, '{"a":15}', "$.a: 15 is not a multiple of 7"),
        (schema, '{"a":', "the text is incomplete: a longer text can be accepted"),
        (digits, "1984", None),
        (digits, "19a4", "rejected at 'a' after '19'"),
        (digits, "x", "rejected at 'x', the first token"),
        (digits, "", "the text is incomplete: a longer text can be accepted"),
        (none, "a", "the empty text is rejected, so every text is"),
    ):
        found = judge(text, verifier, tokenization=tokenization)
        assert (bool(found), found.reason) == (reason is None, reason), text
    whole = FunctionVerifier(lambda tokens: False, "completion", whole=True)
    assert judge("1984", whole, tokenization=tokenization).reason == "the complete text is rejected"
    both = All(digits, whole)
    for text, part in (("198", digits), ("1984", whole)):
        assert judge(text, both, tokenization=tokenization) == judge(text, part, tokenization=tokenization)
    assert judge("a dog", no_cat, tokenization=tokenization, prompt="a cat")
    assert "rejected at" in str(judge("cat", no_cat, tokenization=tokenization).reason)
    tokens = tokenization.encode_completion("1984")
    assert judge([*tokens, tokenization.eos], digits, tokenization=tokenization)


def test_judge_accepts_valid_json_in_any_order_and_spelling():
    tokenization = Tokenization(tiny_tokenizer())
    schema = {
        "properties": {"a": {"type": "integer"}, "b": {"format": "uuid"}},
        "required": ["a"],
        "type": "object",
    }
    verifier = GrammarVerifier.json_schema(schema, tokenization)
    identifier = "123e4567-e89b-12d3-a456-426655440001"
    for text, reason in (
        (f'{{"b":"{identifier}","a":1}}', None),
        ('{"a": 1.0}', None),
        ('{"b":"x","a":1}', "$.b: 'x' is not a 'uuid'"),
        ('{"c":1}', "$: 'a' is a required property"),
        ('{"a":1,"a":1}', "rejected at"),
        ('{"b":1,"a":', "rejected at"),
    ):
        found = judge(text, verifier, tokenization=tokenization)
        assert bool(found) == (reason is None), text
        assert reason is None or (found.reason or "").startswith(reason), text
    tokens = tokenization.encode_completion('{"a": 1}')
    assert judge([*tokens, tokenization.eos], verifier, tokenization=tokenization)
    assert not judge([*tokens[:2], tokenization.eos, *tokens[2:]], verifier, tokenization=tokenization)
    # The text ends at the stop string, after which nothing is judged.
    assert not judge(tokens, verifier.up_to(" "), tokenization=tokenization)


def test_bad_arguments_of_score_and_judge():
    oracle = tiny_oracle()
    probe = ProbeVerifier.__new__(ProbeVerifier)
    probe.layers = (1,)
    assert not calls_without_expected_error(
        [
            (
                "completions=2: give one completion for each of the 1 prompts",
                lambda: score(oracle, ["a"], ["b", "c"]),
            ),
            ("completions='b': give a list", lambda: score(oracle, ["a"], "b")),
            (r"completions\[0\]\[1\]=900", lambda: score(oracle, [(5,)], [(4, 900)])),
            ("at most 256 tokens together", lambda: score(oracle, [(5,)], [[4] * 256])),
            ("batch_size", lambda: score(oracle, ["a"], ["b"], batch_size=0)),
            ("the model has no tokenization", lambda: score(Table(lambda _: [1.0], 1), ["a"], ["b"])),
            ("without hidden states", lambda: judge("a", probe, tokenization=oracle.tokenization)),
        ]
    )
