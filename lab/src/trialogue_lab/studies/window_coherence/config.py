"""Settings of the study: the corpus, the networks and their windows, and how their text is measured."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge

from trialogue.errors import InputError
from trialogue_lab.ledger import Count, Increasing, Positive, Probability, Seeds, Settings
from trialogue_lab.studies.window_coherence.pattern_corpus import PatternCorpus, maximal_length_patterns

SLIDING = "sliding attention"
UNLIMITED = "unlimited attention"
_MOST_TOKENS = 24


def cropped(window: int) -> str:
    """The name of a network that is asked about its last `window` tokens."""
    return f"last {window} tokens"


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """One training per seed of `seeds` and network: one for each of `windows`, sliding and unlimited attention.

    Text is generated at `temperatures`, `samples` continuations of `horizon` tokens for each pattern; exact rates are
    computed at `exact_temperatures` too, and of the best model with each window up to `best_windows`. Patterns have
    period 2^`pattern_bits` - 1, tokens are wrong with probability `noise`, and a window that measures has `periods`
    periods. A step of training predicts about `batch_tokens` tokens.
    """

    windows: Increasing[Count] = (3, 5, 7, 11)
    attention_window: Count = 4
    temperatures: Increasing[Positive] = (0.5, 1.0)
    exact_temperatures: Increasing[Positive] = (0.4, 0.5, 0.7, 1.0, 1.4)
    best_windows: Count = 14
    seeds: Seeds = tuple(range(6))
    samples: Count = 500
    horizon: Count = 105
    pattern_bits: Annotated[int, Ge(2)] = 3
    noise: Probability = 0.05
    periods: Count = 3
    layers: Count = 2
    width: Count = 64
    heads: Count = 4
    training_steps: Annotated[int, Ge(10)] = 400
    batch_tokens: Count = 2048
    learning_rate: Positive = 3e-3

    def check(self) -> None:
        """Raise `InputError` where fields do not go together."""
        longest = self.periods * (2 ** min(self.pattern_bits, _MOST_TOKENS) - 1)
        if longest > _MOST_TOKENS:
            hint = f"windows of {longest} tokens measure, and at most {_MOST_TOKENS} can be solved: use fewer periods "
            raise InputError("periods", self.periods, hint + "or pattern_bits")
        if len(self.windows) < 2 or self.windows[-1] > longest:
            raise InputError("windows", self.windows, f"give two or more, from 1 to {longest} tokens")
        if self.best_windows > longest:
            raise InputError("best_windows", self.best_windows, f"use at most {longest}")
        if self.receptive_field > longest:
            hint = f"{self.layers} layers of it see {self.receptive_field} tokens of {longest}: use a shorter one"
            raise InputError("attention_window", self.attention_window, hint)
        for field in ("temperatures", "exact_temperatures"):
            values = getattr(self, field)
            if values[0] >= 1 or 1.0 not in values:
                raise InputError(field, values, "give 1 and a lower one among them")
        if not set(self.temperatures) <= set(self.exact_temperatures):
            raise InputError("temperatures", self.temperatures, "all of them must be in exact_temperatures")
        if self.horizon <= longest:
            raise InputError("horizon", self.horizon, f"use more than the {longest} tokens of the prompt")

    @property
    def receptive_field(self) -> int:
        """How many tokens an answer depends on with sliding attention."""
        return 1 + self.layers * (self.attention_window - 1)

    @property
    def networks(self) -> dict[str, int | None]:
        """The tokens that each network sees, by its name; None for all of them."""
        seen: dict[str, int | None] = {cropped(window): window for window in self.windows}
        return seen | {SLIDING: self.receptive_field, UNLIMITED: None}

    @property
    def measured_window(self) -> int:
        """Tokens of the windows by which text is measured, and of the prompts."""
        return self.periods * (2**self.pattern_bits - 1)

    @property
    def length(self) -> int:
        """Tokens of prompt and continuation."""
        return self.measured_window + self.horizon

    def corpus(self) -> PatternCorpus:
        """The corpus."""
        return PatternCorpus(maximal_length_patterns(self.pattern_bits), self.noise)


PRESETS = {
    "smoke": Config(
        windows=(3, 5, 7),
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
    "pilot": Config(seeds=tuple(range(100, 104))),
    "default": Config(),
    # The networks of `default` on seeds that no other preset has, as many as the claim of each longer window needs for
    # a power of 0.8.
    "night": Config(seeds=tuple(range(200, 260))),
    "paper": Config(seeds=tuple(range(20)), samples=2000, training_steps=4000, batch_tokens=8192),
}
