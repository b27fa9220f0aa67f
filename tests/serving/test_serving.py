"""The server, called with the official OpenAI client."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from models.tiny_pretrained import tiny_model, tiny_tokenizer
from serving.loopback import serving
from trialogue import generate, truncated
from trialogue.models.hub.pretrained import PretrainedOracle
from trialogue.samplers import Backtracking, MaskedDecoding, SequentialMonteCarlo
from trialogue.verifiers import GrammarVerifier

USER = [{"role": "user", "content": "the cat"}]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {
                "type": "object",
                "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 9}},
                "required": ["a"],
                "additionalProperties": False,
            },
        },
    }
    for name in ("count", "list")
]
SCHEMA = {"enum": ["yes", "no", {"a": 1}]}


@pytest.fixture(scope="module")
def model():
    """Return the tiny model in double precision, so that rounding does not change samples."""
    return PretrainedOracle(tiny_model().double(), tiny_tokenizer(), name="tiny")


@pytest.fixture(scope="module")
def server(model, tmp_path_factory):
    rules = tmp_path_factory.mktemp("rules") / "rules.py"
    rules.write_text(
        "def short(text):\n    return len(text) <= 3\n\n\ndef broken(text):\n    raise KeyError('no key')\n",
        encoding="utf-8",
    )
    named = (f"short=python:{rules}:short", f"broken=python:{rules}:broken")
    with serving(model, context=128, max_new_tokens=64, rule=named, requests=80) as loopback:
        yield loopback


@pytest.fixture(scope="module")
def client(server):
    with server.client() as client:
        yield client


def complete(client: openai.OpenAI, prompt: Any = "the cat", **settings: Any) -> Any:
    extra = {name: settings.pop(name) for name in EXTRA & settings.keys()}
    return client.completions.create(model="tiny", prompt=prompt, extra_body=extra, **settings)


def chat(client: openai.OpenAI, messages: Any = USER, **settings: Any) -> Any:
    extra = {name: settings.pop(name) for name in EXTRA & settings.keys()}
    settings.setdefault("max_tokens", 24)
    return client.chat.completions.create(model="tiny", messages=messages, extra_body=extra, **settings)


EXTRA = {"rule", "sampler", "top_k", "min_p", "max_queries", "max_steps"}


def test_models_and_health_are_reported(client):
    [model] = client.models.list().data
    assert (model.id, model.owned_by) == ("tiny", "trialogue")
    assert client.models.retrieve("tiny").context == 128


def test_a_completion_equals_the_sample_of_generate(client, model):
    response = complete(
        client, ["the cat", "a list"], n=2, max_tokens=12, temperature=0.8, top_p=0.9, seed=3, logprobs=0
    )
    drawn = generate(
        truncated(model, 0.8, 0.9),
        ["the cat", "a list"],
        num_samples=2,
        max_new_tokens=12,
        seed=3,
        token_log_probs=True,
    )
    assert [choice.text for choice in response.choices] == drawn.texts()
    assert [choice.index for choice in response.choices] == [0, 1, 2, 3]
    for choice, sample in zip(response.choices, drawn, strict=True):
        assert choice.logprobs.token_logprobs == pytest.approx(sample.token_log_probs)
        assert len(choice.logprobs.tokens) == len(sample.tokens)
        assert choice.trialogue["log_prob"] == pytest.approx(sample.log_prob)
        assert choice.trialogue["queries"] == sample.queries
        assert choice.finish_reason == ("stop" if sample.tokens[-1] == model.eos else "length")
    assert response.usage.completion_tokens == sum(len(sample.tokens) for sample in drawn)
    assert response.trialogue["seed"] == 3
    assert response.trialogue["sampler"] == {"name": "ancestral"}


def test_a_random_seed_is_reported(client):
    first = complete(client, max_tokens=8)
    again = complete(client, max_tokens=8, seed=first.trialogue["seed"])
    assert again.choices[0].text == first.choices[0].text


def test_token_ids_and_stop_strings_are_accepted(client, model):
    ids = model.tokenization.encode("the cat")
    text = complete(client, "the cat", max_tokens=12, seed=1).choices[0].text
    assert complete(client, ids, max_tokens=12, seed=1).choices[0].text == text
    first_text = complete(client, [model.tokenization.bos], max_tokens=12, seed=1).choices[0].text
    assert [complete(client, empty, max_tokens=12, seed=1).choices[0].text for empty in ("", [[]])] == [
        first_text
    ] * 2
    stopped = complete(client, [ids], max_tokens=12, seed=1, stop=[text[3:5]]).choices[0]
    assert text.startswith(stopped.text)
    assert text[3:5] not in stopped.text
    assert (stopped.finish_reason, stopped.trialogue["ended"]) == ("stop", "stop")


@pytest.mark.parametrize(
    ("sampler", "expected_sampler"),
    [
        (None, MaskedDecoding()),
        ({"name": "smc", "particles": 3, "proposal": "mask"}, SequentialMonteCarlo(3, proposal="mask")),
        ({"name": "backtracking", "quota": 2, "stride": 2}, Backtracking(2, 2)),
    ],
)
def test_samplers_follow_the_verifier_of_the_request(client, model, sampler, expected_sampler):
    chosen = {} if sampler is None else {"sampler": sampler}
    response = complete(client, max_tokens=8, n=4, seed=5, rule={"regex": "[a-c]{2,9}"}, top_p=0.9, **chosen)
    drawn = generate(
        truncated(model, top_p=0.9),
        ["the cat"],
        sampler=expected_sampler,
        verifier=GrammarVerifier.regex("[a-c]{2,9}", model.tokenization),
        max_new_tokens=8,
        num_samples=4,
        seed=5,
        on_error="reject",
    )
    for choice, sample in zip(response.choices, drawn, strict=True):
        assert choice.text == sample.text
        assert choice.trialogue["accepted"] == sample.accepted
        if sample.accepted and expected_sampler.weighted:
            assert choice.trialogue["log_weight"] == pytest.approx(sample.log_weight)
        assert (choice.finish_reason == "stop") == sample.accepted
        assert (choice.trialogue["reason"] is None) == sample.accepted
    assert response.trialogue["queries"] == drawn.total.queries
    assert response.trialogue["rule"] == [{"regex": "[a-c]{2,9}"}]


class Answer(BaseModel):
    """The structure of a parsed answer."""

    a: bool


def test_responses_follow_a_schema(client):
    schema = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}
    response = chat(client, n=8, response_format=schema, seed=1)
    values = [json.loads(choice.message.content) for choice in response.choices]
    assert all(value in SCHEMA["enum"] for value in values)
    assert all(choice.trialogue["accepted"] for choice in response.choices)
    parsed = client.chat.completions.parse(
        model="tiny", messages=USER, response_format=Answer, max_tokens=24, seed=2
    )
    assert isinstance(parsed.choices[0].message.parsed, Answer)
    cut = chat(client, response_format={"type": "json_object"}, max_tokens=3, seed=2).choices[0]
    assert not cut.trialogue["accepted"] or isinstance(json.loads(cut.message.content), dict)


def test_tools_are_called(client):
    listed = [{"type": "function", "function": {"name": "list"}}]
    for choice, names in (
        ("required", {"count", "list"}),
        (listed[0], {"list"}),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": listed}}, {"list"}),
    ):
        response = chat(client, tools=TOOLS, tool_choice=choice, n=4, max_tokens=60, seed=4)
        for one in response.choices:
            assert one.trialogue["accepted"], one.trialogue["reason"]
            assert (one.finish_reason, one.message.content) == ("tool_calls", None)
            [call] = one.message.tool_calls
            assert call.function.name in names
            assert json.loads(call.function.arguments).keys() == {"a"}
    # A model that need not call a tool returns text. Text in the form of a call is always returned as a call.
    free = chat(client, tools=TOOLS, seed=4).choices[0]
    assert free.message.tool_calls is None
    assert free.message.content
    called = '\\{"name":"count","arguments":\\{"a":7\\}\\}'
    response = chat(client, tools=TOOLS, rule={"regex": called}, max_tokens=60, seed=4).choices[0]
    assert response.message.tool_calls[0].function.arguments == '{"a": 7}'
    none = chat(client, tools=TOOLS, tool_choice="none", rule={"regex": called}, max_tokens=60).choices[0]
    assert none.message.content == '{"name":"count","arguments":{"a":7}}'


def test_tools_can_be_combined_with_a_response_format(client):
    schema = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}
    settings = {"tools": TOOLS, "response_format": schema, "max_tokens": 60, "n": 16, "seed": 1}
    kinds = set()
    for choice in chat(client, **settings).choices:
        assert choice.trialogue["accepted"], choice.trialogue["reason"]
        kinds.add(choice.finish_reason)
        if choice.finish_reason == "stop":
            assert json.loads(choice.message.content) in SCHEMA["enum"]
    assert kinds == {"stop", "tool_calls"}


def joined(stream: Any) -> tuple[dict[int, list[str]], dict[int, Any], list[Any]]:
    """Return the text pieces and the final piece of each choice, and the pieces without a choice."""
    pieces: dict[int, list[str]] = {}
    ended, others = {}, []
    for piece in stream:
        for choice in piece.choices:
            delta = getattr(choice, "delta", None)
            text = choice.text if delta is None else delta.content
            if text:
                pieces.setdefault(choice.index, []).append(text)
            if choice.finish_reason:
                ended[choice.index] = choice
        if not piece.choices:
            others.append(piece)
    return pieces, ended, others


@pytest.mark.parametrize("send", [complete, chat])
def test_streams_contain_the_complete_answer(client, send):
    settings = {"n": 3, "max_tokens": 20, "seed": 6, "temperature": 0.7}
    complete_answer = send(client, **settings)
    pieces, ended, [closing] = joined(
        send(client, stream=True, stream_options={"include_usage": True}, **settings)
    )
    for choice in complete_answer.choices:
        text = choice.text if send is complete else choice.message.content
        assert "".join(pieces[choice.index]) == text
        assert len(pieces[choice.index]) > 1
        assert ended[choice.index].finish_reason == choice.finish_reason
        assert ended[choice.index].trialogue["log_prob"] == pytest.approx(choice.trialogue["log_prob"])
    assert closing.usage == complete_answer.usage
    # Without requested usage, every piece has a choice, because loops over streams read the first one.
    plain = list(send(client, stream=True, **settings))
    assert {piece.choices[0].index for piece in plain} == {0, 1, 2}
    assert plain[-1].choices[0].finish_reason
    assert plain[-1].trialogue["queries"] == complete_answer.trialogue["queries"]
    assert not any(hasattr(piece, "trialogue") for piece in plain[:-1])


def test_backtracked_texts_and_tool_calls_arrive_in_one_piece(client):
    settings = {"rule": {"regex": "[a-c]{2,9}"}, "sampler": {"name": "backtracking", "quota": 2}, "seed": 1}
    pieces, ended, _ = joined(complete(client, stream=True, n=2, max_tokens=6, **settings))
    complete_answer = complete(client, n=2, max_tokens=6, **settings)
    for choice in complete_answer.choices:
        assert pieces.get(choice.index, []) == [choice.text] * bool(choice.text)
        assert ended[choice.index].trialogue["accepted"] == choice.trialogue["accepted"]
    calls = [
        call
        for piece in chat(client, tools=TOOLS, tool_choice="required", stream=True, max_tokens=60, seed=4)
        for choice in piece.choices
        for call in choice.delta.tool_calls or ()
    ]
    assert [call.function.name in ("count", "list") for call in calls] == [True]


def test_a_text_that_is_cut_off_ends_by_length(client):
    # The mask rejects every last token that does not complete the text, so samples fail one token earlier.
    for limit in (1, 2, 5):
        choices = complete(client, rule={"regex": "[a-c]{40}"}, max_tokens=limit, n=3, seed=limit).choices
        assert {choice.finish_reason for choice in choices} == {"length"}
    rejected = complete(client, rule={"regex": "q"}, sampler="ancestral", stop=[*"aeiou"], seed=1).choices[0]
    assert (rejected.trialogue["ended"], rejected.finish_reason) == ("stop", "content_filter")


def test_max_tokens_is_limited_by_the_server_and_the_context(client):
    assert complete(client, max_tokens=10_000, seed=1).usage.completion_tokens == 64
    assert complete(client, "the cat " * 40, max_tokens=10_000, seed=1).usage.total_tokens == 128
    cut = complete(client, "the cat " * 40, max_tokens=10_000, rule={"regex": "[a-c]{90}"}, seed=1).choices[0]
    assert (cut.trialogue["accepted"], cut.finish_reason) == (False, "length")


def test_verifiers_of_the_server_are_selected_by_name(client):
    response = complete(client, rule="short", sampler="rejection", max_tokens=2, n=3, seed=2, max_steps=200)
    assert all(len(choice.text) <= 3 for choice in response.choices if choice.trialogue["accepted"])
    assert any(choice.trialogue["accepted"] for choice in response.choices)
    for (
        choice
    ) in response.choices:  # A text that is cut at two tokens may be short enough, but it is not complete.
        is_cut = choice.trialogue["accepted"] and choice.trialogue["ended"] == "max_new_tokens"
        assert choice.finish_reason == ("length" if is_cut else "stop")
    assert response.trialogue["rule"] == ["short"]
    broken = complete(client, rule="broken", sampler="ancestral", max_tokens=4, seed=2).choices[0]
    assert "no key" in broken.trialogue["reason"]
    assert broken.finish_reason in ("length", "content_filter")


def test_a_verifier_of_the_server_may_judge_complete_texts_only(model, tmp_path):
    (tmp_path / "rules.py").write_text("def long(text):\n    return len(text) >= 15\n", encoding="utf-8")
    named = (f"long=python:{tmp_path}/rules.py:long",)
    for complete_answer in (True, False):
        with serving(model, rule=named, verifier_whole=complete_answer) as server, server.client() as client:
            response = complete(client, rule="long", n=4, max_tokens=20, seed=2)
        # No first token is long enough.
        assert any(choice.trialogue["accepted"] for choice in response.choices) == complete_answer
        assert all(len(choice.text) >= 15 for choice in response.choices if choice.trialogue["accepted"])


def make_request(number: int) -> dict[str, Any]:
    """Return the settings of a request, of six different kinds."""
    settings: dict[str, Any] = {"seed": number, "max_tokens": 4 + number % 5, "n": 1 + number % 3 // 2}
    sort = number % 6
    if sort == 0:
        settings |= {"temperature": 0.5 + number / 64}
    elif sort == 1:
        settings |= {"rule": {"regex": f"[a-{chr(98 + number % 5)}]+"}, "top_p": 0.9}
    elif sort == 2:
        settings |= {"rule": {"json-schema": {"enum": [number, "no"]}}, "max_tokens": 12}
    elif sort == 3:
        settings |= {"rule": {"regex": "[a-c]{1,3}"}, "sampler": {"name": "smc", "particles": 2 + number % 2}}
    elif sort == 4:
        settings |= {"stop": ["e", "a"], "top_k": 40}
    else:
        settings |= {"rule": {"regex": "[a-z ]*"}, "sampler": {"name": "backtracking"}, "temperature": 0.8}
    return settings


def comparable(completion: Any) -> list[tuple[Any, ...]]:
    return [
        (choice.text, choice.finish_reason, choice.trialogue["accepted"], choice.trialogue["log_weight"])
        for choice in completion.choices
    ]


def test_concurrent_requests_have_the_same_responses_as_single_requests(server):
    with server.client() as client:

        def complete_request(number: int) -> list[tuple[Any, ...]]:
            return comparable(complete(client, f"the {number % 7}", **make_request(number)))

        single_responses = [complete_request(number) for number in range(36)]
        with ThreadPoolExecutor(36) as pool:
            together = list(pool.map(complete_request, range(36)))
    assert [[choice[:3] for choice in response] for response in together] == [
        [choice[:3] for choice in response] for response in single_responses
    ]
    for number, response in enumerate(together):
        rule = make_request(number).get("rule", {})
        for text, _, accepted, _ in response:
            if accepted and "regex" in rule:
                assert re.fullmatch(rule["regex"], text)
            if accepted and "json-schema" in rule:
                assert json.loads(text) in rule["json-schema"]["enum"]
    assert server.wait_until_idle()


def test_a_client_that_disconnects_frees_its_rows(server):
    endless = {"rule": {"regex": "zq{40}"}, "sampler": "rejection", "max_steps": 65536, "max_tokens": 60}
    with server.client() as client:
        with pytest.raises(openai.APITimeoutError):
            complete(client.with_options(timeout=0.5), n=8, **endless)
        stream = complete(client, "the", stream=True, max_tokens=60, seed=1)
        next(iter(stream))
        stream.close()
        assert server.wait_until_idle()
        assert complete(client, max_tokens=2).choices[0].text is not None
