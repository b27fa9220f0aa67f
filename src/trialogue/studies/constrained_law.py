"""What does each decoding rule really sample when the output must obey a rule, and what does it cost?

A chat model answers questions under a regular expression (one of a few cities) and under a JSON schema (stars and tone
of a review). The rules allow few enough strings that the model's law restricted to them is known exactly, up to a
stated share left unexplored: the tree of allowed token sequences is explored and scored by the model. From the same
tree come the exact law of masked decoding (tokenwise rejection), of drawing by weight among several masked samples,
and of the first leaf of the value-guided walk; sequential Monte Carlo is simulated on the tree, and walks run on the
model itself show that they sample what was computed, and at what cost. Laws are of the strings: token sequences that
spell the same string count together. Every seed draws its own questions; one replication is one seed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trialogue.data import Table
from trialogue.errors import InputError, whole_number
from trialogue.inference.verifiers.function import FunctionVerifier
from trialogue.inference.verifiers.grammar import GrammarVerifier
from trialogue.ledger.study import Study, require_seeds
from trialogue.models.pretrained import PretrainedOracle, load_pretrained
from trialogue.randomness import numpy_generator
from trialogue.studies.constrained_law_claims import CLAIMS
from trialogue.studies.constrained_law_figures import FIGURES, TABLES
from trialogue.studies.constrained_law_rows import Case, Effort, measure
from trialogue.studies.constrained_law_tasks import TASKS

_LETTERS = "abcd"
_LOADED: dict[str, PretrainedOracle] = {}


@dataclass(frozen=True)
class Config:
    """The model, the questions and the effort.

    An empty `model` is a random table over four letters, for tests. `sizes` are the numbers of weighted samples that
    one output is drawn from, `particles` those of sequential Monte Carlo, simulated `simulations` times on the tree;
    `samples` are the outputs that every walk is run for, `tolerance` and `max_prefixes` the share of the laws left
    unexplored and the size of the token tree, `max_queries` the most that one run of a walk may ask.
    """

    model: str = "smollm2"
    seeds: tuple[int, ...] = tuple(range(8))
    sizes: tuple[int, ...] = (1, 4, 16, 64, 256)
    particles: tuple[int, ...] = (4, 16)
    simulations: int = 1000
    samples: int = 32
    max_new_tokens: int = 28
    tolerance: float = 2e-2
    max_prefixes: int = 4000
    max_queries: int = 4000

    def __post_init__(self) -> None:
        require_seeds("seeds", self.seeds)
        if not self.sizes or self.sizes[0] != 1 or list(self.sizes) != sorted(set(self.sizes)):
            raise InputError("sizes", self.sizes, "give increasing numbers that begin with 1")
        if not self.particles or min(self.particles) < 2:
            raise InputError("particles", self.particles, "give one or more numbers of at least 2")
        for name in ("samples", "simulations", "max_new_tokens", "max_prefixes", "max_queries"):
            whole_number(name, getattr(self, name), 1)
        if not 0 < self.tolerance < 1:
            raise InputError("tolerance", self.tolerance, "use a share between 0 and 1")


PRESETS = {
    "smoke": Config(
        model="", seeds=(0, 1), sizes=(1, 4), particles=(4,), samples=40, max_new_tokens=5, tolerance=1e-9
    ),
    "default": Config(),
    "paper": Config(model="HuggingFaceTB/SmolLM2-1.7B-Instruct", seeds=tuple(range(40)), samples=512),
}


def parts(config: Config) -> list[str]:
    """One part per seed and kind of rule."""
    return [f"{kind}-{seed}" for seed in config.seeds for kind in TASKS]


def run(config: Config, part: str, artifacts: Path) -> Iterator[dict[str, Any]]:
    """Measure one question."""
    del artifacts
    kind, _, number = part.rpartition("-")
    seed = int(number)
    case = _toy(kind, seed, config) if not config.model else _case(kind, seed, config)
    effort = Effort(
        config.sizes,
        config.particles,
        config.simulations,
        config.samples,
        config.tolerance,
        config.max_prefixes,
        config.max_queries,
    )
    for row in measure(case, effort, seed):
        yield {"seed": seed, "kind": kind, **row}


def _case(kind: str, seed: int, config: Config) -> Case:
    """The question of a seed, put to the pretrained model."""
    if config.model not in _LOADED:
        _LOADED[config.model] = load_pretrained(config.model)
    oracle, task = _LOADED[config.model], TASKS[kind](seed)
    tokenization = oracle.tokenization
    rule = GrammarVerifier.regex if kind == "regex" else GrammarVerifier.json_schema
    return Case(
        oracle,
        rule(task.rule, tokenization),
        tuple(tokenization.chat(task.question)),
        tokenization.text,
        config.max_new_tokens,
    )


def _toy(kind: str, seed: int, config: Config) -> Case:
    """A random table over four letters; the rule allows a few words that begin alike."""

    def law(prefix: tuple[int, ...]) -> list[float]:
        return numpy_generator(seed, "toy", kind, prefix).dirichlet([0.5] * 5).tolist()

    words = {"ab", "abc", "b", "ca", "cad", "d"} if kind == "regex" else {"aaaa", "aaab", "ba", "dc"}
    end = len(_LETTERS)

    def text(completion: tuple[int, ...]) -> str:
        return "".join(_LETTERS[token] for token in completion if token != end)

    def allowed(completion: tuple[int, ...]) -> bool:
        if end in completion or len(completion) == config.max_new_tokens:
            return text(completion) in words
        return any(word.startswith(text(completion)) for word in words)

    oracle = Table(law, vocab_size=5, eos=end, max_length=config.max_new_tokens)
    return Case(oracle, FunctionVerifier(allowed), (), text, config.max_new_tokens)


STUDY = Study(
    name="constrained-law",
    doc=__doc__,
    source="Thesis section 3.1: Definitions 3.1.4 and 3.1.5, Proposition 3.1.2, Algorithms 1 and 2",
    version=1,
    presets=PRESETS,
    parts=parts,
    run=run,
    claims=CLAIMS,
    tables=TABLES,
    figures=FIGURES,
)
