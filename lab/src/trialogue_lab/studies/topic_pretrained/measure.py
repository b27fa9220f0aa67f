"""Tasks of a run: measurements of every model on every text, for one sample of passages at a time."""

import json
from functools import cache, lru_cache, partial
from pathlib import Path

from trialogue.data.corpus.documents import Passage, split_documents, split_passages
from trialogue.data.corpus.hub import HUB, load_hub_texts
from trialogue.data.corpus.texts import open_local_text
from trialogue.inspection.topic_structure.measure import TopicMeasurement, measure_topics
from trialogue.inspection.topic_structure.ratios import DIFFERENT, SAME, TOGETHER
from trialogue.models.hub.attention_weights import AttentionModel, load_attention_model
from trialogue.randomness import numpy_generator
from trialogue.storage import make_folder
from trialogue_lab.ledger import MeasuredRows, Part, record_model
from trialogue_lab.studies.topic_pretrained.config import MODELS, Config, Name
from trialogue_lab.studies.topic_pretrained.statistics import PRETRAINED, RANDOM
from trialogue_lab.studies.topic_pretrained.tiny import make_synthetic_documents, make_tiny_model

_TOPICS_SHOWN = 8


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run, one for each pretrained model and seed.

    Each task measures how similar a model's representations of two words are, for words of the same topic and of
    different topics. The tasks of a model run in order, so that the model is loaded once.

    Args:
        config: Settings of the run.

    Returns:
        The tasks.
    """
    return [
        Part(
            f"{name}-{seed}",
            partial(_measure_model, config, name, seed),
            lane=name,
            columns={"model": name, "seed": seed},
        )
        for name in config.models
        for seed in config.seeds
    ]


def _measure_model(config: Config, name: Name, seed: int, artifacts: Path) -> MeasuredRows:
    model = _load_model(name, config.tiny)
    if not config.tiny:
        record_model({"model": MODELS[name].location, "files": model.files})
    for text in config.texts:
        passages, files = _load_passages(text, config.passage)
        record_model({"text": text or "made-up documents", "files": files})
        chosen = numpy_generator(seed, "draw", text).permutation(len(passages))[: config.sample]
        measurements = measure_topics(
            model,
            [passages[place] for place in sorted(chosen)],
            config.topic_settings(seed),
            folder=make_folder(artifacts / "topics"),
            control=text == config.texts[0],
            control_read=config.control_read,
        )
        words = measurements[0].words
        yield {
            "kind": "words",
            "text": text,
            "words": len(words.names),
            "occurrences": words.occurrences,
            "several": words.several,
            "several_kinds": words.several_kinds,
            "passages": len(chosen),
            "documents": len({passages[place].document for place in chosen}),
        }
        for rank, row in enumerate(measurements[0].top_words(min(8, *config.words))[:_TOPICS_SHOWN]):
            yield {"kind": "topic", "text": text, "rank": rank, "likeliest": " ".join(row)}
        for weights, measurement in zip((PRETRAINED, RANDOM), measurements, strict=False):
            yield from _compare_word_pairs(config, text, weights, measurement)


def _compare_word_pairs(
    config: Config, text: str, weights: str, measurement: TopicMeasurement
) -> MeasuredRows:
    for words in config.words:
        for single in (True, False) if weights == PRETRAINED else (True,):
            for one in measurement.compare(words, single=single):
                yield {
                    "kind": "comparison",
                    "text": text,
                    "weights": weights,
                    "words": words,
                    "single": single,
                    "measure": one.measure,
                    "same": one.means[SAME].estimate,
                    "different": one.means[DIFFERENT].estimate,
                    "together": one.means[TOGETHER].estimate,
                    "same_pairs": one.pairs[SAME],
                    "different_pairs": one.pairs[DIFFERENT],
                    "together_pairs": one.pairs[TOGETHER],
                }


@lru_cache(1)
def _load_model(name: Name, tiny: bool) -> AttentionModel:
    if tiny:
        return make_tiny_model(name, causal=name in ("smollm2", "gemma3"))
    return load_attention_model(MODELS[name].location)


@cache
def _load_passages(text: str, words: int) -> tuple[list[Passage], str]:
    """Split a text into passages, and return them with JSON that identifies the version of its files."""
    if not text:
        return split_passages(make_synthetic_documents(), words), ""
    texts = load_hub_texts(text)[0] if text in HUB and not Path(text).exists() else open_local_text(text)
    return split_passages(split_documents(texts), words), json.dumps(texts.identity)
