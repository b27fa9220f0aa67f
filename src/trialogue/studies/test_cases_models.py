"""Config of the study `test-cases`, and what its parts share: the oracle, its completions, the verifiers."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from trialogue.data.list_append.prompts import OOD_NAMES, TRAINING_NAMES, Task, random_names
from trialogue.errors import InputError, whole_number
from trialogue.inference import ProbeVerifier, generate, truncated
from trialogue.ledger.study import require_seeds
from trialogue.models.pretrained import PretrainedOracle, load_pretrained
from trialogue.models.probe import hidden_states_of_prefixes
from trialogue.randomness import numpy_generator, seed_of
from trialogue.storage import atomic_write
from trialogue.studies.test_cases_decodings import MAIN, Decoding, block_best_of, grids
from trialogue.studies.test_cases_examples import Completion, Kind, examples_of
from trialogue.studies.test_cases_surrogate import Surrogate, surrogate_prompt, trained_surrogate
from trialogue.training.probes import ProbeConfig, TrainedProbe, train_probe
from trialogue.training.tensor_files import read_tensors, write_tensors

SURROGATE = "surrogate"
_STATES = "test-cases states 1"


TextOracle = Surrogate | PretrainedOracle
"""An oracle whose tokens are text."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """Settings of one run; the defaults are those of the preset `default`."""

    seeds: tuple[int, ...] = tuple(range(8))
    """Repetitions: names, demonstrations and draws of each are its own."""
    verifiers: int = 2
    """Verifiers, each trained on completions of its own; repetitions take turns."""
    model: str = "smollm2"
    """Hub id, folder or short name of a causal language model, or "surrogate"."""
    dtype: str = "float32"
    cases: int = 4
    examples: int = 1
    """Demonstrations of the target function itself, which the thesis' prompts do not have."""
    example_length: int = 2
    names: int = 3
    runs: int = 5
    max_new_tokens: int = 96
    training_prompts: int = 16
    training_runs: int = 12
    collection_parts: int = 4
    """Parts in which the completions that a verifier learns from are drawn."""
    layer: int = 24
    """Blocks after which the verifier reads the hidden state; -1 is what the output head reads."""
    layers: tuple[int, ...] = (6, 12, 18, 24, -1)
    """Layers whose probes are held against each other."""
    depths: tuple[int, ...] = (1,)
    probe_epochs: int = 30
    probe_batch_size: int = 64
    candidates: tuple[int, ...] = (2, 4)
    """Candidates of block best-of-n."""
    grids: bool = False
    """Whether the grids of Tables 3.9, 3.10, 3.11, 3.13 and 3.15 are drawn as well."""
    batch_size: int = 64

    def __post_init__(self) -> None:
        for name in (
            "verifiers",
            "names",
            "runs",
            "max_new_tokens",
            "training_prompts",
            "training_runs",
            "collection_parts",
            "batch_size",
        ):
            whole_number(name, getattr(self, name), 1)
        require_seeds("seeds", self.seeds)
        if self.verifiers > len(self.seeds):
            raise InputError("verifiers", self.verifiers, "use at most one per seed")
        if self.collection_parts > self.training_prompts:
            raise InputError("collection_parts", self.collection_parts, "use at most one per training prompt")
        if self.layer not in self.layers:
            raise InputError("layer", self.layer, f"choose one of layers={self.layers}")
        self.task()
        self.probe(0, 1)

    def task(self) -> Task:
        """Layout of the prompts."""
        return Task(cases=self.cases, examples=self.examples, example_length=self.example_length)

    def probe(self, seed: int, depth: int) -> ProbeConfig:
        """How a verifier is trained."""
        return ProbeConfig(
            depth=depth,
            epochs=self.probe_epochs,
            batch_size=self.probe_batch_size,
            learning_rate=3e-3,
            validation=0.1,
            seed=seed,
        )

    def prompt(self, name: str, seed: int) -> str:
        """A prompt for test cases of `name`."""
        return surrogate_prompt(name) if self.model == SURROGATE else self.task().prompt(name, seed)

    def decodings(self) -> list[Decoding]:
        """Every decoding, each once."""
        found = [*MAIN, *map(block_best_of, self.candidates)]
        if self.grids:
            others = tuple(layer for layer in self.layers if layer != self.layer)
            found += grids(others, tuple(depth for depth in self.depths if depth > 1))
        return list({decoding.name: decoding for decoding in found}.values())

    def repetitions(self, verifier: int) -> tuple[int, ...]:
        """The seeds of the repetitions that use a verifier."""
        return self.seeds[verifier :: self.verifiers]

    def prompts(self, seed: int, out_of_distribution: bool) -> list[tuple[str, str]]:
        """Name and prompt of every target function of a repetition."""
        names = random_names(self.names, seed_of(seed, "test names"), TRAINING_NAMES)
        if out_of_distribution:
            names = list(OOD_NAMES[: self.names])
        return [(name, self.prompt(name, seed_of(seed, "prompt"))) for name in names]


PRESETS = {
    "smoke": Config(
        seeds=(0, 1),
        verifiers=1,
        model=SURROGATE,
        cases=2,
        examples=0,
        names=4,
        runs=3,
        max_new_tokens=48,
        training_prompts=14,
        training_runs=10,
        collection_parts=1,
        layer=-1,
        layers=(1, -1),
        batch_size=256,
    ),
    "default": Config(),
    "paper": Config(
        seeds=tuple(range(5)),
        verifiers=1,
        model="codellama/CodeLlama-7b-hf",
        dtype="float16",
        cases=8,
        examples=0,
        names=10,
        runs=10,
        max_new_tokens=384,
        training_prompts=70,
        training_runs=20,
        collection_parts=10,
        layer=28,
        layers=(4, 8, 12, 16, 20, 24, 25, 26, 27, 28, 29, 30, 31, -1),
        depths=(1, 2, 4, 8),
        probe_epochs=10,
        probe_batch_size=2048,
        candidates=(2, 4, 8),
        grids=True,
    ),
}


_LOADED: dict[tuple[str, str], TextOracle] = {}


def oracle_of(config: Config, artifacts: Path) -> TextOracle:
    """The language model; in one process it is loaded once."""
    if config.model == SURROGATE:
        return trained_surrogate(config.cases, artifacts)
    key = (config.model, config.dtype)
    if key not in _LOADED:
        _LOADED.clear()
        _LOADED[key] = load_pretrained(config.model, dtype=config.dtype)
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


def states_of(
    config: Config, verifier: int, kind: Kind, layers: Sequence[int], artifacts: Path
) -> tuple[Tensor, Tensor]:
    """Hidden states (n, len(layers), width) and labels (n,) of the examples of a verifier."""
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
    states = hidden_states_of_prefixes(oracle, examples.sequences, examples.lengths, layers)
    return states, torch.tensor(examples.labels)


def trained_verifier(
    config: Config, verifier: int, kind: Kind, layer: int, depth: int, artifacts: Path
) -> TrainedProbe:
    """A verifier's probe on one layer, trained on all its examples but those held out."""
    states, labels = _kept_states(config, verifier, kind, artifacts)
    place = config.layers.index(layer)
    seed = seed_of(config.seeds[verifier], "probe", kind)
    return train_probe(states[:, place].contiguous(), labels, config.probe(seed, depth))


def probe_verifier(
    config: Config, verifier: int, kind: Kind, layer: int, depth: int, artifacts: Path
) -> ProbeVerifier:
    """`trained_verifier` as a verifier."""
    return ProbeVerifier(trained_verifier(config, verifier, kind, layer, depth, artifacts).probe, layer)


def _kept_states(config: Config, verifier: int, kind: Kind, artifacts: Path) -> tuple[Tensor, Tensor]:
    path = artifacts / f"states-{kind}-{verifier}.safetensors"
    if not path.exists():
        states, labels = states_of(config, verifier, kind, config.layers, artifacts)
        write_tensors(path, _STATES, {"states": states, "labels": labels}, {})
    kept, _ = read_tensors(path, _STATES, "remove it, so that the states are computed again")
    return kept["states"], kept["labels"]
