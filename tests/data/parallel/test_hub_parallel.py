import sys
from types import SimpleNamespace

import pytest

from trialogue.data.parallel.hub import HUB_PAIRS, hub_parallel
from trialogue.errors import InputError


def _answering(asked):
    def load_dataset(repository, configuration, split):
        asked.append((repository, configuration, split))
        other = {"train": "sehe", "validation": "frage", "test": "rufe"}[split]
        return {"translation": [{"de": f"ich {other} dich", "en": f"I {split} you"}, {"de": "", "en": "x"}]}

    return SimpleNamespace(load_dataset=load_dataset)


def test_the_hubs_splits_are_read_in_the_direction_asked_for(monkeypatch):
    asked = []
    monkeypatch.setitem(sys.modules, "datasets", _answering(asked))
    found = hub_parallel("wmt14-en-de")
    assert found.train.sources == ["I train you"]
    assert found.test.targets == ["ich rufe dich"]
    assert found.train.left_out == 1
    assert found.familiar.tolist() == [True]
    assert asked == [("wmt/wmt14", "de-en", split) for split in ("train", "validation", "test")]


def test_both_directions_of_a_corpus_have_a_name(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", _answering([]))
    there, back = hub_parallel("wmt14-de-en"), hub_parallel("wmt14-en-de")
    assert (there.train.sources, there.train.targets) == (back.train.targets, back.train.sources)
    assert len(HUB_PAIRS) == 6


def test_what_cannot_be_had_is_told_in_one_line(monkeypatch):
    def offline(*_, **__):
        raise ConnectionError("no route\nto the hub")

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=offline))
    with pytest.raises(InputError, match=r"wmt/wmt16 cannot be had from the hub \(no route\)"):
        hub_parallel("wmt16-ro-en")
    with pytest.raises(InputError, match="use one of " + ", ".join(HUB_PAIRS)):
        hub_parallel("wmt13-de-en")
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(InputError, match=r"pip install .trialogue\[hub\]"):
        hub_parallel("wmt17-zh-en")
