"""Test that labelled texts give the right prefixes, and that splits do not share texts."""

import json
from collections.abc import Callable, Sequence

import pytest
import torch
from tokenizers import Tokenizer, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from models.tiny_pretrained import tiny_tokenizer
from refusals import expect_error
from trialogue.errors import InputError
from trialogue.models.tokenization import Tokenization
from trialogue.training.probes.probe_examples import (
    ExampleSplit,
    LabelledText,
    ProbeExamples,
    prefix_examples,
    read_labelled_texts,
    split_examples,
)

TOKENIZATION = Tokenization(tiny_tokenizer())
TEXT = "the café, 東京 and 😀 sat\n\non 1, 2 == 3"


def spacing() -> Tokenization:
    """Return a tokenizer that adds a leading space, as in the Llama family."""
    tokenizer = Tokenizer.from_str(tiny_tokenizer().backend_tokenizer.to_str())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    return Tokenization(
        PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")
    )


def labelled(completion: str = TEXT, prompt: str | None = "a list:", **label: int | None) -> LabelledText:
    return LabelledText("file line 1", prompt, completion, **label)


Make = Callable[..., ProbeExamples]


def prefixes_are_correct(make: Make, tokenization: Tokenization, prompt: str | None) -> bool:
    """Check the decoded prefixes for every position of an error."""
    for error in range(len(TEXT)):
        examples = make([labelled(prompt=prompt, error=error)], tokenization, correct_prefixes=99)
        tokens, lengths = examples.sequences[0], examples.lengths[0]
        end = len(tokenization.bytes(tokens[: lengths[-1]])) - len(((prompt or "") + TEXT[:error]).encode())
        space = tokenization.bytes(tokens).startswith(b" ") and not (prompt or TEXT).startswith(" ")
        size = len(tokenization.bytes(tokens[lengths[-1] - 1 : lengths[-1]]))
        held = end - space
        # Only the last token extends beyond the correct text.
        if not (0 < held <= size and examples.labels.tolist() == [1] * (len(lengths) - 1) + [0]):
            return False
        if lengths != list(range(lengths[0], lengths[-1] + 1)):
            return False
    return True


@pytest.mark.parametrize("prompt", ["a list:", "", None])
@pytest.mark.parametrize("tokenization", [TOKENIZATION, spacing()], ids=["plain", "spacing"])
def test_wrong_token_is_the_first_token_with_the_error(tokenization, prompt):
    assert prefixes_are_correct(prefix_examples, tokenization, prompt)

    def by_character(
        texts: Sequence[LabelledText], tokenization: Tokenization, **settings: int
    ) -> ProbeExamples:
        """Mutant that interprets the offset in bytes."""
        text = texts[0]
        assert text.error is not None
        as_bytes = text.completion.encode()[: text.error].decode(errors="ignore")
        return prefix_examples([labelled(prompt=text.prompt, error=len(as_bytes))], tokenization, **settings)

    assert not prefixes_are_correct(by_character, tokenization, prompt)


def test_correct_prefixes_are_in_the_completion_and_reproducible():
    begin = len(TOKENIZATION.encode("a list:"))
    whole = len(prefix_examples([labelled(label=1)], TOKENIZATION).sequences[0])
    seen = set()
    for seed in range(400):
        examples = prefix_examples([labelled()], TOKENIZATION, correct_prefixes=2, seed=seed)
        (lengths,) = examples.lengths
        assert examples.labels.tolist() == [1, 1]
        assert (
            lengths == prefix_examples([labelled()], TOKENIZATION, correct_prefixes=2, seed=seed).lengths[0]
        )
        seen.update(lengths)
    assert seen == set(range(begin + 1, whole + 1))


def test_error_in_the_first_token_has_no_correct_prefix():
    examples = prefix_examples([labelled(error=0), labelled(label=0)], TOKENIZATION)
    assert examples.labels.tolist() == [0, 0]
    assert examples.text.tolist() == [0, 1]
    assert examples.lengths[0] == [len(TOKENIZATION.encode("a list:")) + 1]


def test_end_of_sequence_can_be_wrong_or_correct():
    eos = TOKENIZATION.eos
    wrong = prefix_examples([labelled(error=len(TEXT))], TOKENIZATION, eos=True, correct_prefixes=99)
    assert wrong.sequences[0][-1] == eos
    assert wrong.labels.tolist()[-2:] == [1, 0]
    complete_examples = prefix_examples(
        [labelled(), labelled(label=1)], TOKENIZATION, eos=True, correct_prefixes=99
    )
    assert all(sequence[-1] == eos for sequence in complete_examples.sequences)
    assert set(complete_examples.labels.tolist()) == {1}
    expect_error("after the last token; use eos", prefix_examples, [labelled(error=len(TEXT))], TOKENIZATION)


def test_chat_template_is_applied_to_prompts():
    (sequence,) = prefix_examples([labelled(label=1)], TOKENIZATION, chat=True).sequences
    chat = TOKENIZATION.chat("a list:")
    assert sequence[: len(chat)] == chat
    assert TOKENIZATION.bytes(sequence[len(chat) :]) == TEXT.encode()
    with pytest.raises(InputError, match="the chat template needs a prompt"):
        prefix_examples([labelled(prompt=None, label=1)], TOKENIZATION, chat=True)


def test_unusable_texts_are_rejected():
    with pytest.raises(InputError, match=r"file line 1: tokens=.*reads at most 5 tokens"):
        prefix_examples([labelled(label=1)], TOKENIZATION, max_length=5)
    expect_error("no token", prefix_examples, [labelled("", label=1)], TOKENIZATION)
    with pytest.raises(InputError, match="does not reproduce this text"):
        prefix_examples([labelled("cat</s>sat", error=1)], TOKENIZATION)
    assert len(prefix_examples([labelled("cat</s>sat", label=1)], TOKENIZATION).labels) == 1


def texts(n: int) -> list[LabelledText]:
    """Return texts with 7 prompts, half of them with an error and every third text twice."""
    made = [
        labelled(f"{index} cat {index} sat", f"prompt {index % 7}", error=2 if index % 2 else None)
        for index in range(n)
    ]
    return made + made[::3]


Cut = Callable[[Sequence[LabelledText], ProbeExamples], ExampleSplit]


def splits_are_disjoint(cut: Cut, by: str) -> bool:
    given = texts(60)
    examples = prefix_examples(given, TOKENIZATION, correct_prefixes=3)
    split = cut(given, examples)
    if torch.cat(split).sort().values.tolist() != list(range(len(examples.labels))):
        return False
    keys = [
        {
            (given[text].prompt, *([given[text].completion] if by == "text" else []))
            for text in examples.text[rows]
        }
        for rows in split
    ]
    return all(not (keys[a] & keys[b]) for a in range(4) for b in range(a))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("by", ["text", "prompt"])
def test_no_text_is_in_two_splits_and_each_example_is_in_one(by, seed):
    assert splits_are_disjoint(
        lambda given, examples: split_examples(given, examples, by=by, seed=seed),  # type: ignore[arg-type]
        by,
    )

    def by_line(given: Sequence[LabelledText], examples: ProbeExamples) -> ExampleSplit:
        """Mutant that ignores equal texts."""
        lines = [labelled(str(line), str(line), error=text.error) for line, text in enumerate(given)]
        return split_examples(lines, examples, seed=seed)

    assert not splits_are_disjoint(by_line, by)


def test_splits_have_the_right_sizes_and_both_classes():
    given = [labelled(str(index), error=0 if index < 100 else None) for index in range(300)]
    examples = prefix_examples(given, TOKENIZATION)
    split = split_examples(given, examples, validation=0.2, test=0.1)
    assert [len(rows) for rows in split] == [210, 30, 30, 30]
    assert [int(examples.labels[rows].sum()) for rows in split] == [140, 20, 20, 20]
    other = split_examples(given, examples, validation=0.2, test=0.1, seed=1)
    assert split.test.tolist() != other.test.tolist()


def test_missing_class_is_rejected():
    for label, word in ((1, "erroneous examples=0"), (0, "correct examples=0")):
        given = [labelled(str(index), label=label) for index in range(20)]
        expect_error(word, split_examples, given, prefix_examples(given, TOKENIZATION))
    given = [labelled(str(index), label=int(index > 2)) for index in range(20)]
    with pytest.raises(InputError, match=r"erroneous examples=3: .* the selection split"):
        split_examples(given, prefix_examples(given, TOKENIZATION))
    with pytest.raises(InputError, match=r"validation \+ test=1\.1"):
        split_examples(given, prefix_examples(given, TOKENIZATION), validation=0.6, test=0.5)


def test_lines_of_every_kind_are_read(tmp_path):
    path = tmp_path / "texts.jsonl"
    lines = [
        {"prompt": "p", "completion": "café", "error": 3, "more": [1]},
        {"prompt": "", "completion": "c", "error": None},
        {"prompt": "p", "completion": "c", "label": 0},
        {"text": "t", "label": True},
    ]
    path.write_text("\n\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
    read = read_labelled_texts(path)
    assert [(text.prompt, text.completion, text.label, text.error) for text in read.texts] == [
        ("p", "café", None, 3),
        ("", "c", None, None),
        ("p", "c", 0, None),
        (None, "t", 1, None),
    ]
    assert read.texts[1].source.endswith("line 3")
    assert len(read.sha256) == 64


BAD = [
    (b"{", "not valid JSON"),
    (b'{"text": "\xff", "label": 1}', "not valid JSON"),
    (b"[" * 100_000, "not valid JSON"),
    (b'"text"', "give an object with"),
    (b'{"prompt": "p", "text": "t", "label": 1}', "give an object with"),
    (b'{"completion": "c", "label": 1}', "give an object with"),
    (b'{"text": "t"}', "give an object with"),
    (b'{"text": "t", "label": 1, "error": 0}', "give an object with"),
    (b'{"text": "t", "label": 2}', "label=2"),
    (b'{"text": 3, "label": 1}', "text=3: give a text"),
    (b'{"text": "\\ud800", "label": 1}', "surrogate"),
    (b'{"text": "t", "error": 2}', "from 0 to 1"),
    (b'{"text": "t", "error": true}', "error=True"),
]


def test_invalid_line_is_rejected_with_its_number(tmp_path):
    path = tmp_path / "texts.jsonl"
    for line, words in BAD:
        path.write_bytes(b'{"text": "fine", "label": 1}\n' + line + b"\n")
        assert "texts.jsonl line 2" in str(expect_error(words, read_labelled_texts, path))


def test_file_without_texts_is_rejected(tmp_path):
    expect_error("cannot be read", read_labelled_texts, tmp_path / "none.jsonl")
    (tmp_path / "empty.jsonl").write_text("\n")
    expect_error("contains no texts", read_labelled_texts, tmp_path / "empty.jsonl")
