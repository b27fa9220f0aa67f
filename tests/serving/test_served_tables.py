"""Requests with the sampler exact, which share tables unless they have a seed."""

import math
from itertools import count

import openai
import pytest

from models.tiny_pretrained import tiny_model, tiny_tokenizer
from serving.loopback import serving
from trialogue.models.hub.pretrained import PretrainedOracle
from trialogue.samplers.prefix.rejection_table import REJECTED, Child, RejectionTable
from trialogue.serving import body
from trialogue.serving.tables import TableCache

RULE = {"regex": "[a-c]{1,3}"}
NAMED = "def short(text):\n    return len(text) < 3\n\ndef broken(text):\n    assert len(text) < 3\n    return True\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    rules = tmp_path_factory.mktemp("rules") / "rules.py"
    rules.write_text(NAMED, encoding="utf-8")
    named = tuple(f"{name}=python:{rules}:{name}" for name in ("short", "broken"))
    oracle = PretrainedOracle(tiny_model().double(), tiny_tokenizer(), name="tiny")
    with serving(oracle, context=64, rule=named) as server:
        yield server


@pytest.fixture
def cache(server, monkeypatch):
    """Return an empty cache, which the server uses, with fixed seeds of requests that have none."""
    seeds = count()
    monkeypatch.setattr(body.secrets, "randbits", lambda _: next(seeds))
    server.worker.tables = TableCache(1 << 18, lambda _: None)
    return server.worker.tables


@pytest.fixture
def ask(server, cache):
    """Return a function that sends a request and returns its number of model calls and its texts."""

    def ask(prompt="the cat", rule=RULE, sampler="exact", max_tokens=5, **settings):
        response = client.completions.create(
            model="tiny",
            prompt=prompt,
            max_tokens=max_tokens,
            extra_body={"rule": rule, "sampler": sampler},
            **settings,
        )
        assert None not in response.trialogue["sampler"].values()
        assert (response.trialogue["seed"] is None) == (sampler == "exact" and "seed" not in settings)
        return response.trialogue["queries"], [choice.text for choice in response.choices]

    with server.client() as client:
        yield ask


def test_later_requests_need_fewer_calls(ask, cache):
    first, _ = ask(n=8)
    later = [ask(n=8)[0] for _ in range(3)]
    assert first > 2 * max(later)
    assert len(cache) == 1


def test_requests_with_a_seed_neither_read_nor_write_tables(ask, cache):
    before = ask(seed=3, n=4)
    assert len(cache) == 0
    ask(n=8)
    assert ask(seed=3, n=4) == before


@pytest.mark.parametrize(
    "other",
    [
        {"prompt": "a list"},
        {"rule": {"regex": "[a-c]{1,4}"}},
        {"temperature": 0.9},
        {"max_tokens": 4},
        {"stop": "d"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_requests_with_other_settings_share_nothing(other, ask, cache):
    ask()
    ask(**other)
    assert len(cache) == 2


def test_concurrent_samples_merge_their_tables(ask, cache, monkeypatch):
    starts, ends = [], []
    table, merge = cache.table, cache.merge
    monkeypatch.setattr(cache, "table", lambda key: starts.append(table(key)) or starts[-1])
    monkeypatch.setattr(cache, "merge", lambda key, end: ends.append(end) or merge(key, end))
    ask(n=4)
    assert starts[:4] == [None] * 4
    [entry] = cache._entries.values()
    assert all(end.children.keys() <= entry.table.children.keys() for end in ends)
    assert len(entry.table) == entry.num_prefixes > max(map(len, ends))


def test_a_verifier_that_raises_leaves_no_table(ask, cache):
    ask(rule="short")
    assert len(cache) == 1
    ask(rule="broken", n=4)
    assert len(cache) == 1


def test_wrong_options_have_one_message(ask):
    for sampler, message in (
        ({"name": "exact", "share": 0}, "sampler.share=0: use at least 1"),
        ({"name": "exact", "shares": 2}, "sampler.shares=2: use an option of exact: max_attempts, share"),
        ("exakt", "sampler='exakt': use a name"),
    ):
        with pytest.raises(openai.BadRequestError) as error:
            ask(sampler=sampler)
        assert message in error.value.message
    with pytest.raises(openai.BadRequestError, match="this sampler needs a verifier"):
        ask(rule=None)


def wide(number):
    """Return a table of `number` prefixes."""
    children = {token: Child(math.log(1 / 256), REJECTED) for token in range(number - 1)}
    return RejectionTable(math.log(0.5), children)


def test_the_number_of_prefixes_is_bounded():
    messages: list[str] = []
    cache = TableCache(100, messages.append)
    for key in (b"a", b"b", b"c"):
        cache.merge(key, wide(40))
        assert cache.num_prefixes == sum(len(one.table) for one in cache._entries.values()) <= 100
    assert list(cache._entries) == [b"b", b"c"]
    assert len(messages) == 1
    assert "--table-prefixes 100" in messages[0]
    assert cache.table(b"b") == wide(40)
    cache.merge(b"d", wide(10))
    cache.merge(b"e", wide(15))
    # The table that was used last remains.
    assert list(cache._entries) == [b"b", b"d", b"e"]
    # A table that alone exceeds the bound is not stored, and does not replace a smaller one.
    cache.merge(b"b", wide(101))
    assert cache.table(b"b") == wide(40)
    assert len(messages) == 1
