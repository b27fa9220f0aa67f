"""The parts of a run: each network trained and its translations scored, attention, and latencies in turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

from trialogue.generation.translation.scores import quality, stutter
from trialogue.models.encoder_decoder.refiner import Refiner
from trialogue.models.encoder_decoder.twin import CausalTranslator
from trialogue.samplers.chains.refinement import Refinement
from trialogue.samplers.translation.hypotheses import Translation, without_repeats
from trialogue.samplers.translation.refining import LengthBeam
from trialogue.samplers.translation.writing import BeamSearch, rescored
from trialogue_lab.analysis.adjacent_attention import refined_attention
from trialogue_lab.ledger import Part
from trialogue_lab.studies.translation.config import (
    MASK_PREDICT,
    MASKS,
    REFINER,
    RESCORED,
    SMALL,
    TWIN,
    Config,
)
from trialogue_lab.studies.translation.intervals import bleu_interval, stutter_interval
from trialogue_lab.studies.translation.material import (
    HeldOut,
    Material,
    material,
    parameters,
    refiner_of,
    twin_of,
)
from trialogue_lab.studies.translation_dependency.attention import attention_rows

Rows = Iterator[dict[str, Any]]
Translate = Callable[[Sequence[Sequence[int]], Sequence[int]], list[Translation]]
"""Translations of sources, each of which draws as its number says"""
_AT_ONCE = 64
_ATTENDED_PASS = 4
_STRATA = {"familiar": (True, 0), "new": (False, 0), "new, 12 tokens or more": (False, 12)}
"""What a stratum's sentences are: whether a training sentence has the target but for one word, and tokens at least."""


def parts(config: Config) -> list[Part]:
    """For each seed: the twin, its pupils, the small refiners, how the refiner attends, and what takes how long."""
    measures: dict[str, Callable[[Config, int, Path], Rows]] = {TWIN: _twin}
    # Before the pupils, which wait for the twin.
    measures |= {arm: partial(_small, arm) for arm in SMALL}
    measures |= {REFINER: _refiner, MASK_PREDICT: _mask_predict}
    measures["rescored"] = _rescored
    measures["adjacent attention"] = _adjacent_attention
    measures["latency"] = _latency
    return [
        Part(f"{name.replace(' ', '-')}-{seed}", partial(measure, config, seed), columns={"seed": seed})
        for seed in config.seeds
        for name, measure in measures.items()
    ]


def _twin(config: Config, seed: int, artifacts: Path) -> Rows:
    held = material(config, seed, artifacts)
    twin = twin_of(config, seed, artifacts)
    yield {"kind": "network", "arm": TWIN, "parameters": parameters(twin.model)}
    for beams in (1, config.beams):
        search = BeamSearch(beams, config.alpha)
        setting = {"arm": TWIN, "steps": 0, "hypotheses": beams}
        yield from _scored(config, held, _written(twin, search), setting, seed)


def _refiner(config: Config, seed: int, artifacts: Path) -> Rows:
    held = material(config, seed, artifacts)
    refiner = refiner_of(config, REFINER, seed, artifacts)
    yield {"kind": "network", "arm": REFINER, "parameters": parameters(refiner.model)}
    yield {"kind": "length", **_lengths(refiner, held.tested)}
    for steps, count in _asked(config):
        setting = {"arm": REFINER, "steps": steps, "hypotheses": count}
        translate = _refining(config, refiner, REFINER, seed, steps, count)
        yield from _scored(config, held, translate, setting, seed)


def _rescored(config: Config, seed: int, artifacts: Path) -> Rows:
    held, twin = material(config, seed, artifacts), twin_of(config, seed, artifacts)
    refiner = refiner_of(config, REFINER, seed, artifacts)
    for steps, count in _asked(config):
        setting = {"arm": RESCORED, "steps": steps, "hypotheses": count}
        translate = _ranked(config, twin, refiner, seed, steps, count)
        yield from _scored(config, held, translate, setting, seed)


def _asked(config: Config) -> list[tuple[int, int]]:
    """Steps and hypotheses that the refiner translates by."""
    most = config.hypotheses[-1]
    return sorted({(steps, most) for steps in config.steps} | {(4, count) for count in config.hypotheses})


def _mask_predict(config: Config, seed: int, artifacts: Path) -> Rows:
    held, most = material(config, seed, artifacts), config.hypotheses[-1]
    refiner = refiner_of(config, MASK_PREDICT, seed, artifacts)
    for steps in config.steps:
        setting = {"arm": MASK_PREDICT, "steps": steps, "hypotheses": most}
        translate = _refining(config, refiner, MASK_PREDICT, seed, steps, most)
        yield from _scored(config, held, translate, setting, seed)


def _small(arm: str, config: Config, seed: int, artifacts: Path) -> Rows:
    held = material(config, seed, artifacts)
    refiner = refiner_of(config, arm, seed, artifacts)
    for steps in (1, 4):
        setting = {"arm": arm, "steps": steps, "hypotheses": 1}
        translate = _refining(config, refiner, arm, seed, steps, 1)
        yield from _scored(config, held, translate, setting, seed, config.small_sets)


def _adjacent_attention(config: Config, seed: int, artifacts: Path) -> Rows:
    """Of every set of test sentences, how the refiner attends at positions side by side, in the last of its passes."""
    sources = material(config, seed, artifacts).tested.sources
    found = refined_attention(refiner_of(config, REFINER, seed, artifacts), sources, _ATTENDED_PASS, seed)
    for number in range(config.sets):
        for row in attention_rows(found.where(found.target % config.sets == number)):
            yield {**row, "arm": REFINER, "set": number}


def _written(twin: CausalTranslator, search: BeamSearch) -> Translate:
    return lambda sources, _: search.translate(twin, sources)


def _refining(
    config: Config, refiner: Refiner, arm: str, seed: int, steps: int, count: int, drop_repeats: bool = False
) -> Translate:
    if arm == MASK_PREDICT:
        chain = Refinement(start="mask", keep="confident", steps=steps)
    else:
        chain = Refinement(start="mask" if arm == MASKS else "random", steps=steps)
    beam = LengthBeam(steps, count, chain, config.alpha, drop_repeats)
    return lambda sources, numbers: beam.translate(refiner, sources, seed=seed, numbers=numbers)


def _ranked(
    config: Config, twin: CausalTranslator, refiner: Refiner, seed: int, steps: int, count: int
) -> Translate:
    """Candidates of the refiner without their repeats, which is what the twin then ranks."""
    refine = _refining(config, refiner, REFINER, seed, steps, count, drop_repeats=True)
    return lambda sources, numbers: rescored(twin, sources, refine(sources, numbers), config.alpha)


def _scored(
    config: Config,
    held: Material,
    translate: Translate,
    setting: dict[str, Any],
    seed: int,
    sets: int | None = None,
) -> Rows:
    """Rows of every set of test sentences, and of all of them by stratum; refiners' repeats are dropped for scores."""
    sets = config.sets if sets is None else sets
    tested = held.tested
    places = [place for place in range(config.test) if place % config.sets < sets]
    answers = dict(zip(places, _in_order_of_length(translate, tested, places), strict=True))
    spoken = {place: held.vocabulary.decode([answer.best])[0] for place, answer in answers.items()}
    dropped = spoken
    if setting["arm"] != TWIN:
        dropped = {
            place: held.vocabulary.decode([without_repeats(answer.best)])[0]
            for place, answer in answers.items()
        }

    def of(texts: dict[int, str], chosen: list[int]) -> tuple[list[str], list[str]]:
        return [texts[place] for place in chosen], [tested.references[place] for place in chosen]

    for number in range(sets):
        chosen = [place for place in places if place % config.sets == number]
        scores, said = quality(*of(dropped, chosen), config.tokenize), stutter(*of(spoken, chosen))
        yield {
            "kind": "set",
            **setting,
            "set": number,
            "bleu": scores.bleu,
            "chrf": scores.chrf,
            "stutter": said.rate,
            "stutter_dropped": stutter(*of(dropped, chosen)).rate,
            "passes": float(np.mean([answers[place].passes for place in chosen])),
            "stuttering": float(
                np.mean([without_repeats(answers[place].best) != answers[place].best for place in chosen])
            ),
        }
    for stratum, chosen in _strata(tested, places).items():
        if not chosen:
            continue
        outputs, references = of(dropped, chosen)
        scores = quality(outputs, references, config.tokenize)
        interval = bleu_interval(outputs, references, seed=seed, tokenize=config.tokenize)
        said = stutter(*of(spoken, chosen))
        repeated = stutter_interval(said, seed)
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
            "stutter": said.rate,
            "stutter_low": repeated.low,
            "stutter_high": repeated.high,
        }


def _strata(tested: HeldOut, places: list[int]) -> dict[str, list[int]]:
    strata = {"all": places}
    for name, (familiar, least) in _STRATA.items():
        strata[name] = [
            place for place in places if tested.familiar[place] == familiar and tested.lengths[place] >= least
        ]
    return strata


def _in_order_of_length(translate: Translate, tested: HeldOut, places: list[int]) -> list[Translation]:
    """Translations of the sources at `places`, of which those of a like length go together."""
    order = sorted(range(len(places)), key=lambda index: len(tested.sources[places[index]]))
    found: list[Translation | None] = [None] * len(places)
    for start in range(0, len(order), _AT_ONCE):
        indices = order[start : start + _AT_ONCE]
        numbers = [places[index] for index in indices]
        answers = translate([tested.sources[place] for place in numbers], numbers)
        for index, answer in zip(indices, answers, strict=True):
            found[index] = answer
    return [answer for answer in found if answer is not None]


def _lengths(refiner: Refiner, tested: HeldOut) -> dict[str, float]:
    """How often the likeliest lengths are right: the first, within one, among three, among five."""
    ranks = []
    for start in range(0, len(tested.sources), _AT_ONCE):
        _, laws = refiner.condition_each(tested.sources[start : start + _AT_ONCE])
        ranks.append(laws.topk(min(5, laws.shape[1]), 1).indices)
    found = torch.cat(ranks)
    wanted = torch.tensor(tested.lengths)[:, None] - 1
    right = (found == wanted).double()
    return {
        "first": float(right[:, 0].mean()),
        "within_one": float(((found[:, :1] - wanted).abs() <= 1).double().mean()),
        "among_three": float(right[:, :3].sum(1).mean()),
        "among_five": float(right.sum(1).mean()),
    }


def _latency(config: Config, seed: int, artifacts: Path) -> Rows:
    """Seconds of single sentences, by the twin and by refiners in turns; which of them begins is another each time.

    A round has sentences of its own; of the long ones there are too few, and each has all of them.
    """
    held = material(config, seed, artifacts).tested
    twin, refiner = twin_of(config, seed, artifacts), refiner_of(config, REFINER, seed, artifacts)
    contenders: dict[str, Translate] = {TWIN: _written(twin, BeamSearch())}
    most = config.hypotheses[-1]
    for steps, count in product((4, config.steps[-1]), (1, most)):
        contenders[f"{steps} steps, {count}"] = _refining(config, refiner, REFINER, seed, steps, count)
    contenders[f"4 steps, {most}, rescored"] = _ranked(config, twin, refiner, seed, 4, most)
    every = list(range(config.test))
    long = [place for place in every if held.lengths[place] >= config.long]
    for number in range(config.rounds):
        for name, among in {"all": every[number :: config.rounds], "long": long}.items():
            places = _spread(among, config.timed)
            seconds: dict[str, list[float]] = {contender: [] for contender in contenders}
            for turn, place in enumerate(places):
                order = list(contenders.items())
                first = turn % len(order)
                for contender, translate in order[first:] + order[:first]:
                    begun = time.perf_counter()
                    translate([held.sources[place]], [place])
                    seconds[contender].append(time.perf_counter() - begun)
            for contender, taken in seconds.items():
                if taken:
                    yield {
                        "kind": "latency",
                        "round": number,
                        "sentences": name,
                        "contender": contender,
                        "timed": len(taken),
                        "median": float(np.median(taken)),
                        "p99": float(np.quantile(taken, 0.99)),
                    }


def _spread(places: list[int], most: int) -> list[int]:
    """At most so many of `places`, evenly: a table of pairs may be in the order of its lengths."""
    count = min(most, len(places))
    return [places[index * len(places) // count] for index in range(count)]
