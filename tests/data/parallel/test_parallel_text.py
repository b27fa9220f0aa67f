"""Parallel texts and their subword vocabulary."""

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refusals import calls_without_expected_error
from trialogue.data.parallel import ParallelText, SubwordVocabulary, split
from trialogue.data.parallel.splitting import normalise_sentence
from trialogue.randomness import numpy_generator


def test_given_columns_are_read(tmp_path):
    table = tmp_path / "pairs.tsv"
    table.write_text("\ufeffHi.\tHallo!\tx\r\n\nRun!\tLauf! \ty\n")
    text = ParallelText.read(table, columns=(2, 1))
    assert text.sources == ["Hallo!", "Lauf!"]
    assert text.targets == ["Hi.", "Run!"]


def test_aligned_files_are_read_line_by_line(tmp_path):
    source, target = tmp_path / "de", tmp_path / "en"
    source.write_text("eins\n\nzwei\u2028drei\n")
    target.write_text("one\ntwo\nthree\n")
    text = ParallelText.read_pair(source, target)
    assert (text.sources, text.targets) == (["eins", "zwei\u2028drei"], ["one", "three"])
    assert text.left_out == 1


TABLES = [
    ("a\tb\nc\td\te\n", (1, 2), "line 2 has 3, but line 1 has 2"),
    ("\n\na\tb\n\nc\n", (1, 2), "line 5 has 1, but line 3 has 2"),
    ("a b\n", (1, 2), "use columns up to 1"),
    ("a\tb\n", (0, 1), "columns=0: item 1: use at least 1"),
    ("a\tb\n", (1, 1), r"columns=.*unique"),
    ("a\tb\n", (1,), "columns=.*2 items"),
    ("", (1, 2), "give a file that contains sentences"),
    ("a\t\n", (1, 2), "give a file that contains sentences"),
]


def test_invalid_files_have_one_line_errors(tmp_path):
    cases = []
    for number, (content, columns, message) in enumerate(TABLES):
        table = tmp_path / f"{number}.tsv"
        table.write_text(content)
        cases.append((message, partial(ParallelText.read, table, columns)))
    source, target, broken = tmp_path / "de", tmp_path / "en", tmp_path / "fr"
    source.write_text("eins\nzwei\n")
    target.write_text("one\ntwo\nthree\n")
    broken.write_bytes(b"one\n\xff\n")
    chained = ParallelText(["a", "a", "b"], ["x", "y", "y"])
    cases += [
        (r"this file has 3 lines, but .*de has 2", lambda: ParallelText.read_pair(source, target)),
        ("byte 4 is invalid", lambda: ParallelText.read_pair(source, broken)),
        ("check that the file can be read", lambda: ParallelText.read_pair(source, tmp_path / "es")),
        ("1 sources and 2 targets", lambda: ParallelText(["a"], ["b", "c"])),
        ("3 pairs form only 1 groups", lambda: split(chained, 1, 1, seed=0)),
        ("2 pairs form only 2 groups", lambda: split(ParallelText(["a", "b"], ["x", "y"]), 1, 1, seed=0)),
    ]
    assert not calls_without_expected_error(cases)


def _leaks(parts):
    train, validation, test = parts[:3]
    known = [{normalise_sentence(s) for s in train.sources}, {normalise_sentence(s) for s in train.targets}]
    held = [(part.sources, part.targets) for part in (validation, test)]
    return sum(normalise_sentence(s) in known[side] for part in held for side in (0, 1) for s in part[side])


def _translations():
    """Return sentences with one to three translations, some of them shared, and random punctuation."""
    random = numpy_generator(0, "translations")
    pairs = []
    for number in range(300):
        for other in range(random.integers(1, 4)):
            target = number if other == 0 else number - random.integers(0, 2)
            end = ".", "!", ""
            pairs.append((f"Satz {number}{end[random.integers(3)]}", f"clause {target} {other}"))
    return ParallelText([pair[0] for pair in pairs], [pair[1] for pair in pairs])


def test_split_has_the_requested_sizes_and_no_shared_sentences():
    text = _translations()
    parts = split(text, 60, 40, seed=3)
    assert (len(parts.test), len(parts.validation)) == (60, 40)
    pairs = [(s, t) for part in parts[:3] for s, t in zip(part.sources, part.targets, strict=True)]
    assert sorted(pairs) == sorted(zip(text.sources, text.targets, strict=True))
    assert _leaks(parts) == 0
    order = numpy_generator(1, "order").permutation(len(text))
    at_random = [text.select(order[start:end]) for start, end in ((100, None), (0, 40), (40, 100))]
    assert _leaks(at_random) > 20
    assert split(text, 60, 40, seed=3).test.sources == parts.test.sources
    assert split(text, 60, 40, seed=4).test.sources != parts.test.sources


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
