"""How long does text that a model writes stay in one stored pattern, against the window the model sees?

Corollary 1.2.1 of the document on Potts chains: an autoregressive model with a fixed window cannot generate infinite
coherent output. The corpus is sequences each of which follows one of two stored patterns, in one of seven phases, for
ever, but for noise; short windows are shared by patterns and phases, and noise makes longer ones look like others.
Small transformers see the last 3 to 11 tokens, or attend within a window that two blocks make a receptive field of
layers x (window - 1) + 1 tokens, or to everything; each continues a pattern, and the tokens up to the first domain wall
are counted.

What a model with a finite window writes is a Potts chain, whose survival in one pattern and its long-run rate are
computed exactly, for the networks and for the best model with each window; beside them stand the crossing length of
Theorem 1.1, greedy decoding, where a wall has an infinite energy and the theorem does not hold, and the corpus itself.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trialogue.errors import InputError, whole_number
from trialogue.ledger.study import Study, require_seeds
from trialogue.studies.window_coherence_claims import CLAIMS
from trialogue.studies.window_coherence_figures import FIGURES
from trialogue.studies.window_coherence_networks import Setting, network_rows, reference_rows
from trialogue.studies.window_coherence_rows import SLIDING, UNLIMITED, cropped
from trialogue.studies.window_coherence_tables import TABLES

_MOST_TOKENS = 24


@dataclass(frozen=True)
class Config:
    """One training per seed of `seeds` and network: one for each of `windows`, sliding and unlimited attention.

    Text is generated at `temperatures`, `samples` continuations of `horizon` tokens for each pattern; exact rates are
    computed at `exact_temperatures` too, and of the best model with each window up to `best_windows`. Patterns have
    period 2^`pattern_bits` - 1, tokens are wrong with probability `noise`, and a window that measures has `periods`
    periods.
    """

    windows: tuple[int, ...] = (3, 5, 7, 11)
    attention_window: int = 4
    temperatures: tuple[float, ...] = (0.5, 1.0)
    exact_temperatures: tuple[float, ...] = (0.4, 0.5, 0.7, 1.0, 1.4)
    best_windows: int = 14
    seeds: tuple[int, ...] = tuple(range(6))
    samples: int = 500
    horizon: int = 105
    pattern_bits: int = 3
    noise: float = 0.05
    periods: int = 3
    layers: int = 2
    width: int = 64
    heads: int = 4
    training_steps: int = 400
    batch_tokens: int = 2048
    learning_rate: float = 3e-3

    def __post_init__(self) -> None:
        require_seeds("seeds", self.seeds)
        bits, periods = (
            whole_number("pattern_bits", self.pattern_bits, 2),
            whole_number("periods", self.periods, 1),
        )
        longest = periods * (2 ** min(bits, _MOST_TOKENS) - 1)
        if longest > _MOST_TOKENS:
            mend = f"windows of {longest} tokens measure, and at most {_MOST_TOKENS} can be solved: use fewer periods "
            raise InputError("periods", self.periods, mend + "or pattern_bits")
        for field in ("windows", "temperatures", "exact_temperatures"):
            values = getattr(self, field)
            if not values or list(values) != sorted(set(values)):
                raise InputError(field, values, "give different values in ascending order")
        for window in self.windows:
            whole_number("windows", window, 1)
        whole_number("attention_window", self.attention_window, 1)
        if len(self.windows) < 2 or not 1 <= self.windows[0] <= self.windows[-1] <= longest:
            raise InputError("windows", self.windows, f"give two or more, from 1 to {longest} tokens")
        if not 1 <= whole_number("best_windows", self.best_windows, 1) <= longest:
            raise InputError("best_windows", self.best_windows, f"use at most {longest}")
        if not 1 <= self.receptive_field <= longest:
            mend = f"{self.layers} layers of it see {self.receptive_field} tokens of {longest}: use a shorter one"
            raise InputError("attention_window", self.attention_window, mend)
        for field in ("temperatures", "exact_temperatures"):
            values = getattr(self, field)
            if not (0 < values[0] < 1 <= values[-1] < math.inf and 1.0 in values):
                raise InputError(field, values, "give finite ones above 0, 1 and a lower one among them")
        if not set(self.temperatures) <= set(self.exact_temperatures):
            raise InputError("temperatures", self.temperatures, "all of them must be in exact_temperatures")
        if whole_number("horizon", self.horizon, 1) <= longest:
            raise InputError("horizon", self.horizon, f"use more than the {longest} tokens of the prompt")
        if not 0 < self.noise < 1:
            raise InputError("noise", self.noise, "use a probability above 0 and below 1")
        if not 0 < self.learning_rate < math.inf:
            raise InputError("learning_rate", self.learning_rate, "must be positive and finite")
        for field in ("samples", "layers", "width", "heads", "batch_tokens"):
            whole_number(field, getattr(self, field), 1)
        whole_number("training_steps", self.training_steps, 10)

    @property
    def receptive_field(self) -> int:
        """How many tokens an answer depends on with sliding attention."""
        return 1 + whole_number("layers", self.layers, 1) * (self.attention_window - 1)

    @property
    def setting(self) -> Setting:
        """What all networks share."""
        return Setting(
            pattern_bits=self.pattern_bits,
            noise=self.noise,
            periods=self.periods,
            horizon=self.horizon,
            attention_window=self.attention_window,
            layers=self.layers,
            width=self.width,
            heads=self.heads,
            training_steps=self.training_steps,
            batch_tokens=self.batch_tokens,
            learning_rate=self.learning_rate,
            samples=self.samples,
        )

    @property
    def networks(self) -> dict[str, int | None]:
        """The tokens that each network sees, by its name; None for all of them."""
        seen: dict[str, int | None] = {cropped(window): window for window in self.windows}
        return seen | {SLIDING: self.receptive_field, UNLIMITED: None}


PRESETS = {
    "smoke": Config(
        windows=(3, 7),
        temperatures=(0.5, 1.0),
        exact_temperatures=(0.5, 1.0),
        best_windows=8,
        seeds=(0, 1),
        samples=20,
        horizon=24,
        periods=2,
        width=16,
        heads=2,
        training_steps=10,
        batch_tokens=256,
    ),
    "default": Config(),
    "paper": Config(seeds=tuple(range(20)), samples=2000, training_steps=4000, batch_tokens=8192),
}


def parts(config: Config) -> list[str]:
    """What is exact without training, and one part per network."""
    return ["exact", *(f"{seed}-{_file(name)}" for seed in config.seeds for name in config.networks)]


def _file(name: str) -> str:
    return name.replace(" ", "-")


def run(config: Config, part: str, artifacts: Path) -> Iterator[dict[str, Any]]:
    """Measure one part."""
    del artifacts
    if part == "exact":
        windows = range(1, config.best_windows + 1)
        yield from reference_rows(config.setting, windows, config.exact_temperatures)
        return
    seed, _, name = part.partition("-")
    name, window = next((one, seen) for one, seen in config.networks.items() if _file(one) == name)
    yield from network_rows(
        config.setting, name, window, int(seed), config.temperatures, config.exact_temperatures
    )


STUDY = Study(
    name="window-coherence",
    doc=__doc__,
    source="Potts chains: Theorems 1.1 and 1.2, Corollary 1.2.1",
    version=1,
    presets=PRESETS,
    parts=parts,
    lane=lambda part: part.partition("-")[0],
    run=run,
    claims=CLAIMS,
    tables=TABLES,
    figures=FIGURES,
)
