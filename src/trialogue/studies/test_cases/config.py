"""Settings of the study: the model, its prompts, the verifiers and the decodings."""

from dataclasses import dataclass, replace

from trialogue.data.list_append.prompts import OOD_NAMES, TRAINING_NAMES, Task, random_names
from trialogue.errors import InputError
from trialogue.ledger.settings import Count, Different, Natural, Seeds, Settings
from trialogue.randomness import seed_of
from trialogue.studies.test_cases.decodings import MAIN, DecodingRule, ablations, block_best_of, grids
from trialogue.studies.test_cases.surrogate import surrogate_names, surrogate_prompt
from trialogue.training.probes import ProbeConfig

SURROGATE = "surrogate"
ALONE, BATCH = 1, 16
"""Rows that are moved at once where queries are held against seconds."""


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run; the defaults are those of the preset `default`."""

    seeds: Seeds = (0, 1, 2, 3)
    """Repetitions: names, demonstrations, draws and verifiers of each are its own."""
    model: str = "smollm2"
    """Hub id, folder or short name of a causal language model, or "surrogate": one trained anew in each repetition."""
    dtype: str = "float32"
    weights: str = "bfloat16"
    """The format that the model's weights are multiplied in, as `load_pretrained` takes it."""
    cases: Count = 4
    examples: Natural = 1
    """Demonstrations of the target function itself, which the thesis' prompts do not have."""
    example_length: Count = 2
    """Items that a list has at most in these demonstrations, and in what the surrogate learns."""
    names: Count = 3
    runs: Count = 5
    max_new_tokens: Count = 96
    training_prompts: Count = 16
    training_runs: Count = 12
    layer: int = 24
    """Blocks after which the verifier reads the hidden state; -1 is what the output head reads."""
    layers: Different[int] = (6, 12, 18, 24, -1)
    """Layers whose probes are held against each other."""
    depths: Different[Count] = (1,)
    probe_epochs: Count = 30
    probe_batch_size: Count = 64
    candidates: tuple[Count, ...] = (2, 4)
    """Candidates of block best-of-n."""
    ablations: bool = False
    """Whether the other settings that claims are about are drawn as well (Tables 3.6, 3.9, 3.10, 3.11 and 3.15)."""
    grids: Natural = 2
    """Repetitions that draw the rest of Tables 3.9, 3.12, 3.13, 3.15 and 3.17 as well: the first so many."""
    timed: Natural = 2
    """Repetitions in which queries are held against seconds: the first so many."""
    together: Count = 2
    """Repetitions that are drawn in one batch."""
    batch_size: Count = 64
    surrogate_steps: Count = 2000
    """Steps that a surrogate is trained for."""
    surrogate_seeds: tuple[Natural, ...] = (0, 1)
    """Repetitions of the surrogate, which are measured beside the model's."""

    def check(self) -> None:
        """Raise `InputError` where fields do not go together."""
        for field in ("grids", "timed"):
            if getattr(self, field) > len(self.seeds):
                raise InputError(field, getattr(self, field), "use at most one per seed")
        if self.layer not in self.layers:
            raise InputError("layer", self.layer, f"choose one of layers={self.layers}")
        if self.scratch and self.together > 1:
            raise InputError("together", self.together, "each repetition of the surrogate has a model: use 1")
        if len(set(self.surrogate_seeds)) < len(self.surrogate_seeds):
            raise InputError("surrogate_seeds", self.surrogate_seeds, "give different ones")
        self.task()
        self.probe(0, 1)

    @property
    def scratch(self) -> bool:
        """Whether the model is the surrogate, which each repetition trains from scratch."""
        return self.model == SURROGATE

    def beside(self) -> "Config":
        """How the surrogate is measured beside the model: at the thesis' numbers of names and runs."""
        return replace(
            _SURROGATE,
            seeds=self.surrogate_seeds,
            grids=len(self.surrogate_seeds),
            surrogate_steps=self.surrogate_steps,
        )

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
        return surrogate_prompt(name) if self.scratch else self.task().prompt(name, seed)

    def decodings(self, seed: int) -> list[DecodingRule]:
        """What the repetition `seed` draws, each decoding once."""
        found = [*MAIN, *map(block_best_of, self.candidates)]
        if self.ablations:
            found += ablations(-1 if self.layer != -1 in self.layers else None, self.depths, not self.scratch)
        if seed in self.seeds[: self.grids]:
            found += grids(tuple(layer for layer in self.layers if layer != self.layer), not self.scratch)
        return list({decoding.name: decoding for decoding in found}.values())

    def prompts(self, seed: int, out_of_distribution: bool) -> list[tuple[str, str]]:
        """Name and prompt of every target function of a repetition."""
        known = (*TRAINING_NAMES, *surrogate_names(seed)) if self.scratch else TRAINING_NAMES
        names = random_names(self.names, seed_of(seed, "test names"), known)
        if out_of_distribution:
            names = list(OOD_NAMES[: self.names])
        return [(name, self.prompt(name, seed_of(seed, "prompt"))) for name in names]


_SURROGATE = Config(
    model=SURROGATE,
    weights="float32",
    cases=4,
    examples=0,
    example_length=3,
    names=10,
    runs=10,
    max_new_tokens=96,
    training_prompts=70,
    training_runs=20,
    layer=-1,
    layers=(1, -1),
    depths=(1, 2, 4, 8),
    probe_batch_size=256,
    candidates=(2, 4, 8),
    ablations=True,
    grids=0,
    timed=0,
    together=1,
    batch_size=400,
    surrogate_seeds=(),
)
_NIGHT = Config(
    seeds=tuple(range(18)),
    names=4,
    runs=4,
    depths=(1, 2, 4, 8),
    candidates=(2, 4, 8),
    ablations=True,
    grids=6,
    timed=6,
    together=6,
    batch_size=96,
    surrogate_seeds=tuple(range(20)),
)

PRESETS = {
    "smoke": replace(
        _SURROGATE,
        seeds=(0, 1),
        cases=2,
        example_length=2,
        names=4,
        runs=3,
        max_new_tokens=48,
        training_prompts=14,
        training_runs=10,
        probe_epochs=10,
        timed=2,
        batch_size=256,
        surrogate_steps=250,
    ),
    "pilot": replace(
        _NIGHT,
        seeds=tuple(range(100, 104)),
        grids=0,
        timed=2,
        together=4,
        batch_size=64,
        surrogate_seeds=tuple(range(100, 104)),
    ),
    "default": Config(),
    "night": _NIGHT,
    "paper": Config(
        seeds=tuple(range(5)),
        model="codellama/CodeLlama-7b-hf",
        dtype="float16",
        weights="float32",
        cases=8,
        examples=0,
        names=10,
        runs=10,
        max_new_tokens=384,
        training_prompts=70,
        training_runs=20,
        layer=28,
        layers=(4, 8, 12, 16, 20, 24, 25, 26, 27, 28, 29, 30, 31, -1),
        depths=(1, 2, 4, 8),
        probe_epochs=10,
        probe_batch_size=2048,
        candidates=(2, 4, 8),
        ablations=True,
        grids=5,
        timed=5,
        together=1,
        surrogate_seeds=(),
    ),
}
