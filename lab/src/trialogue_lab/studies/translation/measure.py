"""Tasks of a run: scores of the translations of every network, attention, and latencies.

The twin is an autoregressive translator. A refiner predicts all target tokens in parallel and revises them in several
steps. It tries several target lengths, called hypotheses.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from trialogue.generation.translation.scores import count_repeated_words, translation_quality
from trialogue.models.encoder_decoder.network import EncoderDecoder
from trialogue.models.encoder_decoder.refiner import Refiner
from trialogue.models.encoder_decoder.twin import CausalTranslator
from trialogue.samplers.chains.refinement import Refinement
from trialogue.samplers.translation.hypotheses import Translation, remove_repeats
from trialogue.samplers.translation.refining import LengthBeam
from trialogue.samplers.translation.writing import BeamSearch, rerank
from trialogue_lab.analysis.adjacent_attention import refined_attention
from trialogue_lab.ledger import MeasuredRows, Part, parts_by_seed
from trialogue_lab.studies.translation.config import (
    MASK_PREDICT,
    MASKS,
    REFINER,
    RESCORED,
    SMALL,
    TWIN,
    Config,
)
from trialogue_lab.studies.translation.intervals import compute_bleu_interval, compute_stutter_interval
from trialogue_lab.studies.translation.material import (
    HeldOut,
    TranslationCorpus,
    load_corpus,
    load_refiner,
    load_twin,
)
from trialogue_lab.studies.translation_dependency.attention import summarize_attention

Translate = Callable[[Sequence[Sequence[int]], Sequence[int]], list[Translation]]
"""Function from source sentences and their numbers to translations. The numbers select random streams."""
_AT_ONCE = 64
_ATTENDED_PASS = 4
# For each kind of test sentence, whether it is similar to a training sentence, and its minimum number of tokens.
_STRATA = {"familiar": (True, 0), "new": (False, 0), "new, 12 tokens or more": (False, 12)}


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run, which train translation networks and measure them.

    Args:
        config: Settings of the run.

    Returns:
        For each training seed, one task per network that trains it and scores its translations. Three more tasks per
        seed rescore translations, measure attention, and measure latency.
    """
    # Small refiners come before the pupils, which have to wait for the twin.
    refiners = (*SMALL, REFINER, MASK_PREDICT)
    measures: dict[str, Callable[[Config, int, Path], MeasuredRows]] = {
        TWIN: _measure_twin,
        **{arm: partial(_measure_refiner, arm) for arm in refiners},
        "rescored": partial(_measure_refiner, RESCORED),
        "adjacent attention": _measure_adjacent_attention,
        "latency": _measure_latency,
    }
    named = {name.replace(" ", "-"): measure for name, measure in measures.items()}
    return parts_by_seed(config, config.seeds, **named)


def _measure_twin(config: Config, seed: int, artifacts: Path) -> MeasuredRows:
    data, twin = load_corpus(config, seed, artifacts), load_twin(config, seed, artifacts)
    yield _describe_network(TWIN, twin.model)
    for beams in (1, config.beams):
        translate = _make_twin(twin, BeamSearch(beams, config.alpha))
        yield from _score_outputs(
            config, data, translate, {"arm": TWIN, "steps": 0, "hypotheses": beams}, seed
        )


def _measure_refiner(arm: str, config: Config, seed: int, artifacts: Path) -> MeasuredRows:
    """Yield the scores of a refiner's translations.

    A refiner predicts all target tokens in parallel and revises them. If `arm` is `RESCORED`, an autoregressive network
    (the twin) ranks the refiner's candidates.
    """
    data = load_corpus(config, seed, artifacts)
    refiner = load_refiner(config, REFINER if arm == RESCORED else arm, seed, artifacts)
    if arm == REFINER:
        yield _describe_network(arm, refiner.model)
        yield {"kind": "length", **_measure_length_accuracy(refiner, data.tested)}
    for steps, count in _list_settings(config, arm):
        if arm == RESCORED:
            translate = _make_rescorer(
                config, load_twin(config, seed, artifacts), refiner, seed, steps, count
            )
        else:
            translate = _make_refiner(config, refiner, arm, seed, steps, count)
        setting = {"arm": arm, "steps": steps, "hypotheses": count}
        yield from _score_outputs(config, data, translate, setting, seed)


def _list_settings(config: Config, arm: str) -> list[tuple[int, int]]:
    """Return the numbers of revision steps and of tried target lengths with which a refiner is tested."""
    if arm in SMALL:
        return [(1, 1), (4, 1)]
    by_steps = [(steps, config.hypotheses[-1]) for steps in config.steps]
    if arm == MASK_PREDICT:
        return by_steps
    return sorted({*by_steps, *((4, count) for count in config.hypotheses)})


def _describe_network(arm: str, network: EncoderDecoder) -> dict[str, Any]:
    parameters = sum(parameter.numel() for parameter in network.parameters())
    return {"kind": "network", "arm": arm, "parameters": parameters}


def _measure_adjacent_attention(config: Config, seed: int, artifacts: Path) -> MeasuredRows:
    """Yield the attention of a translation network at adjacent positions, for each set of test sentences."""
    sources = load_corpus(config, seed, artifacts).tested.sources
    refiner = load_refiner(config, REFINER, seed, artifacts)
    attention = refined_attention(refiner, sources, _ATTENDED_PASS, seed)
    for number in range(config.sets):
        for row in summarize_attention(attention.where(attention.target % config.sets == number)):
            yield {**row, "arm": REFINER, "set": number}


def _make_twin(twin: CausalTranslator, search: BeamSearch) -> Translate:
    return lambda sources, _: search.translate(twin, sources)


def _make_refiner(
    config: Config, refiner: Refiner, arm: str, seed: int, steps: int, count: int, drop_repeats: bool = False
) -> Translate:
    """Return a translation function that uses a refiner, with given numbers of revision steps and target lengths."""
    start: Literal["mask", "random"] = "mask" if arm in (MASKS, MASK_PREDICT) else "random"
    chain = Refinement(start=start, keep="confident" if arm == MASK_PREDICT else "stutter", steps=steps)
    beam = LengthBeam(steps, count, chain, config.alpha, drop_repeats)
    return lambda sources, numbers: beam.translate(refiner, sources, seed=seed, numbers=numbers)


def _make_rescorer(
    config: Config, twin: CausalTranslator, refiner: Refiner, seed: int, steps: int, count: int
) -> Translate:
    """Return a translation function that lets an autoregressive network rank the candidates of a refiner.

    Repeated words are dropped before ranking.
    """
    refine = _make_refiner(config, refiner, REFINER, seed, steps, count, drop_repeats=True)
    return lambda sources, numbers: rerank(twin, sources, refine(sources, numbers), config.alpha)


def _score_outputs(
    config: Config, data: TranslationCorpus, translate: Translate, setting: dict[str, Any], seed: int
) -> MeasuredRows:
    """Yield the scores of translations, for every set and every kind of test sentences.

    Repeated words in the output of a refiner are dropped first.
    """
    sets = config.small_sets if setting["arm"] in SMALL else config.sets
    tested = data.tested
    places = [place for place in range(config.test) if place % config.sets < sets]
    outputs = _translate_by_length(translate, tested, places)
    unrepeated = {place: remove_repeats(output.best) for place, output in outputs.items()}
    raw = {place: data.vocabulary.decode([output.best])[0] for place, output in outputs.items()}
    final = raw
    if setting["arm"] != TWIN:
        final = {place: data.vocabulary.decode([tokens])[0] for place, tokens in unrepeated.items()}

    def pairs(texts: dict[int, str], chosen: list[int]) -> tuple[list[str], list[str]]:
        return [texts[place] for place in chosen], [tested.references[place] for place in chosen]

    for number in range(sets):
        chosen = [place for place in places if place % config.sets == number]
        scores = translation_quality(*pairs(final, chosen), config.tokenize)
        repeating = [unrepeated[place] != outputs[place].best for place in chosen]
        yield {
            "kind": "set",
            **setting,
            "set": number,
            "bleu": scores.bleu,
            "chrf": scores.chrf,
            "stutter": count_repeated_words(*pairs(raw, chosen)).rate,
            "stutter_dropped": count_repeated_words(*pairs(final, chosen)).rate,
            "passes": float(np.mean([outputs[place].passes for place in chosen])),
            "stuttering": float(np.mean(repeating)),
        }
    for stratum, chosen in _group_sentences(tested, places).items():
        if not chosen:
            continue
        scores = translation_quality(*pairs(final, chosen), config.tokenize)
        interval = compute_bleu_interval(*pairs(final, chosen), seed=seed, tokenize=config.tokenize)
        repeats = count_repeated_words(*pairs(raw, chosen))
        repeats_interval = compute_stutter_interval(repeats, seed)
        yield {
            "kind": "corpus",
            **setting,
            "stratum": stratum,
            "sentences": len(chosen),
            "bleu": scores.bleu,
            "low": interval.low,
            "high": interval.high,
            "chrf": scores.chrf,
            "bleu_signature": scores.bleu_signature,
            "chrf_signature": scores.chrf_signature,
            "stutter": repeats.rate,
            "stutter_low": repeats_interval.low,
            "stutter_high": repeats_interval.high,
        }


def _group_sentences(tested: HeldOut, places: list[int]) -> dict[str, list[int]]:
    strata = {"all": places}
    for name, (familiar, shortest) in _STRATA.items():
        chosen = [place for place in places if tested.familiar[place] == familiar]
        strata[name] = [place for place in chosen if tested.lengths[place] >= shortest]
    return strata


def _translate_by_length(translate: Translate, tested: HeldOut, places: list[int]) -> dict[int, Translation]:
    """Return the translations of the sources with the given indices.

    Sources of similar lengths share a batch.
    """
    order = sorted(places, key=lambda place: len(tested.sources[place]))
    outputs: dict[int, Translation] = {}
    for start in range(0, len(order), _AT_ONCE):
        numbers = order[start : start + _AT_ONCE]
        batch = translate([tested.sources[place] for place in numbers], numbers)
        outputs.update(zip(numbers, batch, strict=True))
    return {place: outputs[place] for place in places}


def _measure_length_accuracy(refiner: Refiner, tested: HeldOut) -> dict[str, float]:
    """Return the shares of sentences whose reference length is among the most probable predicted lengths."""
    ranks = []
    for start in range(0, len(tested.sources), _AT_ONCE):
        _, log_probs = refiner.condition_each(tested.sources[start : start + _AT_ONCE])
        ranks.append(log_probs.topk(min(5, log_probs.shape[1]), 1).indices)
    predicted = torch.cat(ranks)
    references = torch.tensor(tested.lengths)[:, None] - 1
    right = (predicted == references).double()
    return {
        "first": float(right[:, 0].mean()),
        "within_one": float(((predicted[:, :1] - references).abs() <= 1).double().mean()),
        "among_three": float(right[:, :3].sum(1).mean()),
        "among_five": float(right.sum(1).mean()),
    }


def _measure_latency(config: Config, seed: int, artifacts: Path) -> MeasuredRows:
    """Yield the seconds per sentence of the autoregressive network (the twin) and of the refiners.

    They translate each sentence in rotating order. Every round has its own sentences, but all rounds share the long
    ones.
    """
    tested = load_corpus(config, seed, artifacts).tested
    twin, refiner = load_twin(config, seed, artifacts), load_refiner(config, REFINER, seed, artifacts)
    contenders: dict[str, Translate] = {TWIN: _make_twin(twin, BeamSearch())}
    most = config.hypotheses[-1]
    for steps, count in product((4, config.steps[-1]), (1, most)):
        contenders[f"{steps} steps, {count}"] = _make_refiner(config, refiner, REFINER, seed, steps, count)
    contenders[f"4 steps, {most}, rescored"] = _make_rescorer(config, twin, refiner, seed, 4, most)
    long = [place for place in range(config.test) if tested.lengths[place] >= config.long]
    for number in range(config.rounds):
        for name, candidates in {"all": [*range(number, config.test, config.rounds)], "long": long}.items():
            places = _select_evenly(candidates, config.timed)
            seconds: dict[str, list[float]] = {contender: [] for contender in contenders}
            for turn, place in enumerate(places):
                first = turn % len(contenders)
                order = [*contenders.items()]
                for contender, translate in order[first:] + order[:first]:
                    began = time.perf_counter()
                    translate([tested.sources[place]], [place])
                    seconds[contender].append(time.perf_counter() - began)
            for contender, taken in seconds.items() if places else ():
                yield {
                    "kind": "latency",
                    "round": number,
                    "sentences": name,
                    "contender": contender,
                    "timed": len(taken),
                    "median": float(np.median(taken)),
                    "p99": float(np.quantile(taken, 0.99)),
                }


def _select_evenly(places: list[int], most: int) -> list[int]:
    """Select at most `most` of the indices, evenly spaced, because a text may be sorted by length."""
    count = min(most, len(places))
    return [places[index * len(places) // count] for index in range(count)]
