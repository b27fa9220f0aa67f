"""Grammars compared with languages that are enumerated in plain Python, on every prefix and every child."""

import re
import threading
from unittest.mock import Mock

import pytest
import torch

import batches
from refusals import expect_error
from samplers.small_languages import JSON, LETTERS, FiniteLanguage, Language, matching, tokenization
from trialogue.data.table import Table
from trialogue.errors import InputError
from trialogue.samplers import MaskedDecoding, generate
from trialogue.samplers.prefix.batch import Batch
from trialogue.testing import check_verifier
from trialogue.verifiers import GrammarVerifier, Product
from trialogue.verifiers.languages import closing_tokens, language_verifier

LIMIT = 5


def regex(pattern: str, reach: int = 2) -> Language:
    return Language(pattern, lambda t: GrammarVerifier.regex(pattern, t), matching(pattern), reach=reach)


def finite(name: str, build, texts, pieces=LETTERS) -> Language:
    return FiniteLanguage(name, build, texts.__contains__, pieces=pieces, texts=texts)


def schema(name: str, schema: dict, texts) -> Language:
    return finite(name, lambda t: GrammarVerifier.json_schema(schema, t), texts, JSON)


def validated(name: str, schema: dict, grammar, valid) -> Language:
    """Return a schema whose grammar accepts the texts `grammar`, of which validation accepts the texts `valid`."""

    def build(tokens, kind=GrammarVerifier):
        return kind.json_schema(schema, tokens)

    return FiniteLanguage(name, build, valid.__contains__, JSON, texts=grammar)


FORCED = finite("abcab", lambda t: GrammarVerifier.regex("abcab", t), ("abcab",))
VALIDATED = [
    validated(
        "all but 12", {"enum": [1, 12, 21, 2], "not": {"const": 12}}, ("1", "12", "21", "2"), ("1", "21", "2")
    ),
    validated(
        "one of two",
        {"oneOf": [{"enum": [1, 2, True]}, {"enum": [12, 2, True]}]},
        ("1", "2", "12", "true"),
        ("1", "12"),
    ),
    validated(
        "a look-ahead",
        {"enum": ["a", "aa", "a1"], "pattern": "^(?!aa)"},
        ('"a"', '"aa"', '"a1"'),
        ('"a"', '"a1"'),
    ),
    validated(
        "a requires aa",
        {
            "type": "object",
            "properties": {"a": {"const": 1}, "aa": {"const": 2}},
            "additionalProperties": False,
            "dependentRequired": {"a": ["aa"]},
        },
        ("{}", '{"a":1}', '{"aa":2}', '{"a":1,"aa":2}'),
        ("{}", '{"aa":2}', '{"a":1,"aa":2}'),
    ),
]
LANGUAGES = [
    regex("(ab|c)*a"),
    regex("a{2,3}b?c", reach=3),
    regex("ab?|b[^a]+é", reach=3),
    regex("(é|ac)*"),
    regex(".*"),
    regex("a?"),
    FORCED,
    finite(
        "balanced",
        lambda t: GrammarVerifier.lark('start: "a" start "b" | "c"', t),
        tuple("a" * depth + "c" + "b" * depth for depth in range(2 * LIMIT + 1)),
    ),
    schema("choice", {"enum": [1, 12, 21, True]}, ["1", "12", "21", "true"]),
    schema("range", {"type": "integer", "minimum": 11, "maximum": 21}, [str(n) for n in range(11, 22)]),
    schema(
        "object",
        {
            "type": "object",
            "properties": {"a": {"enum": [1, True, "a"]}, "aa": {"const": 2}},
            "required": ["a"],
            "additionalProperties": False,
        },
        ['{"a":1}', '{"a":true}', '{"a":"a"}', '{"a":1,"aa":2}', '{"a":true,"aa":2}', '{"a":"a","aa":2}'],
    ),
    *VALIDATED,
]


def uniform_oracle(language: Language) -> Table:
    size = language.tokenization.vocab_size
    return Table(lambda prefix: [1.0] * size, size, eos=len(language.pieces))


def batch_of(language: Language, sequences, limit: int = LIMIT, prompt=()) -> Batch:
    """Return a batch with the completions `sequences`."""
    rows = [(*prompt, *sequence) for sequence in sequences]
    return batches.batch_of(uniform_oracle(language), rows, limit + len(prompt), len(prompt))


def prefixes(language: Language, limit: int = LIMIT) -> list[tuple[int, ...]]:
    """Return all incomplete prefixes of at most two tokens, and the longer ones with viable prefixes."""
    found, frontier = [()], [()]
    for size in range(1, limit):
        frontier = [(*prefix, token) for prefix in frontier for token in range(len(language.pieces))]
        found += frontier
        if size > 1:
            frontier = [prefix for prefix in frontier if language.verdict(prefix, limit)]
    return found


def mistakes(language: Language, limit: int = LIMIT, prompt=()) -> tuple[int, int]:
    """Count the values and the verdicts on children that differ from the enumerated language."""
    vocab = language.tokenization.vocab_size
    verifier = language.build(language.tokenization)
    inner = prefixes(language, limit)
    batch = batch_of(language, inner, limit, prompt)
    rows = torch.arange(len(inner))
    verdicts = torch.tensor(
        [[language.verdict((*prefix, token), limit) for token in range(vocab)] for prefix in inner]
    )
    # A token after a rejected token is rejected.
    verdicts &= torch.tensor([language.verdict(prefix, limit) for prefix in inner])[:, None]
    children = verifier.children(batch, rows) > 0
    leaves = batch.peek(torch.arange(vocab).repeat(len(inner)), rows.repeat_interleave(vocab))
    values = verifier.values(leaves, torch.arange(len(leaves.lengths))).view(-1, vocab) > 0
    roots = verifier.values(batch, rows) > 0
    expected = torch.tensor([language.verdict(prefix, limit) for prefix in inner])
    return int((values != verdicts).sum() + (roots != expected).sum()), int((children != verdicts).sum())


@pytest.mark.parametrize("language", LANGUAGES, ids=str)
def test_verdicts_equal_those_of_the_enumerated_language(language):
    assert mistakes(language) == (0, 0)


def test_a_completion_after_a_prompt_may_be_truncated_at_the_limit():
    assert mistakes(LANGUAGES[1], limit=4, prompt=(1, 0)) == (0, 0)
    for language in VALIDATED:
        for limit in (2, 4) if language.texts[0] != "{}" else ():
            assert mistakes(language, limit) == (0, 0)


def test_an_end_token_that_does_not_end_the_sequence_is_rejected():
    """The oracle has no end-of-sequence token, but the tokenizer has one."""
    tokens = tokenization(LETTERS)
    verifier = GrammarVerifier.regex("[abc]*", tokens)
    oracle = Table(lambda prefix: [1.0] * tokens.vocab_size, tokens.vocab_size)
    end = len(LETTERS)
    batch = batches.batch_of(oracle, [(0,), (0, end), (0, end, 0)], LIMIT)
    assert verifier.values(batch, torch.arange(3)).tolist() == [True, False, False]
    assert verifier.children(batch, torch.arange(1))[0].nonzero()[:, 0].tolist() == [0, 1, 2, 3, 7]


def test_canonical_tokenizations_alone_miss_texts_of_the_language(monkeypatch):
    monkeypatch.setattr(language_verifier, "NO_FORCING", "\n")
    values, children = mistakes(FORCED)
    assert values == 0
    assert children > 0


def shortlist_mistakes(language: Language) -> int:
    """Count the closing tokens that the shortlist misses, over the prefixes of `language`."""
    verifier = language.build(language.tokenization)
    missed = 0
    for prefix in prefixes(language):
        key = torch.tensor(prefix, dtype=torch.int64).numpy().tobytes()
        state = verifier._prefix(key)
        if state is not None:
            certain, uncertain = verifier._find_closing_tokens(key, verifier._viable_mask(key, state))
            closing_tokens = [
                token
                for token in range(len(language.pieces))
                if language.verdict((*prefix, token, len(language.pieces)), LIMIT + 1)
            ]
            missed += len(set(closing_tokens) - {*certain.tolist(), *uncertain.tolist()})
            missed += len(set(certain.tolist()) - set(closing_tokens))
    return missed


@pytest.mark.parametrize("language", LANGUAGES, ids=str)
def test_the_shortlist_contains_every_closing_token(monkeypatch, language):
    monkeypatch.setattr(language_verifier, "_MIN_MATCHERS", 0)
    assert shortlist_mistakes(language) == 0
    assert mistakes(language, limit=4) == (0, 0)


@pytest.mark.parametrize("language", LANGUAGES[:3], ids=str)
def test_no_closing_token_is_missed_if_the_parser_reaches_a_limit(monkeypatch, language):
    monkeypatch.setattr(language_verifier, "_MIN_MATCHERS", 0)
    monkeypatch.setattr(closing_tokens, "_MAX_ITEMS", 1)
    assert shortlist_mistakes(language) == 0
    assert mistakes(language, limit=4) == (0, 0)


def test_closing_tokens_may_contain_the_end_mark(monkeypatch):
    monkeypatch.setattr(language_verifier, "_MIN_MATCHERS", 0)
    pieces = (b"a", b"\0", b"a\0", b"\0x", b"aaa")
    tokens = tokenization(pieces)
    verifier = GrammarVerifier.regex("[^x]{1,3}", tokens)
    oracle = Table(lambda prefix: [1.0] * tokens.vocab_size, tokens.vocab_size)
    batch = batches.batch_of(oracle, [(0,), (1,)], 2)
    assert verifier.children(batch, torch.arange(2))[:, :5].tolist() == [[True, True, True, False, False]] * 2


@pytest.mark.parametrize("memory", [1, 1000])
@pytest.mark.parametrize("language", [LANGUAGES[1], LANGUAGES[3], LANGUAGES[7]], ids=str)
def test_a_grammar_keeps_the_contract_with_any_memory(monkeypatch, language, memory):
    monkeypatch.setattr(language_verifier, "_MIN_MATCHERS", 3)
    verifier = language.build(language.tokenization)
    verifier._memory = memory
    check_verifier(verifier, uniform_oracle(language), [(), (0,)], max_new_tokens=LIMIT)


def test_masked_decoding_is_the_default_if_every_verifier_has_a_mask():
    tokens = tokenization(LETTERS)
    oracle = Table(lambda prefix: [1.0] * tokens.vocab_size, tokens.vocab_size, eos=8, max_length=3)
    masked = GrammarVerifier.choice(["ab", "c"], tokens)
    for verifier, weighted in (
        (masked, True),
        (Product(masked, lambda prefix: 1.0), True),
        ([masked, None], True),
        ([masked, lambda prefix: 1.0], False),
        (lambda prefix: 1.0, False),
        (None, False),
    ):
        prompts = [[], []] if isinstance(verifier, list) else [[]]
        samples = generate(oracle, prompts, verifier=verifier, num_samples=8)
        assert bool(samples.log_weight.any()) == weighted, verifier
    assert generate(oracle, verifier=masked, num_samples=8).accepted.all()


def test_several_threads_can_share_a_verifier():
    language = LANGUAGES[0]
    verifier = language.build(language.tokenization)
    results: dict[int, object] = {}

    def run(seed):
        oracle = Table(lambda prefix: [1.0] * 11, 11, eos=8, max_length=6)
        sampler = MaskedDecoding()
        results[seed] = generate(
            oracle, sampler=sampler, verifier=verifier, num_samples=40, batch_size=4, seed=seed
        ).sequences()

    threads = [threading.Thread(target=run, args=(seed,)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    together = dict(results)
    for seed in (1, 2):
        run(seed)
        assert results[seed] == together[seed]


UNUSABLE = [
    (lambda t: GrammarVerifier.regex("a(b", t), r"regex='a\(b': unclosed group"),
    (lambda t: GrammarVerifier.regex("(?=a)b", t), "regex='.*': look-around"),
    (lambda t: GrammarVerifier.regex("a[^\\s\\S]", t), "regex='.*': the tokenizer can produce no text"),
    (lambda t: GrammarVerifier.regex("zzz", t), "regex='zzz': the tokenizer can produce no text"),
    (lambda t: GrammarVerifier.regex("ab\\", t), "regex=.*: the trailing backslash escapes nothing"),
    (lambda t: GrammarVerifier.regex("a\\\\\\", t), "regex=.*: the trailing backslash escapes nothing"),
    (
        lambda t: GrammarVerifier.json_schema('{"type": ', t),
        "json-schema='.*': it is not valid JSON: Expecting",
    ),
    (lambda t: GrammarVerifier.json_schema({"a": {1}}, t), "json-schema=.*: it is not valid JSON: .*set"),
    (lambda t: GrammarVerifier.lark("start: foo", t), 'lark=.*: line 1, column 8: unknown name: "foo"$'),
    (lambda t: GrammarVerifier.lark("\nstart: a (", t), r"lark='.*': line 2, column 11: Expected token '\)'"),
    (lambda t: GrammarVerifier.lark("", t), "lark='': no start rule found$"),
    (lambda t: GrammarVerifier.regex("a", t, memory=0), "memory=0"),
    (lambda t: GrammarVerifier.regex(re.compile("a"), t), r"regex=re.compile\('a'\): give a text"),
    (lambda t: GrammarVerifier.lark(None, t), "lark=None: give a text"),
]


def test_invalid_grammars_are_reported_in_one_line():
    tokens = tokenization((*LETTERS, b"1", b"t", b"{"))
    for build, message in UNUSABLE:
        caught = expect_error(f"^{message}", build, tokens)
        assert len(str(caught)) < 250


def test_a_regex_may_end_in_an_escaped_backslash():
    pieces = (b"a", b"\\")
    batch = batch_of(finite("", None, [], pieces), [(0, 1, 2), (0, 2), (0, 1, 1)])
    verifier = GrammarVerifier.regex("a\\\\", tokenization(pieces))
    assert verifier.values(batch, torch.arange(3)).tolist() == [True, False, False]


@pytest.mark.parametrize("sequence", [(0,), (0, 0, 0)])
@pytest.mark.parametrize("silent", [False, True])
def test_failure_of_the_matcher_is_an_error_and_not_a_rejection(monkeypatch, silent, sequence):
    """The matcher has failed. If `silent`, it reports the failure only after a mask was requested."""
    verifier = GrammarVerifier.regex("(a|b)*", tokenization(LETTERS))
    failing = Mock()
    failing.deep_copy.return_value = failing
    failing.try_consume_tokens.return_value = failing.validate_tokens.return_value = 0
    failing.is_accepting.return_value = False
    failing.compute_bitmask.return_value = bytes(2)
    failing.is_error.side_effect = lambda: not silent or failing.compute_bitmask.called
    failing.get_error.return_value = "ParserTooComplex\n<state>"
    monkeypatch.setattr(verifier, "_start", failing)
    verifier._matchers.clear()
    verifier._prefixes.clear()
    with pytest.raises(InputError, match=r"regex='\(a\|b\)\*': ParserTooComplex$"):
        verifier.values(batch_of(LANGUAGES[0], [sequence]), torch.arange(1))
