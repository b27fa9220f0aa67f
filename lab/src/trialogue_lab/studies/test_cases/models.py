"""What the parts of a repetition share: the oracle, the completions that its verifiers learn from, the verifiers."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.models.pretrained import PretrainedOracle, load_pretrained
from trialogue.models.probe import hidden_states_of_prefixes
from trialogue.randomness import numpy_generator, seed_of
from trialogue.samplers import generate, truncated
from trialogue.storage import atomic_write
from trialogue.tensor_files import read_tensors, write_tensors
from trialogue.training.probes import TrainedProbe, train_probe
from trialogue_lab.data.list_append.cases import evaluate
from trialogue_lab.ledger import note_model
from trialogue_lab.studies.test_cases.examples import Completion, Kind, TextTokens, examples_of
from trialogue_lab.studies.test_cases.subjects import Subject
from trialogue_lab.studies.test_cases.surrogate import Surrogate, trained_surrogate

_STATES = "test-cases states 1"


TextOracle = Surrogate | PretrainedOracle
"""An oracle whose tokens are text."""

_LOADED: dict[tuple[str, str, str], PretrainedOracle] = {}


def oracle_of(subject: Subject, seed: int, artifacts: Path) -> TextOracle:
    """The language model of a repetition; a pretrained one is the same in all, and loaded once in one process."""
    if subject.is_surrogate:
        return trained_surrogate(subject.cases, subject.training_steps, seed, artifacts)
    key = (subject.model, subject.dtype, subject.weights)
    if key not in _LOADED:
        _LOADED.clear()
        _LOADED[key] = load_pretrained(subject.model, dtype=subject.dtype, weights=subject.weights)
    note_model(_LOADED[key].described())
    return _LOADED[key]


def collected(subject: Subject, seed: int, artifacts: Path) -> list[Completion]:
    """Completions for the verifiers of a repetition to learn from, from `artifacts` if they are there.

    Each ends with the line that holds its first error, if it has one: nothing is learned from what follows.
    """
    path = artifacts / f"completions-{seed}.json"
    if not path.exists():
        oracle, prompts = oracle_of(subject, seed, artifacts), subject.training_prompts_of(seed)
        samples = generate(
            truncated(oracle, top_p=0.95),
            [prompt for _, prompt in prompts],
            num_samples=subject.training_runs,
            max_new_tokens=subject.max_new_tokens,
            batch_size=subject.batch_size,
            stop=after_first_error({name for name, _ in prompts}, oracle.tokenization, subject.cases),
            seed=seed_of(seed, "training completions"),
        )
        rows = zip(samples.sequences(), samples.prompt.tolist(), samples.prompt_lengths.tolist(), strict=True)
        completions = [
            Completion(prompts[prompt][0], list(tokens), start, tokens[-1] == oracle.eos)
            for tokens, prompt, start in rows
        ]
        atomic_write(path, json.dumps(completions))
    return [Completion(*fields) for fields in json.loads(path.read_text(encoding="utf-8"))]


def after_first_error(
    names: set[str], tokenization: TextTokens, cases: int
) -> Callable[[Sequence[int]], bool]:
    """Whether a completion has ended the line of its first error, whichever of `names` its prompt asked for.

    A completion that is in order for one of the names goes on: the rule does not see the prompt.
    """
    newlines = set(tokenization.tokens_ending_with("\n").tolist())

    def erred(completion: Sequence[int]) -> bool:
        if not completion or completion[-1] not in newlines:
            return False
        text = tokenization.text(completion, final=False)
        return all(evaluate(text, name, cases, final=False).error is not None for name in names)

    return erred


def states_of(subject: Subject, seed: int, kind: Kind, artifacts: Path) -> tuple[Tensor, Tensor]:
    """Hidden states (n, layers, width) and labels (n,) of the verifiers' examples, kept in `artifacts`."""
    path = artifacts / f"states-{kind}-{seed}.safetensors"
    if path.exists():
        kept, _ = read_tensors(path, _STATES, "remove it, so that the states are computed again")
        return kept["states"], kept["labels"]
    oracle, completions = oracle_of(subject, seed, artifacts), collected(subject, seed, artifacts)
    draw = numpy_generator(seed, "examples", kind)
    examples = examples_of(completions, oracle.tokenization, subject.cases, kind, draw)
    if len(set(examples.labels)) < 2:
        hint = f"they hold {len(examples.labels)} examples of one kind only: draw more"
        raise InputError("training_runs", subject.training_runs, hint)
    states = hidden_states_of_prefixes(oracle, examples.sequences, examples.lengths, subject.layers)
    labels = torch.tensor(examples.labels)
    write_tensors(path, _STATES, {"states": states, "labels": labels}, {})
    return states, labels


def trained_verifier(
    subject: Subject, seed: int, kind: Kind, layer: int, depth: int, artifacts: Path
) -> TrainedProbe:
    """A verifier's probe on one layer, trained on all its examples but those held out."""
    states, labels = states_of(subject, seed, kind, artifacts)
    place = subject.layers.index(layer)
    config = subject.probe(seed_of(seed, "probe", kind), depth)
    return train_probe(states[:, place].contiguous(), labels, config)
