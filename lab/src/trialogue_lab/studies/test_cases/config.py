"""Settings of the study: the two language models, the sizes of their measurements, and the repetitions."""

from dataclasses import dataclass, replace
from typing import Literal, get_args

from trialogue.errors import InputError
from trialogue.randomness import derive_seed
from trialogue.training.probes.grid import ProbeConfig
from trialogue_lab.data.list_append.prompts import OOD_NAMES, TRAINING_NAMES, PromptLayout, random_names
from trialogue_lab.ledger import Count, Different, Natural, Seeds, Settings
from trialogue_lab.studies.test_cases.decodings import DecodingRule, Extent, list_decodings
from trialogue_lab.studies.test_cases.surrogate import make_surrogate_prompt

SURROGATE = "surrogate"

Role = Literal["pretrained", "scratch"]
"""The pretrained model, which all repetitions share, or a model that every repetition trains from scratch."""
ROLES: tuple[Role, ...] = get_args(Role)


def mark_heading(head: str, role: Role) -> str:
    """Return a column heading, marked if the column is about models trained from scratch.

    Args:
        head: The heading.
        role: The model, "pretrained" or "scratch" (trained from scratch).
    """
    return head if role == "pretrained" else f"{head}, from scratch"


@dataclass(frozen=True, kw_only=True)
class MeasuredModel(Settings):
    """A language model, and the sizes of all measurements with it.

    A prompt requests test cases of one function, called the target function. A verifier is a classifier of prefixes
    that is trained on hidden states of the model. The default sizes are for SmolLM2 in the preset `night`.

    Args:
        model: Hub id, folder or short name of a causal language model. "surrogate" for a model that is trained from
            scratch.
        dtype: Data type of the computation.
        weights: Format of the weights. See `load_pretrained`.
        training_steps: Number of training steps of a surrogate. Every repetition trains its own.
        cases: Number of test cases that a prompt requests.
        examples: Number of demonstrations of the target function in a prompt. The prompts of the thesis have none.
        example_length: Largest number of digits in a list of a demonstration.
        names: Number of target functions per repetition.
        runs: Number of completions per target function.
        max_new_tokens: Maximum number of tokens of a completion.
        training_prompts: Number of prompts whose completions train a verifier.
        training_runs: Number of completions per training prompt of a verifier.
        layer: Number of transformer blocks after which the verifier reads the hidden state. -1 for the input of the
            output head.
        layers: Layers whose verifiers are compared.
        depths: Numbers of layers of the verifiers that are compared.
        probe_epochs: Number of epochs of the training of a verifier.
        probe_batch_size: Batch size of the training of a verifier.
        batch_size: Number of completions that are generated in one batch.
        together: Number of repetitions whose completions are generated in one batch. Each has its own verifier.
    """

    model: str = "smollm2"
    dtype: str = "float32"
    weights: str = "float32"
    training_steps: Count = 1600
    cases: Count = 4
    examples: Natural = 1
    example_length: Count = 2
    names: Count = 3
    runs: Count = 4
    max_new_tokens: Count = 96
    training_prompts: Count = 14
    training_runs: Count = 12
    layer: int = 24
    layers: Different[int] = (6, 15, 24, -1)
    depths: Different[Count] = (1, 2, 4, 8)
    probe_epochs: Count = 30
    probe_batch_size: Count = 64
    batch_size: Count = 64
    together: Count = 4

    def check(self) -> None:
        """Check that `layer` is one of `layers`.

        Raises:
            InputError: If `layer` is not one of `layers`.
        """
        if self.layer not in self.layers:
            raise InputError("layer", self.layer, f"choose one of layers={self.layers}")

    @property
    def is_surrogate(self) -> bool:
        """Whether the model is trained from scratch in every repetition."""
        return self.model == SURROGATE

    def probe(self, seed: int, depth: int) -> ProbeConfig:
        """Return the training configuration of a verifier.

        Args:
            seed: Seed of the training.
            depth: Number of layers of the verifier.
        """
        return ProbeConfig(
            depth=depth,
            epochs=self.probe_epochs,
            batch_size=self.probe_batch_size,
            learning_rate=3e-3,
            validation=0.1,
            seed=seed,
        )

    def prompt(self, name: str, seed: int) -> str:
        """Return a prompt that requests test cases of a function.

        Args:
            name: Name of the function.
            seed: Seed of the demonstration in the prompt.
        """
        if self.is_surrogate:
            return make_surrogate_prompt(name)
        return PromptLayout(**self.shared(PromptLayout)).prompt(name, seed)

    def prompts(self, seed: int, out_of_distribution: bool) -> list[tuple[str, str]]:
        """Return the target functions of a repetition, for which test cases are requested.

        Args:
            seed: Seed of the repetition.
            out_of_distribution: Whether functions have the name of another task.

        Returns:
            Pairs of the name of a function and the prompt.
        """
        names = random_names(self.names, derive_seed(seed, "test names"), TRAINING_NAMES)
        if out_of_distribution:
            first = derive_seed(seed, "misleading names") % len(OOD_NAMES)
            names = [*OOD_NAMES[first:], *OOD_NAMES[:first]][: self.names]
        return [(name, self.prompt(name, derive_seed(seed, "prompt"))) for name in names]

    def training_prompts_of(self, seed: int) -> list[tuple[str, str]]:
        """Return the target functions whose completions train the verifier of a repetition.

        Args:
            seed: Seed of the repetition.

        Returns:
            Pairs of the name of a function and the prompt.
        """
        names = [TRAINING_NAMES[place % len(TRAINING_NAMES)] for place in range(self.training_prompts)]
        return [
            (name, self.prompt(name, derive_seed(seed, "training", place)))
            for place, name in enumerate(names)
        ]


SMOLLM2 = MeasuredModel(weights="bfloat16")
QUICK_SMOLLM2 = replace(SMOLLM2, weights="float32", names=2, runs=2, training_prompts=6, training_runs=8)
CODE_LLAMA = MeasuredModel(
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
SCRATCH = MeasuredModel(
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


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run. The defaults are the preset `default`.

    The study lets language models write test cases of a Python function. A repetition is a complete experiment with its
    own function names, prompts, random numbers and verifiers. Its seed determines all of them.

    Args:
        seeds: One seed per repetition with the pretrained model.
        comparisons: Number of repetitions that also compare layers, depths, thresholds and function names. These are
            the first ones in `seeds`.
        planes: Number of repetitions that also measure a grid of top-p and temperature. These are the first ones in
            `seeds`.
        scratch_seeds: One seed per repetition that trains its own model from scratch. These repetitions also measure
            all comparisons and the grid.
        pretrained: The pretrained model, and the sizes of its measurements.
        scratch: The models trained from scratch, and the sizes of their measurements.
    """

    seeds: Seeds = (0, 1)
    comparisons: Natural = 2
    planes: Natural = 2
    scratch_seeds: Seeds = tuple(range(1000, 1004))
    pretrained: MeasuredModel = QUICK_SMOLLM2
    scratch: MeasuredModel = SCRATCH

    def check(self) -> None:
        """Check that the numbers of repetitions are consistent.

        Raises:
            InputError: If there are more comparisons or planes than seeds, or if both models share a seed.
        """
        for field in ("comparisons", "planes"):
            if getattr(self, field) > len(self.seeds):
                raise InputError(field, getattr(self, field), "use at most the number of seeds")
        if set(self.seeds) & set(self.scratch_seeds):
            raise InputError("scratch_seeds", self.scratch_seeds, "must not contain any of the seeds")

    def subject(self, role: Role) -> MeasuredModel:
        """Return the settings of one of the two models.

        Args:
            role: "pretrained" for the pretrained model, or "scratch" for models trained from scratch.
        """
        return self.pretrained if role == "pretrained" else self.scratch

    def repetitions(self, role: Role, extent: Extent) -> tuple[int, ...]:
        """Return the seeds of the repetitions that measure a group of decoding methods.

        Args:
            role: "pretrained" for the pretrained model, or "scratch" for models trained from scratch.
            extent: Group of decoding methods: "all", "comparisons" or "plane" (grid of top-p and temperature).
        """
        if role == "scratch":
            return self.scratch_seeds
        counts = {"all": len(self.seeds), "comparisons": self.comparisons, "plane": self.planes}
        return self.seeds[: counts[extent]]

    def decodings(self, role: Role, extent: Extent) -> list[DecodingRule]:
        """Return the decoding methods of a group.

        Args:
            role: "pretrained" for the pretrained model, or "scratch" for models trained from scratch.
            extent: Group of decoding methods: "all" for those that all repetitions measure, "comparisons", or "plane"
                for the grid of top-p and temperature.
        """
        subject = self.subject(role)
        others = tuple(layer for layer in subject.layers if layer != subject.layer)
        depths = tuple(depth for depth in subject.depths if depth > 1)
        found = list_decodings(extent, others, depths)
        # The prompt of the surrogate is a name alone, which cannot mislead.
        return [rule for rule in found if not (rule.out_of_distribution and subject.is_surrogate)]


_NIGHT = Config(
    seeds=tuple(range(12)),
    comparisons=6,
    planes=4,
    scratch_seeds=tuple(range(1000, 1024)),
    pretrained=SMOLLM2,
)

PRESETS = {
    "smoke": Config(
        seeds=(0,), comparisons=1, planes=0, scratch_seeds=(1000,), pretrained=SMALLEST, scratch=SMALLEST
    ),
    "pilot": Config(
        seeds=(100, 101, 102),
        comparisons=0,
        planes=0,
        scratch_seeds=tuple(range(1100, 1104)),
        pretrained=replace(SMOLLM2, training_prompts=8),
    ),
    "default": Config(),
    "night": _NIGHT,
    # The sizes follow from the rows of `night` and are limited by computing time. If the effects are the same, 40
    # repetitions decide a dozen published claims with a probability above 0.8 each, and 12 grids decide one more.
    # Claims about layers, depths and names would need about 60 repetitions of `comparisons`. The seeds are new.
    "weekend": replace(
        _NIGHT,
        seeds=tuple(range(200, 240)),
        comparisons=12,
        planes=12,
        scratch_seeds=tuple(range(1200, 1224)),
    ),
    # The sizes follow from the rows of `weekend`, which has 12 repetitions of the comparisons and of the grid. If
    # the effects are the same, these numbers decide nine more published claims with a power above 0.8 each. The seeds
    # are new.
    "week": replace(
        _NIGHT,
        seeds=tuple(range(300, 340)),
        comparisons=40,
        planes=24,
        scratch_seeds=tuple(range(1300, 1324)),
    ),
    "paper": Config(seeds=tuple(range(5)), comparisons=5, planes=5, pretrained=CODE_LLAMA),
}
