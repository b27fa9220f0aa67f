"""Settings of the study: the corpus, the networks and their windows, and the measurements of their text."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge

from trialogue.errors import InputError
from trialogue_lab.ledger import Count, Increasing, Positive, Probability, Seeds, Settings
from trialogue_lab.studies.window_coherence.pattern_corpus import PatternCorpus, make_maximal_length_patterns

SLIDING = "sliding attention"
UNLIMITED = "unlimited attention"
_MAX_WINDOW = 24


def cropped(window: int) -> str:
    """Return the name of a network whose input is cropped to the last tokens.

    Args:
        window: Number of tokens that the network sees.
    """
    return f"last {window} tokens"


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run.

    Each sequence of the corpus follows one of two periodic patterns, with noise. For each seed, one network is trained
    per context length in `windows`, one with sliding attention, and one with unlimited attention. The measurements are
    about how long generated text follows a pattern.

    Args:
        windows: Numbers of previous tokens that the networks with a cropped context see.
        attention_window: Number of tokens that a layer with sliding attention attends to.
        temperatures: Temperatures at which text is generated, in addition to greedy decoding.
        exact_temperatures: Temperatures at which the rate of leaving a pattern is computed exactly.
        best_windows: Largest context length for which the optimal model is computed.
        seeds: Seeds of the networks.
        samples: Number of continuations per pattern and temperature.
        horizon: Number of tokens of a continuation.
        pattern_bits: Number of bits b. The patterns have a period of 2^b - 1 tokens.
        noise: Probability of a wrong token in the corpus.
        periods: Number of periods of a pattern in a prompt. Text is compared with patterns in windows of the same
            length.
        layers: Number of layers of the networks.
        width: Width of the networks.
        heads: Number of attention heads of the networks.
        training_steps: Number of training steps of a network.
        batch_tokens: Approximate number of tokens of a training batch.
        learning_rate: Learning rate.
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
        """Raise `InputError` if fields contradict each other."""
        longest = self.periods * (2 ** min(self.pattern_bits, _MAX_WINDOW) - 1)
        if longest > _MAX_WINDOW:
            hint = f"use fewer periods or pattern_bits: windows have {longest} tokens, the maximum is {_MAX_WINDOW}"
            raise InputError("periods", self.periods, hint)
        if len(self.windows) < 2 or self.windows[-1] > longest:
            raise InputError("windows", self.windows, f"use two or more windows of 1 to {longest} tokens")
        if self.best_windows > longest:
            raise InputError("best_windows", self.best_windows, f"use at most {longest}")
        if self.receptive_field > longest:
            hint = (
                f"reduce it: {self.layers} layers see {self.receptive_field} tokens, the maximum is {longest}"
            )
            raise InputError("attention_window", self.attention_window, hint)
        for field in ("temperatures", "exact_temperatures"):
            values = getattr(self, field)
            if values[0] >= 1 or 1.0 not in values:
                raise InputError(field, values, "include 1 and a lower temperature")
        if not set(self.temperatures) <= set(self.exact_temperatures):
            raise InputError("temperatures", self.temperatures, "use a subset of exact_temperatures")
        if self.horizon <= longest:
            raise InputError("horizon", self.horizon, f"use more than {longest}, the tokens of the prompt")

    @property
    def receptive_field(self) -> int:
        """Number of tokens that a prediction with sliding attention depends on."""
        return 1 + self.layers * (self.attention_window - 1)

    @property
    def networks(self) -> dict[str, int | None]:
        """Number of previous tokens that each network sees, by name (None for all)."""
        seen: dict[str, int | None] = {cropped(window): window for window in self.windows}
        return seen | {SLIDING: self.receptive_field, UNLIMITED: None}

    @property
    def measured_window(self) -> int:
        """Number of tokens of a prompt. Text is compared with patterns in windows of this length."""
        return self.periods * (2**self.pattern_bits - 1)

    @property
    def length(self) -> int:
        """Number of tokens of a prompt and its continuation."""
        return self.measured_window + self.horizon

    def corpus(self) -> PatternCorpus:
        """Return the corpus of sequences that follow the stored patterns, with noise."""
        return PatternCorpus(make_maximal_length_patterns(self.pattern_bits), self.noise)


PRESETS = {
    "smoke": Config(
        windows=(3, 5, 7),
        exact_temperatures=(0.5, 1.0),
        best_windows=8,
        seeds=(0,),
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
    # The networks of `default` on new seeds, with enough seeds for the claim about each longer window to have a power
    # of 0.8.
    "night": Config(seeds=tuple(range(200, 260))),
    "paper": Config(seeds=tuple(range(20)), samples=2000, training_steps=4000, batch_tokens=8192),
}
