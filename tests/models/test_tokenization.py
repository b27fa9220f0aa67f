"""Text of prefixes, and bytes of tokens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.tiny_pretrained import tiny_tokenizer
from refusals import expect_error
from trialogue import generate
from trialogue.data import Table
from trialogue.models.tokenization import Tokenization
from trialogue.models.wrappers.spelled import SpelledTokenization
from trialogue.samplers import MaskedDecoding
from trialogue.verifiers import GrammarVerifier

TOKENIZATION = Tokenization(tiny_tokenizer(), 304)


@given(st.text(max_size=12))
def test_bytes_and_text_round_trip(text):
    tokens = TOKENIZATION.encode(text)
    assert TOKENIZATION.bytes(tokens) == text.encode()
    assert TOKENIZATION.text(tokens) == text
    assert TOKENIZATION.text(tokens, final=False) == text


@given(st.lists(st.integers(0, 303), max_size=10))
def test_text_of_prefix_is_prefix_of_text(tokens):
    texts = [TOKENIZATION.text(tokens[:length], final=False) for length in range(len(tokens) + 1)]
    for shorter, longer in zip(texts, [*texts[1:], TOKENIZATION.text(tokens)], strict=True):
        assert longer.startswith(shorter)


def test_incomplete_characters_are_decoded_at_the_end():
    tokens = [
        token
        for byte in "😀".encode()
        for token in range(300)
        if TOKENIZATION.bytes([token]) == bytes([byte])
    ]
    texts = [TOKENIZATION.text(tokens[:length], final=False) for length in range(5)]
    assert texts == ["", "", "", "", "😀"]
    assert TOKENIZATION.text(tokens[:2]) == "\ufffd"


@pytest.mark.parametrize("encode", [TOKENIZATION.encode, TOKENIZATION.chat])
def test_lone_surrogate_is_rejected(encode):
    expect_error(r"text='a\\ud800': remove character 2, which is half of a surrogate pair", encode, "a\ud800")


def test_special_and_padded_tokens_have_no_bytes():
    assert TOKENIZATION.bytes([0, 1, 2, 300, 303]) == b""
    assert (TOKENIZATION.bos, TOKENIZATION.eos) == (1, 2)
    assert TOKENIZATION.encode("") == [1]


def test_tokens_containing_and_ending_with_text():
    with_newline = TOKENIZATION.tokens_containing("\n").tolist()
    assert with_newline
    for token in range(300):
        assert (b"\n" in TOKENIZATION.bytes([token])) == (token in with_newline)
    assert set(TOKENIZATION.tokens_ending_with("\n").tolist()) <= set(with_newline)


def test_slow_tokenizer_is_rejected():
    class Slow:
        is_fast = False

    expect_error(r"tokenizer='Slow': use a model whose tokenizer has a fast version", Tokenization, Slow())


def test_many_spelled_tokens_can_be_constrained():
    letters = [chr(0x4E00 + number) for number in range(600)]
    uniform = Table(lambda prefix: (1 / 600,) * 600, vocab_size=600)
    verifier = GrammarVerifier.choice([letters[3] * 2], SpelledTokenization(letters))
    samples = generate(uniform, sampler=MaskedDecoding(), verifier=verifier, max_new_tokens=2, seed=0)
    assert list(samples.completions()[0]) == [3, 3]
