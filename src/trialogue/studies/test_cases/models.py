"""What the parts of a run share: the oracle, its completions, the verifiers."""

import json
from pathlib import Path

import torch
from torch import Tensor

from trialogue.data.list_append.prompts import TRAINING_NAMES
from trialogue.errors import InputError
from trialogue.inference import generate, truncated
from trialogue.ledger import note_model
from trialogue.models.pretrained import PretrainedOracle, load_pretrained
from trialogue.models.probe import hidden_states_of_prefixes
from trialogue.randomness import numpy_generator, seed_of
from trialogue.storage import atomic_write
from trialogue.studies.test_cases.config import SURROGATE, Config
from trialogue.studies.test_cases.examples import Completion, Kind, examples_of
from trialogue.studies.test_cases.surrogate import Surrogate, trained_surrogate
from trialogue.tensor_files import read_tensors, write_tensors
from trialogue.training.probes import TrainedProbe, train_probe

_STATES = "test-cases states 1"


TextOracle = Surrogate | PretrainedOracle
"""An oracle whose tokens are text."""

_LOADED: dict[tuple[str, str], PretrainedOracle] = {}


def oracle_of(config: Config, artifacts: Path) -> TextOracle:
    """The language model; in one process it is loaded once."""
    if config.model == SURROGATE:
        return trained_surrogate(config.cases, artifacts)
    key = (config.model, config.dtype)
    if key not in _LOADED:
        _LOADED.clear()
        _LOADED[key] = load_pretrained(config.model, dtype=config.dtype)
    note_model(_LOADED[key].described())
    return _LOADED[key]


def collected(config: Config, verifier: int, part: int, artifacts: Path) -> list[Completion]:
    """Completions for a verifier to learn from, from `artifacts` if they are there."""
    path = artifacts / f"completions-{verifier}-{part}.json"
    if not path.exists():
        oracle, seed = oracle_of(config, artifacts), seed_of(config.seeds[verifier], "training")
        names = [TRAINING_NAMES[index % len(TRAINING_NAMES)] for index in range(config.training_prompts)]
        chosen = list(enumerate(names))[part :: config.collection_parts]
        samples = generate(
            truncated(oracle, top_p=0.95),
            [config.prompt(name, seed_of(seed, index)) for index, name in chosen],
            num_samples=config.training_runs,
            max_new_tokens=config.max_new_tokens,
            batch_size=config.batch_size,
            seed=seed_of(seed, "part", part),
        )
        rows = zip(samples.sequences(), samples.prompt.tolist(), samples.prompt_lengths.tolist(), strict=True)
        completions = [
            Completion(chosen[prompt][1], list(tokens), start, tokens[-1] == oracle.eos)
            for tokens, prompt, start in rows
        ]
        atomic_write(path, json.dumps(completions))
    return [Completion(*fields) for fields in json.loads(path.read_text(encoding="utf-8"))]


def states_of(config: Config, verifier: int, kind: Kind, artifacts: Path) -> tuple[Tensor, Tensor]:
    """Hidden states (n, layers, width) and labels (n,) of a verifier's examples, kept in `artifacts`."""
    path = artifacts / f"states-{kind}-{verifier}.safetensors"
    if path.exists():
        kept, _ = read_tensors(path, _STATES, "remove it, so that the states are computed again")
        return kept["states"], kept["labels"]
    oracle = oracle_of(config, artifacts)
    completions = [
        completion
        for part in range(config.collection_parts)
        for completion in collected(config, verifier, part, artifacts)
    ]
    draw = numpy_generator(config.seeds[verifier], "examples", kind)
    examples = examples_of(completions, oracle.tokenization, config.cases, kind, draw)
    if len(set(examples.labels)) < 2:
        mend = f"they hold {len(examples.labels)} examples of one kind only: draw more"
        raise InputError("training_runs", config.training_runs, mend)
    states = hidden_states_of_prefixes(oracle, examples.sequences, examples.lengths, config.layers)
    labels = torch.tensor(examples.labels)
    write_tensors(path, _STATES, {"states": states, "labels": labels}, {})
    return states, labels


def trained_verifier(
    config: Config, verifier: int, kind: Kind, layer: int, depth: int, artifacts: Path
) -> TrainedProbe:
    """A verifier's probe on one layer, trained on all its examples but those held out."""
    states, labels = states_of(config, verifier, kind, artifacts)
    place = config.layers.index(layer)
    seed = seed_of(config.seeds[verifier], "probe", kind)
    return train_probe(states[:, place].contiguous(), labels, config.probe(seed, depth))
