"""Translation models on disk, line-by-line translation, and the quality of translations."""

import json

import pytest
import sacrebleu

from models.small_encoder_decoders import small_network
from refusals import expect_error
from trialogue.data.parallel.vocabulary import SubwordVocabulary
from trialogue.errors import InputError
from trialogue.generation.translation.lines import LineResult, LineTranslator
from trialogue.generation.translation.model import CARD, VOCABULARY, TranslationModel
from trialogue.generation.translation.scores import count_repeated_words, translation_quality
from trialogue.generation.translation.settings import TranslationSettings
from trialogue.samplers.translation.hypotheses import NOTHING

TEXTS = ["der Hund und die Katze", "the dog and the cat", "die Katze", "the cat"] * 3
WORDS = SubwordVocabulary.train(TEXTS, 264)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("translation")
    networks = {
        name: small_network(causal=name == "twin", vocab=len(WORDS), seed=3) for name in ("refiner", "twin")
    }
    TranslationModel(WORDS, networks).save(folder / "model", {"text": "pairs"})
    TranslationModel(WORDS, {"twin": networks["twin"]}).save(folder / "twin", {})
    return folder


def translator(folder, truncate=False, **options):
    settings = TranslationSettings(folder / "model", **options)
    return LineTranslator(TranslationModel.open(folder / "model"), settings, truncate=truncate)


LINES = ["die", "", "cat", "  \t ", "der " * 9, "dog\n", "die"]


@pytest.mark.parametrize("network", ["refiner", "twin"])
@pytest.mark.parametrize("batch", [1, 2, 50])
def test_every_line_has_a_separate_translation(folder, network, batch):
    results = list(translator(folder, network=network, hypotheses=2).translate(LINES, batch))
    assert [result.number for result in results] == [1, 2, 3, 4, 5, 6, 7]
    assert [result.source for result in results] == [line.rstrip("\n") for line in LINES]
    assert [bool(result.refused) for result in results] == [False] * 4 + [True] + [False] * 2
    assert [result.text for result in results if not result.source.strip()] == ["", ""]
    assert results[4].text == ""
    assert "tokens, and the limit is 6" in results[4].refused
    assert all("\n" not in result.text for result in results)
    single_model = translator(folder, network=network, hypotheses=2)
    for result in results[:4]:
        (again,) = list(single_model.translate([LINES[result.number - 1]]))[:1]
        if network == "twin":
            assert again.texts == result.texts
        record = json.loads(json.dumps(result.record()))
        assert record["line"] == result.number
        assert [each["text"] for each in record["hypotheses"]] == result.texts
        assert record["passes"] == result.translation.passes


def test_a_translation_is_a_single_line():
    for mark in ["\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]:
        result = LineResult(1, "a", [f"one{mark}two"], NOTHING, "", 0.0)
        assert result.text == result.record()["translation"] == "one two"


def test_translations_do_not_depend_on_the_batch_size(folder):
    each, together = (
        [result.texts for result in translator(folder).translate(LINES, batch)] for batch in (1, 32)
    )
    assert each == together


def test_lines_are_translated_as_they_are_read(folder):
    read = []

    def lines():
        for line in LINES:
            read.append(line)
            yield line

    results = translator(folder).translate(lines(), 1)
    for count in range(1, 4):
        next(results)
        assert len(read) == count


def test_a_long_line_is_truncated_on_request(folder):
    (result,) = translator(folder, truncate=True).translate([LINES[4]])
    assert not result.refused
    assert result.texts
    assert json.loads(json.dumps(result.record())).keys() >= {"hypotheses", "passes", "seconds"}
    (refused,) = translator(folder).translate([LINES[4]])
    assert "--truncate" in refused.record()["error"]


def test_a_saved_model_can_be_opened(folder):
    model = TranslationModel.open(folder / "model")
    assert set(model.networks) == {"refiner", "twin"}
    assert model.max_length == 6
    assert model.vocabulary.identity == WORDS.identity
    assert json.loads((folder / "model" / CARD).read_text())["text"] == "pairs"
    expect_error("use the network of the model", TranslationModel.open(folder / "twin").refiner)


def test_folders_without_a_valid_model_are_rejected(folder, tmp_path):
    assert expect_error("", TranslationModel.open, tmp_path).field == "model"
    other = tmp_path / "other"
    TranslationModel.open(folder / "model").save(other, {})
    SubwordVocabulary.train(TEXTS, 263).save(other / VOCABULARY)
    expect_error("vocabulary of another model", TranslationModel.open, other)
    TranslationModel(SubwordVocabulary.train(TEXTS, 263), model_networks(folder)).save(other, {})
    expect_error("264 tokens and its vocabulary 263", TranslationModel.open, other)
    (other / CARD).write_text("[]")
    expect_error("it has no valid", TranslationModel.open, other)


def model_networks(folder):
    return TranslationModel.open(folder / "model").networks


def test_the_twin_ranks_on_request(folder):
    twin = TranslationModel.open(folder / "model").twin()
    plain, ranked = (
        list(translator(folder, rescore=rescore, hypotheses=4).translate(LINES, 4))
        for rescore in (False, True)
    )
    for line, before, after in zip(LINES, plain, ranked, strict=True):
        assert sorted(after.texts) == sorted(before.texts)
        assert after.translation.passes == before.translation.passes + bool(before.texts and line.strip())
        if line.strip() and not after.refused:
            tokens = [each.tokens for each in after.translation.hypotheses]
            (log_probs,) = twin.log_probs(WORDS.encode([line.strip()]), [tokens])
            found = [each.log_prob for each in after.translation.hypotheses]
            assert found == pytest.approx(log_probs, abs=1e-4)
        json.loads(json.dumps(after.record(), allow_nan=False))


def test_ranking_without_a_suitable_twin_is_rejected(folder, tmp_path):
    TranslationModel(WORDS, {"refiner": model_networks(folder)["refiner"]}).save(tmp_path, {})
    with pytest.raises(InputError, match="it has no twin"):
        LineTranslator(TranslationModel.open(tmp_path), TranslationSettings(tmp_path, rescore=True))
    networks = {
        name: small_network(causal=name == "twin", vocab=len(WORDS), longest=longest)
        for name, longest in (("refiner", 6), ("twin", 5))
    }
    with pytest.raises(InputError, match="the twin is limited to 5 tokens"):
        LineTranslator(TranslationModel(WORDS, networks), TranslationSettings(tmp_path, rescore=True))
    with pytest.raises(InputError, match="it applies to hypotheses of the refiner"):
        TranslationSettings(tmp_path, network="twin", rescore=True)


REFERENCES = ["the cat sat on the mat .", "a dog had had enough of it", "we go home now together"]
OUTPUTS = ["the the cat sat on the mat .", "a dog had had had enough of of it", "we go home now"]


def test_quality_equals_sacrebleu_with_its_signatures():
    found = translation_quality(OUTPUTS, REFERENCES)
    assert found.bleu == sacrebleu.corpus_bleu(OUTPUTS, [REFERENCES]).score
    assert found.chrf == sacrebleu.corpus_chrf(OUTPUTS, [REFERENCES]).score
    assert "tok:13a" in found.bleu_signature
    assert "version:" in found.chrf_signature
    assert translation_quality(REFERENCES, REFERENCES).bleu == pytest.approx(100)
    assert (
        translation_quality(["我们回家"], ["我们回家吧"], tokenize="zh").bleu
        > translation_quality(["我们回家"], ["我们回家吧"]).bleu
    )


def test_stutter_follows_the_definition_in_the_claims():
    assert count_repeated_words(["the the cat"], ["the cat"]).rate == 1 / 2
    assert count_repeated_words(["she had had enough"], ["she had had enough"]).rate == 0
    assert count_repeated_words(["she had had had"], ["she had had enough"]).rate == 0
    assert count_repeated_words(["The the cat"], ["the cat"]).rate == 0
    assert count_repeated_words(["word"], ["word"]).rate == 0
    found = count_repeated_words(OUTPUTS, REFERENCES)
    assert found.repeated.tolist() == [1, 1, 0]
    assert found.pairs.tolist() == [7, 8, 3]
    assert found.rate == 2 / 18


def test_unequal_numbers_of_lines_are_rejected():
    expect_error("2 outputs and 1 references", translation_quality, ["a", "b"], ["a"])
    expect_error("0 outputs", count_repeated_words, [], [])
