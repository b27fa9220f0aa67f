"""Test that documents and passages contain the complete text and are split at markers and titles."""

from pathlib import Path

import pytest

from refusals import expect_error
from trialogue.data.corpus.documents import documents_of, passages_of
from trialogue.data.corpus.texts import local_text


def read(folder: Path, text: str) -> list[str]:
    file = folder / "text.txt"
    file.write_text(text, encoding="utf-8")
    return documents_of(local_text(file))


@pytest.mark.parametrize(
    ("text", "documents"),
    [
        ("one\n\none\n<|endoftext|>\ntwo\n", ["one\n\none\n", "two\n"]),
        ("<|doc a1|>\none\n<|doc a2|>\ntwo\n", ["one\n", "two\n"]),
        (
            " = One = \n a = b = c \n = = Part = = \n = Two = \n x \n",
            [" = One = \n a = b = c \n = = Part = = \n", " = Two = \n x \n"],
        ),
        ("one\none\n\n\ntwo\n", ["one\none\n", "two\n"]),
        ("all one\nall one\n", ["all one\nall one\n"]),
    ],
    ids=["end of document", "marks", "titles", "paragraphs", "one"],
)  # fmt: skip
def test_document_boundaries(tmp_path, text, documents):
    assert read(tmp_path, text) == documents


def test_each_file_of_a_folder_is_a_document(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text(f"{name}\n\n{name}\n", encoding="utf-8")
    assert documents_of(local_text(tmp_path)) == ["a\n\na\n", "b\n\nb\n"]


def test_passages_contain_all_words_in_order():
    lines = ["w " * 7, "x " * 30, "y " * 12, "z " * 3]
    found = passages_of(["\n".join(lines), "short one"], 20)
    assert {passage.document for passage in found} == {0}
    assert [len(passage.text.split()) for passage in found] == [
        20,
        10,
        15,
    ]  # w alone is too short
    whole = passages_of(["\n".join(lines[1:3])], 20)
    assert " ".join(passage.text for passage in whole).split() == "".join(lines[1:3]).split()
    expect_error("words=9: use at least 10", passages_of, ["a"], 9)
