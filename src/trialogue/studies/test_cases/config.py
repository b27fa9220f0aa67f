"""Settings of the study: the model, its prompts, the verifiers and the decodings."""

from dataclasses import dataclass

from trialogue.data.list_append.prompts import OOD_NAMES, TRAINING_NAMES, Task, random_names
from trialogue.errors import InputError
from trialogue.ledger.settings import Count, Different, Natural, Seeds, Settings
from trialogue.randomness import seed_of
from trialogue.studies.test_cases.decodings import MAIN, DecodingRule, block_best_of, grids
from trialogue.studies.test_cases.surrogate import surrogate_prompt
from trialogue.training.probes import ProbeConfig

SURROGATE = "surrogate"


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run; the defaults are those of the preset `default`."""

    seeds: Seeds = tuple(range(8))
    """Repetitions: names, demonstrations and draws of each are its own."""
    verifiers: Count = 2
    """Verifiers, each trained on completions of its own; repetitions take turns."""
    model: str = "smollm2"
    """Hub id, folder or short name of a causal language model, or "surrogate"."""
    dtype: str = "float32"
    cases: Count = 4
    examples: Natural = 1
    """Demonstrations of the target function itself, which the thesis' prompts do not have."""
    example_length: Count = 2
    names: Count = 3
    runs: Count = 5
    max_new_tokens: Count = 96
    training_prompts: Count = 16
    training_runs: Count = 12
    collection_parts: Count = 4
    """Parts in which the completions that a verifier learns from are drawn."""
    layer: int = 24
    """Blocks after which the verifier reads the hidden state; -1 is what the output head reads."""
    layers: Different[int] = (6, 12, 18, 24, -1)
    """Layers whose probes are held against each other."""
    depths: Different[Count] = (1,)
    probe_epochs: Count = 30
    probe_batch_size: Count = 64
    candidates: tuple[Count, ...] = (2, 4)
    """Candidates of block best-of-n."""
    grids: bool = False
    """Whether the grids of Tables 3.9, 3.10, 3.11, 3.13 and 3.15 are drawn as well."""
    batch_size: Count = 64

    def check(self) -> None:
        """Raise `InputError` where fields do not go together."""
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

    def decodings(self) -> list[DecodingRule]:
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
    "pilot": Config(seeds=tuple(range(100, 108))),
    "default": Config(),
    "night": Config(seeds=tuple(range(40)), verifiers=10, names=6),
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
