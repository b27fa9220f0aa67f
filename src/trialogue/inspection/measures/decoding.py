"""Decoding rules: how far what users draw with is from the model's own distribution, token by token and over whole
texts.

Prefixes are drawn from the model itself, as p says. At each, the total variation between p(. | prefix) and what a rule
makes of it is exact. Over texts of h tokens, with q the distribution that the rule samples, it is

    TV(p, q) = E_p[max(0, 1 - q(x) / p(x))],

the mean of a number between 0 and 1 over texts drawn from p. A temperature is also held against the distribution that
its users may have in mind, p(x)^(1/T) of whole texts, among those that go on for h tokens, as it gives most to those
that end at once: with the weights w(x) = prod_t sum_v p(v | x_<t)^(1/T) of texts drawn at the temperature,

    TV = E_q[|w(x) / E_q[w] - 1|] / 2,

where E_q[w] is estimated by the same texts. That puts the number too low where a few weights are most of the sum, so
that it is told as far as the effective number of texts is half of those drawn, and without an interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.inspection.measures.measure import Effort, Material, Measure, Report
from trialogue.inspection.measures.quantities import Point, Quantity, curve, mean, number, share
from trialogue.inspection.subject import Subject
from trialogue.oracles import Autoregressive
from trialogue.randomness import Streams, seed_of
from trialogue.samplers import effective_sample_size, truncated

HORIZON = 32
_ROWS = 48
_AT_ONCE = 128
_EFFECTIVE = 0.5
TEMPERATURE = 0.7
RULES: dict[str, dict[str, Any]] = {
    f"temperature {TEMPERATURE}": {"temperature": TEMPERATURE},
    "top-p 0.9": {"top_p": 0.9},
    "top-k 50": {"top_k": 50},
    f"temperature {TEMPERATURE}, top-p 0.9": {"temperature": TEMPERATURE, "top_p": 0.9},
}
"""What users commonly set, by name."""
_UNIT = "total variation"
_SETTINGS = ("temperature", "top_p", "top_k", "min_p")
_OF_LENGTH = ("do_sample", "eos_token_id", "max_length", "max_new_tokens")
"""What a publisher says that is no cut of a distribution"""


@torch.inference_mode()
def drawn(
    oracle: Autoregressive, opening: list[int], rows: int, horizon: int, seed: int
) -> Iterator[tuple[int, Tensor, Tensor, Tensor]]:
    """Sample texts of up to `horizon` tokens after `opening`, and yield the distribution at each step.

    Yields the step, the rows (n,) that have not ended, the log-probabilities (n, vocab) of their next token, and the
    sampled token (n,). Texts are sampled batch by batch.
    """
    for part in torch.arange(rows).split(_AT_ONCE):
        for step, (going, distributions, chosen) in enumerate(_batch(oracle, opening, part, horizon, seed)):
            yield step, part[going], distributions, chosen


def _batch(
    oracle: Autoregressive, opening: list[int], numbers: Tensor, horizon: int, seed: int
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """What `drawn` tells of the texts `numbers` (rows,), by their places among these."""
    rows = len(numbers)
    capacity = len(opening) + horizon
    tokens = torch.zeros(rows, capacity, dtype=torch.int64)
    tokens[:, : len(opening)] = torch.tensor(opening)
    context, streams = oracle.open(rows, capacity), Streams(seed, numbers)
    going = torch.arange(rows)
    start = torch.full((rows,), context.first)
    for length in range(len(opening), capacity):
        stop = torch.full_like(going, length)
        distributions = context.log_probs(context.features(tokens[going], start[going], stop, going)).cpu()
        start[going] = length + 1
        chosen = streams.choose(distributions, going)
        tokens[going, length] = chosen
        yield going, distributions, chosen
        going = going[chosen != oracle.eos] if oracle.eos is not None else going
        if not len(going):
            return


def rule_distances(
    oracle: Autoregressive,
    rules: Mapping[str, Mapping[str, Any]],
    opening: list[int],
    rows: int,
    horizon: int,
    seed: int,
) -> tuple[dict[str, NDArray[np.float64]], dict[str, NDArray[np.float64]]]:
    """Of each of `rules`: total variations of the next token (rows,), means over the prefixes of a text drawn from p,
    and max(0, 1 - q(x) / p(x)) (horizon, rows) of its first tokens."""
    cuts = {name: truncated(oracle, **settings) for name, settings in rules.items()}
    logs = {name: torch.zeros(rows, dtype=torch.float64) for name in rules}
    sums = {name: torch.zeros(rows, dtype=torch.float64) for name in rules}
    steps = torch.zeros(rows, dtype=torch.float64)
    missed = {name: np.zeros((horizon, rows)) for name in rules}
    for step, going, distributions, chosen in drawn(oracle, opening, rows, horizon, seed):
        steps[going] += 1
        place, own = torch.arange(len(going)), distributions.log_softmax(-1, dtype=torch.float64)
        for name, cut in cuts.items():
            altered = cut.truncate(distributions).double()
            sums[name][going] += (altered.exp() - own.exp()).abs().sum(-1) / 2
            logs[name][going] += altered[place, chosen] - own[place, chosen]
            # Where a text has ended nothing changes.
            missed[name][step:, going.numpy()] = (1 - logs[name][going].exp()).clamp_min(0).numpy()
    return {name: (total / steps).numpy() for name, total in sums.items()}, missed


def sharpening_weights(
    oracle: Autoregressive, temperature: float, opening: list[int], rows: int, horizon: int, seed: int
) -> NDArray[np.float64]:
    """log w (horizon, rows) of texts drawn at a `temperature`: p(x)^(1/T) over the probability they were drawn with.

    -inf of texts that have ended before.
    """
    tempered = truncated(oracle, temperature)
    total = torch.zeros(rows, dtype=torch.float64)
    found = np.full((horizon, rows), -np.inf)
    for step, going, distributions, _ in drawn(tempered, opening, rows, horizon, seed):
        # q = p^(1/T) / Z, and p = q^T Z^T sums to one.
        total[going] -= (distributions.double() * temperature).logsumexp(-1) / temperature
        found[step, going.numpy()] = total[going].numpy()
    return found


def sharpened_distance(logs: NDArray[np.float64]) -> float:
    """The total variation by log-weights (rows,), NaN where no text goes on."""
    if not np.isfinite(logs).any():
        return float("nan")
    weights = np.exp(logs[np.isfinite(logs)] - logs.max())
    return float(np.abs(weights / weights.mean() - 1).mean() / 2)


def published(stated: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The rule that the generation config of a model states (only what differs from the library's defaults), by a name.

    None where that says nothing of sampling. Of other settings, such as a penalty of repetition, the name says that
    they are left out.
    """
    if not stated.get("do_sample"):
        return {}
    own = {name: stated[name] for name in _SETTINGS if stated.get(name) is not None}
    if own.get("top_k", 1) < 1:  # so it is switched off there
        del own["top_k"]
    if not own:
        return {}
    left = sorted(set(stated) - {*_SETTINGS, *_OF_LENGTH})
    said = ", ".join(f"{name.replace('_', '-')} {value:g}" for name, value in own.items())
    return {f"publisher: {said}" + (f" (without {', '.join(left)})" if left else ""): own}


class DecodingRules(Measure):
    """Distances between what common decoding rules sample and what their users believe."""

    question = (
        "How far is what common decoding rules sample from the distribution that their users "
        "believe they sample?"
    )
    reading = (
        "Total variation: 0 is the same distribution, 1 another one altogether. Of one token exact at each "
        "prefix, and a mean "
        "over prefixes that the model draws; of whole texts an estimate without bias, but for p(x)^(1/T), where few "
        "texts put it too low, and no interval is told. What the publisher of the model sets is applied where sampling "
        "is among it, but for settings that the name says are left out."
    )

    def tokens(self, subject: Subject, material: Material, effort: Effort) -> int:
        """Texts from the model's own distribution, and as many at a temperature."""
        return 2 * effort.rows(_ROWS) * subject.processed_tokens(len(subject.start_tokens), _horizon(subject))

    def model_refusal(self, subject: Subject) -> str | None:
        """Why no text can be drawn."""
        return None if _horizon(subject) >= 1 else f"it goes on within {subject.max_generated_length} tokens"

    def take(self, subject: Subject, material: Material, effort: Effort, report: Report) -> list[Quantity]:
        """Distances of one token, and of texts by their length."""
        oracle, rows, horizon = subject.oracle, effort.rows(_ROWS), _horizon(subject)
        rules = {**RULES, **published(oracle.generation_config)}
        report(f"{rows} texts of {horizon} tokens from its own distribution")
        single, whole = rule_distances(oracle, rules, subject.start_tokens, rows, horizon, effort.seed)
        report(f"{rows} texts at temperature {TEMPERATURE}")
        logs = sharpening_weights(
            oracle, TEMPERATURE, subject.start_tokens, rows, horizon, seed_of(effort.seed, "tempered")
        )
        lengths = [2**power for power in range(horizon.bit_length()) if 2**power <= horizon]
        along = "tokens of the text"

        def shares(values: NDArray[np.float64]) -> list[Point]:
            return [share(values[length - 1], length) for length in lengths]

        found = [
            number(f"one token, {name}", mean(values), unit=_UNIT, exact=0.0)
            for name, values in single.items()
        ]
        found += [
            curve(f"text, {name}", shares(values), along, unit=_UNIT, exact=0.0)
            for name, values in whole.items()
        ]
        points = [
            Point(sharpened_distance(logs[length - 1]), at=length)
            for length in lengths
            if effective_sample_size(torch.from_numpy(logs[length - 1])) >= rows * _EFFECTIVE
        ]
        if points:
            name = f"text, temperature {TEMPERATURE} and p(x)^(1/{TEMPERATURE})"
            found.append(curve(name, points, along, unit=_UNIT, exact=0.0))
        return found


def _horizon(subject: Subject) -> int:
    return min(HORIZON, subject.max_generated_length - len(subject.start_tokens))
