"""What a run measures one language model with: its prompts, its verifiers, and how much is drawn."""

from dataclasses import dataclass, replace
from typing import Literal, get_args

from trialogue.errors import InputError
from trialogue.randomness import seed_of
from trialogue.training.probes import ProbeConfig
from trialogue_lab.data.list_append.prompts import OOD_NAMES, TRAINING_NAMES, Task, random_names
from trialogue_lab.ledger.settings import Count, Different, Natural, Settings
from trialogue_lab.studies.test_cases.surrogate import surrogate_prompt

SURROGATE = "surrogate"

Role = Literal["pretrained", "scratch"]
"""The model that was pretrained by others, and the one that every repetition trains from scratch."""
ROLES: tuple[Role, ...] = get_args(Role)


@dataclass(frozen=True, kw_only=True)
class Subject(Settings):
    """A model and the sizes of its measurements; the defaults are those of SmolLM2 in the preset `night`."""

    model: str = "smollm2"
    """Hub id, folder or short name of a causal language model, or "surrogate"."""
    dtype: str = "float32"
    weights: str = "float32"
    """Format of the weights, see `load_pretrained`."""
    training_steps: Count = 1600
    """Steps of a surrogate, which is trained anew in every repetition."""
    cases: Count = 4
    examples: Natural = 1
    """Demonstrations of the target function itself, which the thesis' prompts do not have."""
    example_length: Count = 2
    names: Count = 3
    """Target functions of a repetition."""
    runs: Count = 4
    """Completions for each of them."""
    max_new_tokens: Count = 96
    training_prompts: Count = 14
    training_runs: Count = 12
    """Completions of each of the prompts that a verifier learns from."""
    layer: int = 24
    """Blocks after which the verifier reads the hidden state; -1 is what the output head reads."""
    layers: Different[int] = (6, 15, 24, -1)
    """Layers whose verifiers are held against each other."""
    depths: Different[Count] = (1, 2, 4, 8)
    probe_epochs: Count = 30
    probe_batch_size: Count = 64
    batch_size: Count = 64
    together: Count = 4
    """Repetitions whose completions are drawn as one batch, each by a verifier of its own."""

    def check(self) -> None:
        """Raise `InputError` where fields do not go together."""
        if self.layer not in self.layers:
            raise InputError("layer", self.layer, f"choose one of layers={self.layers}")
        self.task()
        self.probe(0, 1)

    @property
    def is_surrogate(self) -> bool:
        """Whether the model is trained by the run itself."""
        return self.model == SURROGATE

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
        return surrogate_prompt(name) if self.is_surrogate else self.task().prompt(name, seed)

    def prompts(self, seed: int, out_of_distribution: bool) -> list[tuple[str, str]]:
        """Name and prompt of every target function of a repetition."""
        names = random_names(self.names, seed_of(seed, "test names"), TRAINING_NAMES)
        if out_of_distribution:
            first = seed_of(seed, "misleading names") % len(OOD_NAMES)
            names = [*OOD_NAMES[first:], *OOD_NAMES[:first]][: self.names]
        return [(name, self.prompt(name, seed_of(seed, "prompt"))) for name in names]

    def training_prompts_of(self, seed: int) -> list[tuple[str, str]]:
        """Name and prompt of every target function whose completions a verifier learns from."""
        names = [TRAINING_NAMES[place % len(TRAINING_NAMES)] for place in range(self.training_prompts)]
        return [
            (name, self.prompt(name, seed_of(seed, "training", place))) for place, name in enumerate(names)
        ]


SMOLLM2 = Subject(weights="bfloat16")
PILOT_SMOLLM2 = replace(SMOLLM2, training_prompts=8)
QUICK_SMOLLM2 = replace(SMOLLM2, weights="float32", names=2, runs=2, training_prompts=6, training_runs=8)
CODE_LLAMA = Subject(
    model="codellama/CodeLlama-7b-hf",
    dtype="float16",
    cases=8,
    examples=0,
    names=10,
    runs=10,
    max_new_tokens=384,
    training_prompts=70,
    training_runs=20,
    layer=28,
    layers=(4, 8, 12, 16, 20, 24, 25, 26, 27, 28, 29, 30, 31, -1),
    probe_epochs=10,
    probe_batch_size=2048,
    together=1,
)
SCRATCH = Subject(
    model=SURROGATE,
    examples=0,
    names=8,
    runs=6,
    max_new_tokens=80,
    layer=2,
    layers=(1, 2, -1),
    batch_size=256,
    together=1,
)
SMALLEST = replace(
    SCRATCH, training_steps=400, cases=2, names=2, runs=2, max_new_tokens=48, training_runs=10, layers=(2, -1)
)
