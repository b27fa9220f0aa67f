"""The parts of a run: what verifiers learn from, how well they do, what each decoding draws, and what it takes."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from trialogue_lab.data.list_append.cases import evaluate
from trialogue_lab.ledger import Part
from trialogue_lab.studies.test_cases.config import Config, Subject
from trialogue_lab.studies.test_cases.decodings import EXTENTS, DecodingRule
from trialogue_lab.studies.test_cases.draws import measure_decoding, measure_speed
from trialogue_lab.studies.test_cases.learning import Kind, collected, oracle_of, trained_verifier

Rows = Iterator[dict[str, Any]]


def parts(config: Config) -> list[Part]:
    """A lane for each model trained from scratch, and one for the repetitions that the pretrained model draws together.

    Parts of the pretrained model hold one repetition's learning, or one decoding; those from scratch one extent.
    """
    return [*_pretrained_parts(config), *_scratch_parts(config)]


def _pretrained_parts(config: Config) -> Iterator[Part]:
    subject, columns = config.pretrained, {"model": "pretrained"}
    together = 1 if subject.is_surrogate else subject.together
    for first in range(0, len(config.seeds), together):
        seeds = config.seeds[first : first + together]
        lane = f"pretrained-{seeds[0]}"
        for seed in seeds:
            yield Part(f"pretrained-{seed}-learn", partial(measure_learning, subject, seed), lane, columns)
        for extent in EXTENTS:
            chosen = [seed for seed in seeds if seed in config.repetitions("pretrained", extent)]
            for decoding in config.decodings("pretrained", extent) if chosen else ():
                measure = partial(measure_decoding, subject, chosen, decoding)
                yield Part(f"{lane}-{decoding.name}", measure, lane, columns)
        for seed in seeds:
            if seed in config.repetitions("pretrained", "comparisons"):
                yield Part(f"pretrained-{seed}-speed", partial(measure_speed, subject, seed), lane, columns)


def _scratch_parts(config: Config) -> Iterator[Part]:
    subject, columns = config.scratch, {"model": "scratch"}
    for seed in config.scratch_seeds:
        lane = f"scratch-{seed}"
        yield Part(f"{lane}-learn", partial(measure_learning, subject, seed), lane, columns)
        for extent in EXTENTS:
            measure = partial(_measure_decodings, subject, seed, config.decodings("scratch", extent))
            yield Part(f"{lane}-{extent}", measure, lane, columns)
        yield Part(f"{lane}-speed", partial(measure_speed, subject, seed), lane, columns)


def measure_learning(subject: Subject, seed: int, artifacts: Path) -> Rows:
    """How the completions that verifiers learn from go wrong, and the validation accuracy of the verifiers' probes.

    A count for each first error; then a probe for every layer, depth and kind (Tables 3.9 and 3.11).
    """
    oracle = oracle_of(subject, seed, artifacts)
    found: Counter[str] = Counter()
    for completion in collected(subject, seed, artifacts):
        text = oracle.tokenization.text(completion.tokens[completion.start :])
        error = evaluate(text, completion.name, subject.cases, final=completion.ended).error
        found["none" if error is None else error.value] += 1
    for error_name, count in sorted(found.items()):
        yield {"table": "collect", "seed": seed, "error": error_name, "count": count}
    settings: list[tuple[Kind, int, int]] = [("token", layer, 1) for layer in subject.layers]
    settings += [("token", subject.layer, depth) for depth in subject.depths if depth > 1]
    for kind, layer, depth in (*settings, ("block", subject.layer, 1)):
        trained = trained_verifier(subject, seed, kind, layer, depth, artifacts)
        yield {
            "table": "probe",
            "seed": seed,
            "kind": kind,
            "layer": layer,
            "depth": depth,
            "network": subject.model.rpartition("/")[2],
            "chosen": layer == subject.layer,
            "examples": trained.train_size + trained.validation_size,
            "train_accuracy": trained.train_accuracy,
            "validation_accuracy": trained.validation_accuracy,
        }


def _measure_decodings(
    subject: Subject, seed: int, decodings: Sequence[DecodingRule], artifacts: Path
) -> Rows:
    for decoding in decodings:
        yield from measure_decoding(subject, [seed], decoding, artifacts)
