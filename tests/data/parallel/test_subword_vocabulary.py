from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refusals import calls_without_expected_error
from trialogue.data.parallel import SubwordVocabulary

TEXTS = ["Tom sieht den alten Hund.", "Tom sees the old dog.", "Der alte Hund sieht Tom nicht."] * 3


@pytest.fixture(scope="module")
def vocabulary():
    return SubwordVocabulary.train(TEXTS, 290)


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(codec="utf-8")).filter(lambda text: not text.startswith(" ")))
def test_texts_are_decoded_exactly(text):
    vocabulary = SubwordVocabulary.train(TEXTS, 290)
    rows = vocabulary.encode([text])
    assert vocabulary.decode(rows) == [text]
    assert all(token > 3 for token in rows[0])


def test_words_have_the_same_tokens_at_any_position(vocabulary):
    first, later = vocabulary.encode(["Tom", "Hund Tom"])
    assert later[-len(first) :] == first


def test_special_tokens_in_texts_are_ordinary_text(vocabulary):
    (row,) = vocabulary.encode(["</s> <mask>"])
    assert min(row) > 3
    assert vocabulary.decode([row]) == ["</s> <mask>"]
    (tom,) = vocabulary.encode(["Tom"])
    assert vocabulary.decode([[3, *tom, 2, 1, 7, 8, 0]]) == ["Tom"]


def test_saved_vocabulary_is_loaded_and_another_is_rejected(vocabulary, tmp_path):
    path = vocabulary.save(tmp_path / "vocabulary.json")
    opened = SubwordVocabulary.open(path, vocabulary.identity)
    assert opened.encode([*TEXTS, "<pad>"]) == vocabulary.encode([*TEXTS, "<pad>"])
    assert len(opened) == 290


def test_invalid_input_raises_one_line_errors(vocabulary, tmp_path):
    path = vocabulary.save(tmp_path / "vocabulary.json")
    other = SubwordVocabulary.train(TEXTS, 280)
    cases = [
        ("vocabulary of another model", lambda: SubwordVocabulary.open(path, other.identity)),
        ("use tokens below 280", lambda: other.decode([[285]])),
        ("check that the file can be read", lambda: SubwordVocabulary.open(tmp_path / "none.json")),
        ("use at least 260", lambda: SubwordVocabulary.train(TEXTS, 259)),
        (r"at most \d+ tokens, because the text", lambda: SubwordVocabulary.train(TEXTS, 3000)),
    ]
    for number, content in enumerate((b"{}", b"\xff", b"")):
        broken = tmp_path / f"{number}.json"
        broken.write_bytes(content)
        cases.append(("give a file written by", partial(SubwordVocabulary.open, broken)))
    assert not calls_without_expected_error(cases)
