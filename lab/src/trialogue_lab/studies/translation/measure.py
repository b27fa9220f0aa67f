"""The parts of a run: each network trained and its translations scored, attention, and latencies in turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from trialogue.generation.translation.scores import quality, stutter
from trialogue.models.encoder_decoder.network import EncoderDecoder
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
from trialogue_lab.studies.translation.material import HeldOut, Material, material, refiner_of, twin_of
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
    measures |= {arm: partial(_refined, arm) for arm in (*SMALL, REFINER, MASK_PREDICT)}
    measures["rescored"] = partial(_refined, RESCORED)
    measures |= {"adjacent attention": _adjacent_attention, "latency": _latency}
    return [
        Part(f"{name.replace(' ', '-')}-{seed}", partial(measure, config, seed), columns={"seed": seed})
        for seed in config.seeds
        for name, measure in measures.items()
    ]


def _twin(config: Config, seed: int, artifacts: Path) -> Rows:
    held, twin = material(config, seed, artifacts), twin_of(config, seed, artifacts)
    yield _network(TWIN, twin.model)
    for beams in (1, config.beams):
        translate = _written(twin, BeamSearch(beams, config.alpha))
        yield from _scored(config, held, translate, {"arm": TWIN, "steps": 0, "hypotheses": beams}, seed)


def _refined(arm: str, config: Config, seed: int, artifacts: Path) -> Rows:
    """The translations of a refiner, by itself or, where it is rescored, as the twin ranks them."""
    held = material(config, seed, artifacts)
    refiner = refiner_of(config, REFINER if arm == RESCORED else arm, seed, artifacts)
    if arm == REFINER:
        yield _network(arm, refiner.model)
        yield {"kind": "length", **_lengths(refiner, held.tested)}
    for steps, count in _settings(config, arm):
        if arm == RESCORED:
            translate = _ranked(config, twin_of(config, seed, artifacts), refiner, seed, steps, count)
        else:
            translate = _refining(config, refiner, arm, seed, steps, count)
        yield from _scored(config, held, translate, {"arm": arm, "steps": steps, "hypotheses": count}, seed)


def _settings(config: Config, arm: str) -> list[tuple[int, int]]:
    """Steps and hypotheses by which a refiner translates."""
    if arm in SMALL:
        return [(1, 1), (4, 1)]
    by_steps = [(steps, config.hypotheses[-1]) for steps in config.steps]
    if arm == MASK_PREDICT:
        return by_steps
    return sorted({*by_steps, *((4, count) for count in config.hypotheses)})


def _network(arm: str, network: EncoderDecoder) -> dict[str, Any]:
    return {
        "kind": "network",
        "arm": arm,
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
    }


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
    start: Literal["mask", "random"] = "mask" if arm in (MASKS, MASK_PREDICT) else "random"
    chain = Refinement(start=start, keep="confident" if arm == MASK_PREDICT else "stutter", steps=steps)
    beam = LengthBeam(steps, count, chain, config.alpha, drop_repeats)
    return lambda sources, numbers: beam.translate(refiner, sources, seed=seed, numbers=numbers)


def _ranked(
    config: Config, twin: CausalTranslator, refiner: Refiner, seed: int, steps: int, count: int
) -> Translate:
    """Candidates of the refiner without their repeats, which is what the twin then ranks."""
    refine = _refining(config, refiner, REFINER, seed, steps, count, drop_repeats=True)
    return lambda sources, numbers: rescored(twin, sources, refine(sources, numbers), config.alpha)


def _scored(config: Config, held: Material, translate: Translate, setting: dict[str, Any], seed: int) -> Rows:
    """Rows of every set of test sentences, and of all of them by stratum; refiners' repeats are dropped for scores."""
    sets = config.small_sets if setting["arm"] in SMALL else config.sets
    tested = held.tested
    places = [place for place in range(config.test) if place % config.sets < sets]
    answers = _in_order_of_length(translate, tested, places)
    unrepeated = {place: without_repeats(answer.best) for place, answer in answers.items()}
    spoken = {place: held.vocabulary.decode([answer.best])[0] for place, answer in answers.items()}
    dropped = spoken
    if setting["arm"] != TWIN:
        dropped = {place: held.vocabulary.decode([tokens])[0] for place, tokens in unrepeated.items()}

    def of(texts: dict[int, str], chosen: list[int]) -> tuple[list[str], list[str]]:
        return [texts[place] for place in chosen], [tested.references[place] for place in chosen]

    for number in range(sets):
        chosen = [place for place in places if place % config.sets == number]
        scores = quality(*of(dropped, chosen), config.tokenize)
        stuttering = [unrepeated[place] != answers[place].best for place in chosen]
        yield {
            "kind": "set",
            **setting,
            "set": number,
            "bleu": scores.bleu,
            "chrf": scores.chrf,
            "stutter": stutter(*of(spoken, chosen)).rate,
            "stutter_dropped": stutter(*of(dropped, chosen)).rate,
            "passes": float(np.mean([answers[place].passes for place in chosen])),
            "stuttering": float(np.mean(stuttering)),
        }
    for stratum, chosen in _strata(tested, places).items():
        if not chosen:
            continue
        scores = quality(*of(dropped, chosen), config.tokenize)
        interval = bleu_interval(*of(dropped, chosen), seed=seed, tokenize=config.tokenize)
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


def _in_order_of_length(translate: Translate, tested: HeldOut, places: list[int]) -> dict[int, Translation]:
    """Translations of the sources at `places`, by place; sources of a like length are translated together."""
    order = sorted(places, key=lambda place: len(tested.sources[place]))
    found: dict[int, Translation] = {}
    for start in range(0, len(order), _AT_ONCE):
        numbers = order[start : start + _AT_ONCE]
        answers = translate([tested.sources[place] for place in numbers], numbers)
        found.update(zip(numbers, answers, strict=True))
    return {place: found[place] for place in places}


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
                first = turn % len(contenders)
                order = [*contenders.items()]
                for contender, translate in order[first:] + order[:first]:
                    begun = time.perf_counter()
                    translate([held.sources[place]], [place])
                    seconds[contender].append(time.perf_counter() - begun)
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


def _spread(places: list[int], most: int) -> list[int]:
    """At most so many of `places`, evenly: a table of pairs may be in the order of its lengths."""
    count = min(most, len(places))
    return [places[index * len(places) // count] for index in range(count)]
