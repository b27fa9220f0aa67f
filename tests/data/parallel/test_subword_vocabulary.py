import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trialogue.data.parallel import SubwordVocabulary
from trialogue.errors import InputError

TEXTS = ["Tom sieht den alten Hund.", "Tom sees the old dog.", "Der alte Hund sieht Tom nicht."] * 3


@pytest.fixture(scope="module")
def vocabulary():
    return SubwordVocabulary.train(TEXTS, 290)


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(codec="utf-8")).filter(lambda text: not text.startswith(" ")))
def test_texts_are_given_back_exactly(text):
    vocabulary = SubwordVocabulary.train(TEXTS, 290)
    rows = vocabulary.encode([text])
    assert vocabulary.decode(rows) == [text]
    assert all(token > 3 for token in rows[0])


def test_words_are_the_same_first_and_later(vocabulary):
    first, later = vocabulary.encode(["Tom", "Hund Tom"])
    assert later[-len(first) :] == first


def test_special_tokens_are_no_text_and_their_marks_are(vocabulary):
    (row,) = vocabulary.encode(["</s> <mask>"])
    assert min(row) > 3
    assert vocabulary.decode([row]) == ["</s> <mask>"]
    (tom,) = vocabulary.encode(["Tom"])
    assert vocabulary.decode([[3, *tom, 2, 1, 7, 8, 0]]) == ["Tom"]
    assert (vocabulary.pad, vocabulary.eos, vocabulary.mask, vocabulary.bos) == (0, 1, 2, 3)


def test_what_is_saved_is_opened_and_another_is_refused(vocabulary, tmp_path):
    path = vocabulary.save(tmp_path / "vocabulary.json")
    opened = SubwordVocabulary.open(path, vocabulary.identity)
    assert opened.encode([*TEXTS, "<pad>"]) == vocabulary.encode([*TEXTS, "<pad>"])
    assert len(opened) == 290
    other = SubwordVocabulary.train(TEXTS, 280)
    with pytest.raises(InputError, match="vocabulary of another model"):
        SubwordVocabulary.open(path, other.identity)
    with pytest.raises(InputError, match="token of a vocabulary of 280"):
        other.decode([[285]])


@pytest.mark.parametrize("content", [b"{}", b"\xff", b""])
def test_a_file_that_is_no_vocabulary_is_told_in_one_line(tmp_path, content):
    path = tmp_path / "vocabulary.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match="no vocabulary of subwords"):
        SubwordVocabulary.open(path)
    with pytest.raises(InputError, match="cannot be read"):
        SubwordVocabulary.open(tmp_path / "none.json")


def test_a_vocabulary_too_small_or_too_large_is_refused():
    with pytest.raises(InputError, match="use at least 260"):
        SubwordVocabulary.train(TEXTS, 259)
    with pytest.raises(InputError, match=r"the text supports \d+ tokens"):
        SubwordVocabulary.train(TEXTS, 3000)
