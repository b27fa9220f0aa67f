"""Tasks of a run: training of the verifiers, completions of every decoding method, and processor time."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from trialogue_lab.data.list_append.cases import evaluate
from trialogue_lab.ledger import MeasuredRows, Part
from trialogue_lab.studies.test_cases.config import Config, MeasuredModel
from trialogue_lab.studies.test_cases.decodings import EXTENTS, DecodingRule
from trialogue_lab.studies.test_cases.draws import measure_decoding, measure_speed
from trialogue_lab.studies.test_cases.learning import Kind, collect_completions, load_oracle, train_verifier


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run, in which language models write test cases of Python functions.

    A task trains the verifiers of one repetition, or measures decoding methods. Tasks of the same chain run one after
    the other, for example all tasks of one model that is trained from scratch.

    Args:
        config: Settings of the run.
    """
    return [*_pretrained_tasks(config), *_scratch_tasks(config)]


def _pretrained_tasks(config: Config) -> Iterator[Part]:
    subject, columns = config.pretrained, {"model": "pretrained"}
    together = 1 if subject.is_surrogate else subject.together
    for first in range(0, len(config.seeds), together):
        seeds = config.seeds[first : first + together]
        chain = f"pretrained-{seeds[0]}"
        for seed in seeds:
            yield Part(f"pretrained-{seed}-learn", partial(measure_learning, subject, seed), chain, columns)
        for extent in EXTENTS:
            chosen = [seed for seed in seeds if seed in config.repetitions("pretrained", extent)]
            for decoding in config.decodings("pretrained", extent) if chosen else ():
                measure = partial(measure_decoding, subject, chosen, decoding)
                yield Part(f"{chain}-{decoding.name}", measure, chain, columns)
        for seed in seeds:
            if seed in config.repetitions("pretrained", "comparisons"):
                yield Part(f"pretrained-{seed}-speed", partial(measure_speed, subject, seed), chain, columns)


def _scratch_tasks(config: Config) -> Iterator[Part]:
    subject, columns = config.scratch, {"model": "scratch"}
    for seed in config.scratch_seeds:
        chain = f"scratch-{seed}"
        yield Part(f"{chain}-learn", partial(measure_learning, subject, seed), chain, columns)
        for extent in EXTENTS:
            measure = partial(_measure_decodings, subject, seed, config.decodings("scratch", extent))
            yield Part(f"{chain}-{extent}", measure, chain, columns)
        yield Part(f"{chain}-speed", partial(measure_speed, subject, seed), chain, columns)


def measure_learning(subject: MeasuredModel, seed: int, artifacts: Path) -> MeasuredRows:
    """Count the errors of the training completions, and train verifiers on several layers.

    A training completion is text that the language model generated for a test-case prompt. A verifier is a classifier
    of its prefixes. Verifiers differ in the layer that they read, their own number of layers, and the kind of prefix.

    Args:
        subject: The language model and the sizes of its measurements.
        seed: Seed of the repetition.
        artifacts: Folder of models, completions and hidden states.

    Yields:
        One row per kind of the first error in a completion with its count, and one row per verifier with its validation
        accuracy (Tables 3.9 and 3.11).
    """
    oracle = load_oracle(subject, seed, artifacts)
    counts: Counter[str] = Counter()
    for completion in collect_completions(subject, seed, artifacts):
        text = oracle.tokenization.text(completion.tokens[completion.start :])
        error = evaluate(text, completion.name, subject.cases, final=completion.ended).error
        counts["none" if error is None else error.value] += 1
    for error_name, count in sorted(counts.items()):
        yield {"table": "collect", "seed": seed, "error": error_name, "count": count}
    settings: list[tuple[Kind, int, int]] = [("token", layer, 1) for layer in subject.layers]
    settings += [("token", subject.layer, depth) for depth in subject.depths if depth > 1]
    for kind, layer, depth in (*settings, ("block", subject.layer, 1)):
        trained = train_verifier(subject, seed, kind, layer, depth, artifacts)
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
    subject: MeasuredModel, seed: int, decodings: Sequence[DecodingRule], artifacts: Path
) -> MeasuredRows:
    for decoding in decodings:
        yield from measure_decoding(subject, [seed], decoding, artifacts)
