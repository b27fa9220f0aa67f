import pytest
import sacrebleu

from refusals import expect_error
from trialogue.generation.translation.scores import quality, stutter

REFERENCES = ["the cat sat on the mat .", "a dog had had enough of it", "we go home now together"]
OUTPUTS = ["the the cat sat on the mat .", "a dog had had had enough of of it", "we go home now"]


def test_quality_equals_sacrebleu_with_its_signatures():
    found = quality(OUTPUTS, REFERENCES)
    assert found.bleu == sacrebleu.corpus_bleu(OUTPUTS, [REFERENCES]).score
    assert found.chrf == sacrebleu.corpus_chrf(OUTPUTS, [REFERENCES]).score
    assert "tok:13a" in found.bleu_signature
    assert "version:" in found.chrf_signature
    assert quality(REFERENCES, REFERENCES).bleu == pytest.approx(100)
    assert (
        quality(["我们回家"], ["我们回家吧"], tokenize="zh").bleu > quality(["我们回家"], ["我们回家吧"]).bleu
    )


def test_stutter_follows_the_definition_in_the_claims():
    assert stutter(["the the cat"], ["the cat"]).rate == 1 / 2
    assert stutter(["she had had enough"], ["she had had enough"]).rate == 0
    assert stutter(["she had had had"], ["she had had enough"]).rate == 0
    assert stutter(["The the cat"], ["the cat"]).rate == 0
    assert stutter(["word"], ["word"]).rate == 0
    found = stutter(OUTPUTS, REFERENCES)
    assert found.repeated.tolist() == [1, 1, 0]
    assert found.pairs.tolist() == [7, 8, 3]
    assert found.rate == 2 / 18


def test_unequal_numbers_of_lines_are_rejected():
    expect_error("2 outputs and 1 references", quality, ["a", "b"], ["a"])
    expect_error("0 outputs", stutter, [], [])
