from pathlib import Path

import pytest
import torch

from trialogue.data.corpus.corpus import Corpus
from trialogue.data.corpus.texts import END

STORIES = [
    f"One day, {name} found a {colour} {thing} near the old tree. {name} was very happy.\nThe end."
    for name in ("Lily", "Tom", "Max", "Sue")
    for colour in ("red", "blue", "big", "shiny")
    for thing in ("ball", "box", "cat", "stone", "cup")
]
TEXT = "".join(f"{story}\n{END}\n" for story in STORIES)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "stories.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_rows_are_the_text(text: Path, tmp_path: Path) -> None:
    corpus = Corpus.open(text, vocab_size=300, length=8, cache=tmp_path / "cache")
    assert corpus.train.dtype == torch.int64
    assert corpus.train.shape[1] == corpus.test.shape[1] == corpus.length == 8
    assert corpus.vocab_size == 300
    train, test = ("".join(corpus.decode(rows.reshape(1, -1))) for rows in (corpus.train, corpus.test))
    told = TEXT.replace(f"{END}\n", END)
    assert told.startswith(train)
    assert test in told[len(train) :]
    assert (corpus.train == corpus.end).sum() == train.count(END)
