"""Test packing, splitting, resuming and caching of corpora, their documents, and errors for invalid texts."""

import sys
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest
import torch
from tokenizers import Tokenizer

from refusals import calls_without_expected_error, expect_error
from trialogue.data.corpus import corpus as corpora
from trialogue.data.corpus import texts, tokens
from trialogue.data.corpus.corpus import Corpus
from trialogue.data.corpus.documents import split_documents, split_passages
from trialogue.data.corpus.texts import END, LocalText, find_text_files, open_local_text, split_local_text

STORIES = [
    f"One day, {name} found a {colour} {thing} near the old tree. {name} was very happy.\nThe end."
    for name in ("Lily", "Zoé", "Max", "Sue")
    for colour in ("red", "blue", "big", "shiny")
    for thing in ("ball", "box", "cat", "stone", "cup")
]
TEXT = "".join(f"{story}\n{END}\n" for story in STORIES)
STORY = TEXT.replace(f"{END}\n", END)


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "stories.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def open_corpus(text: object, **settings: object) -> Corpus:
    cache = Path(str(text)).parent / "cache"
    return Corpus.open(text, **{"vocab_size": 300, "length": 8, "cache": cache} | settings)  # type: ignore[arg-type]


def decode_all(rows: torch.Tensor, corpus: Corpus) -> str:
    return corpus.decode(rows.reshape(1, -1))[0]


def test_rows_contain_the_text(text):
    corpus = open_corpus(text)
    assert corpus.train.dtype == torch.int64
    assert corpus.train.shape[1] == corpus.test.shape[1] == corpus.length == 8
    assert corpus.vocab_size == 300
    train, test = decode_all(corpus.train, corpus), decode_all(corpus.test, corpus)
    assert STORY.startswith(train)
    # Only the incomplete last row of each part is missing.
    cut = STORY.index(test, len(train))
    assert len(corpus.tokenizer.encode(STORY[len(train) : cut]).ids) < 8
    assert len(corpus.tokenizer.encode(STORY[cut + len(test) :]).ids) < 8
    assert len(test) == pytest.approx(0.1 * len(STORY), abs=120)
    assert (corpus.train == 0).sum() == train.count(END) > 40
    # The concatenated rows equal the tokens of the lines of the text.
    lines = [line for line in STORY[: len(train)].splitlines(keepends=True) if line]
    encoded = [token for line in lines for token in corpus.tokenizer.encode(line).ids]
    assert corpus.train.flatten().tolist() == encoded[: corpus.train.numel()]


def test_separate_test_text(text, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("Lily and Max were very happy near the tree. " * 3, encoding="utf-8")
    corpus = open_corpus(text, test=other)
    assert decode_all(corpus.test, corpus).startswith("Lily and Max were very happy near the tree. Lily")
    assert len(decode_all(corpus.train, corpus)) == pytest.approx(len(STORY), abs=40)


def test_cached_files_are_reused_and_named_by_content(text, tmp_path, monkeypatch):
    reported: list[str] = []
    first = open_corpus(text, report=reported.append)
    assert len(reported) == 3
    copy = tmp_path / "copy" / "renamed.txt"
    copy.parent.mkdir()
    copy.write_bytes(text.read_bytes())
    for again in (
        open_corpus(text, report=reported.append),
        open_corpus(copy, cache=tmp_path / "cache", length=16),
    ):
        assert again.fingerprint == first.fingerprint
        assert again.folder == first.folder
        assert torch.equal(again.train.flatten()[:160], first.train.flatten()[:160])
    assert len(reported) == 3
    others = [open_corpus(text, vocab_size=299), open_corpus(text, test_share=0.2)]
    text.write_text(TEXT + "One more line.", encoding="utf-8")
    others.append(open_corpus(text))
    assert len({first.fingerprint, *(other.fingerprint for other in others)}) == 4
    assert first.tokenizer.to_str() == open_corpus(copy, cache=tmp_path / "elsewhere").tokenizer.to_str()


def test_file_is_memory_mapped_and_not_modified(text):
    corpus = open_corpus(text)
    before = corpus.train.clone()
    corpus.train.zero_()
    assert torch.equal(open_corpus(text).train, before)


class Killed(Exception):
    pass


@pytest.mark.parametrize("batches", [0, 1, 5])
def test_interrupted_tokenization_is_resumed(batches, text, tmp_path, monkeypatch):
    expected = open_corpus(text, cache=tmp_path / "whole")
    monkeypatch.setattr(tokens, "_BATCH_CHARACTERS", 500)
    encoded: list[int] = []
    encode = Tokenizer.encode_batch_fast

    class Counting:
        """Tokenizer that counts encoded texts and raises `Killed` after a number of batches."""

        def __init__(self, own: Tokenizer, last: int | None) -> None:
            self.own, self.last = own, last

        def __getattr__(self, name: str) -> object:
            return getattr(self.own, name)

        def encode_batch_fast(self, pieces: list[str]) -> object:
            if len(encoded) == self.last:
                raise Killed
            encoded.append(sum(map(len, pieces)))
            return encode(self.own, pieces)

    trained = corpora._load_or_train_tokenizer
    monkeypatch.setattr(corpora, "_load_or_train_tokenizer", lambda *of: Counting(trained(*of), batches))
    with pytest.raises(Killed):
        open_corpus(text)
    growing = next((tmp_path / "cache").rglob("train.growing"))
    with growing.open("ab") as file:  # An interrupted write leaves an incomplete token.
        file.write(b"half a token")
    assert len(encoded) == batches
    monkeypatch.setattr(corpora, "_load_or_train_tokenizer", lambda *of: Counting(trained(*of), None))
    again = open_corpus(text)
    assert torch.equal(again.train, expected.train)
    assert torch.equal(again.test, expected.test)
    assert sum(encoded) == len(STORY)  # No text was encoded twice.
    assert not list((tmp_path / "cache").rglob("*.growing"))


def test_saved_progress_is_checked_against_the_file(text):
    folder = open_corpus(text).folder
    expected = (folder / "train.tokens").read_bytes()
    (folder / "train.tokens").unlink()
    (folder / "corpus.json").unlink()
    (folder / "train.growing").write_bytes(expected[:80])
    (folder / "train.reached").write_text('{"position": 4000, "bytes": 1600}')
    open_corpus(text)
    assert (folder / "train.tokens").read_bytes() == expected


@pytest.mark.parametrize("name", ["train.tokens", "tokenizer.json", "corpus.json"])
def test_damaged_cache_folder_is_reported(name, text):
    folder = open_corpus(text).folder
    (folder / name).write_bytes((folder / name).read_bytes()[:-9])
    expect_error(f"cache='{folder}': delete this damaged folder", open_corpus, text)


def test_folder_is_read_as_its_sorted_text_files(tmp_path):
    place = tmp_path / "books"
    (place / "b").mkdir(parents=True)
    for name, content in (("b/one.txt", TEXT), ("a.txt", "First. " * 9), ("c.txt", ""), ("notes.md", "no")):
        (place / name).write_text(content, encoding="utf-8")
    assert [path.name for path in find_text_files(place)] == ["a.txt", "one.txt", "c.txt"]
    corpus = open_corpus(place, cache=tmp_path / "cache")
    assert decode_all(corpus.train, corpus).startswith("First. " * 9 + END + "One day")


@pytest.mark.parametrize("longest", [7, 40, 2**16])
def test_concatenated_pieces_equal_the_text(longest, text, monkeypatch):
    monkeypatch.setattr(texts, "LONGEST", longest)
    stories = "".join(TEXT.splitlines(keepends=True)[:12])
    content = "\ufeff" + stories + "One very long line é東京😀 " * 9 + "wordwithoutspaces東京" * 5
    text.write_text(content, encoding="utf-8")
    spoken = stories.replace(f"{END}\n", END) + content[1 + len(stories) :] + END
    if longest == 7:  # The end marker would be longer than a piece, so this case replaces it.
        content = content.replace(END, "e")
        text.write_text(content, encoding="utf-8")
        spoken = content[1:] + END

    def read(of: LocalText, start: int = 0) -> str:
        return "".join(piece for _, pieces in of.pieces(start) for piece in pieces)

    together = open_local_text(text)
    assert read(together) == spoken
    assert read(split_local_text(text, 0.4)[0]) + read(split_local_text(text, 0.4)[1]) == spoken
    before = ""
    for place, pieces in together.pieces():
        before += "".join(pieces)
        assert before + read(together, place) == spoken
    assert place == together.size


class Column:
    """Minimal stand-in for `datasets.Dataset` with slices of rows."""

    def __init__(self, rows: list[str]) -> None:
        self.rows, self._fingerprint = rows, "of the library"

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: slice) -> dict[str, list[str]]:
        return {"text": self.rows[rows]}


@pytest.fixture
def hub(monkeypatch):
    calls: list[tuple[object, ...]] = []

    def load_dataset(name: str, configuration: str | None, split: str) -> Column:
        calls.append((name, configuration, split))
        if split == "validation":
            return Column(STORIES[60:])
        if split == "test":
            raise ConnectionError("no route to the hub\nand more")
        return Column(STORIES[:60])

    module = ModuleType("datasets")
    module.load_dataset = load_dataset  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "datasets", module)
    monkeypatch.setattr("trialogue.data.corpus.hub._BATCH_ROWS", 7)
    return calls


def test_hub_corpus(hub, tmp_path):
    corpus = open_corpus("tinystories", cache=tmp_path)
    name = "roneneldan/TinyStories"
    assert hub == [(name, None, "train"), (name, None, "validation")]
    assert "".join(f"{story}{END}" for story in STORIES[:60]).startswith(decode_all(corpus.train, corpus))
    assert "".join(f"{story}{END}" for story in STORIES[60:]).startswith(decode_all(corpus.test, corpus))
    error = expect_error("", open_corpus, "wikitext-103", cache=tmp_path)
    reason = "go online or use a local file, because Salesforce/wikitext could not be loaded from the hub"
    assert f"{reason} (no route to the hub)" in str(error)


BAD: list[tuple[bytes | None, dict[str, object], str]] = [
    (b"", {}, "text=.*give a file that is not empty"),
    (None, {}, "text=.*existing file or folder, or the name of a corpus .*tinystories, wikitext-103"),
    (
        TEXT.encode()[:300] + b"\xff\n",
        {"test_share": 0.1},
        r"text=.*convert the file to UTF-8, because byte 300",
    ),
    (TEXT.encode("utf-16"), {}, r"text=.*convert the file to UTF-8, because byte 0"),
    (TEXT.encode(), {"vocab_size": 5000}, r"vocab_size=5000: .*at most \d+ tokens"),
    (TEXT.encode(), {"vocab_size": 256}, r"vocab_size=256: use at least 257 for 256 bytes"),
    (TEXT.encode(), {"vocab_size": 300.0}, "vocab_size=300.0"),
    (TEXT.encode(), {"length": 5000}, "length=5000: .*the train text has fewer tokens"),
    (TEXT.encode(), {"length": 500}, "length=500: .*the test text has fewer tokens"),
    (TEXT.encode(), {"length": 0}, "length=0"),
    (TEXT.encode(), {"test_share": 1.0}, "test_share=1.0"),
    (TEXT.encode(), {"test": "/nowhere/at/all.txt"}, "text='/nowhere/at/all.txt': give an existing file"),
]


def test_invalid_corpora_have_one_line_errors(tmp_path):
    cases = []
    for number, (content, settings, message) in enumerate(BAD):
        path = tmp_path / f"{number}.txt"
        if content is not None:
            path.write_bytes(content)
        cases.append((message, partial(open_corpus, path, **settings)))
    (tmp_path / "notes" / "md").mkdir(parents=True)
    cases.append((r"a folder that contains \.txt files", partial(open_corpus, tmp_path / "notes")))
    assert not calls_without_expected_error(cases)


def read(folder: Path, text: str) -> list[str]:
    file = folder / "text.txt"
    file.write_text(text, encoding="utf-8")
    return split_documents(open_local_text(file))


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
    assert split_documents(open_local_text(tmp_path)) == ["a\n\na\n", "b\n\nb\n"]


def test_passages_contain_all_words_in_order():
    lines = ["w " * 7, "x " * 30, "y " * 12, "z " * 3]
    found = split_passages(["\n".join(lines), "short one"], 20)
    assert {passage.document for passage in found} == {0}
    assert [len(passage.text.split()) for passage in found] == [20, 10, 15]  # w alone is too short
    whole = split_passages(["\n".join(lines[1:3])], 20)
    assert " ".join(passage.text for passage in whole).split() == "".join(lines[1:3]).split()
    expect_error("words=9: use at least 10", split_passages, ["a"], 9)
