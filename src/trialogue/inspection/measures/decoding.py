"""Measure of how far decoding settings (temperature, top-p, ...) move the distribution of a model.

Prefixes are sampled from the model's distribution p. For a single token, the total variation between p(. | prefix) and
the truncated distribution is computed exactly. For texts of h tokens, with q the distribution that is sampled with
these settings,

    TV(p, q) = E_p[max(0, 1 - q(x) / p(x))],

which is the mean of a number between 0 and 1 over texts sampled from p. A temperature T is also compared with the
sharpened distribution of whole texts, p(x)^(1/T). Only texts of at least h tokens count here, because the sharpened
distribution strongly favors short texts. With the weights w(x) = prod_t sum_v p(v | x_<t)^(1/T) of texts sampled at
temperature T,

    TV = E_q[|w(x) / E_q[w] - 1|] / 2,

where E_q[w] is estimated from the same texts. The estimate is too low if a few weights dominate the sum. It is reported
without an interval, and only for lengths at which the effective sample size is at least half of the sample size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.inspection.measures.measure import Effort, Material, Measure, Report
from trialogue.inspection.measures.quantities import (
    Point,
    Quantity,
    curve_quantity,
    mean_point,
    share_point,
    single_quantity,
)
from trialogue.inspection.subject import Subject
from trialogue.oracles import Autoregressive
from trialogue.randomness import Streams, derive_seed
from trialogue.samplers import effective_sample_size, truncated

HORIZON = 32
_ROWS = 48
_BATCH_SIZE = 128
_MIN_EFFECTIVE = 0.5
TEMPERATURE = 0.7
RULES: dict[str, dict[str, Any]] = {
    f"temperature {TEMPERATURE}": {"temperature": TEMPERATURE},
    "top-p 0.9": {"top_p": 0.9},
    "top-k 50": {"top_k": 50},
    f"temperature {TEMPERATURE}, top-p 0.9": {"temperature": TEMPERATURE, "top_p": 0.9},
}
"""Common settings of samplers by name."""
_UNIT = "total variation"
_SETTINGS = ("temperature", "top_p", "top_k", "min_p")
_UNRELATED = ("do_sample", "eos_token_id", "max_length", "max_new_tokens")
"""Fields of a generation config that do not change the distribution of a token."""


@torch.inference_mode()
def sample_steps(
    oracle: Autoregressive, prompt: list[int], rows: int, horizon: int, seed: int
) -> Iterator[tuple[int, Tensor, Tensor, Tensor]]:
    """Sample texts from a model, and yield the next-token distributions at each step.

    Args:
        oracle: Model.
        prompt: Token ids of the prompt.
        rows: Number of sampled texts. They are sampled in batches of 128.
        horizon: Maximum number of tokens per text.
        seed: Random seed.

    Yields:
        Tuples of four entries. The first is the step within the text (from 0), and the second contains the indices (n,)
        of texts that have not ended. The others are the log-probabilities (n, vocab) of their next token, and the token
        (n,) sampled from them.
    """
    for batch in torch.arange(rows).split(_BATCH_SIZE):
        for step, (active, distributions, tokens) in enumerate(
            _sample_batch(oracle, prompt, batch, horizon, seed)
        ):
            yield step, batch[active], distributions, tokens


def _sample_batch(
    oracle: Autoregressive, prompt: list[int], numbers: Tensor, horizon: int, seed: int
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield the steps of `sample_steps` for the texts `numbers`, with indices into `numbers`."""
    rows = len(numbers)
    capacity = len(prompt) + horizon
    tokens = torch.zeros(rows, capacity, dtype=torch.int64)
    tokens[:, : len(prompt)] = torch.tensor(prompt)
    context, streams = oracle.open(rows, capacity), Streams(seed, numbers)
    active = torch.arange(rows)
    start = torch.full((rows,), context.first)
    for length in range(len(prompt), capacity):
        stop = torch.full_like(active, length)
        features = context.features(tokens[active], start[active], stop, active)
        distributions = context.log_probs(features).cpu()
        start[active] = length + 1
        sampled = streams.choose(distributions, active)
        tokens[active, length] = sampled
        yield active, distributions, sampled
        active = active[sampled != oracle.eos] if oracle.eos is not None else active
        if not len(active):
            return


def rule_distances(
    oracle: Autoregressive,
    rules: Mapping[str, Mapping[str, Any]],
    prompt: list[int],
    rows: int,
    horizon: int,
    seed: int,
) -> tuple[dict[str, NDArray[np.float64]], dict[str, NDArray[np.float64]]]:
    """Compute how far decoding rules move the distribution of a model.

    A decoding rule is a combination of temperature, top-p, top-k and min-p. Let p(x) be the model's probability of a
    text x, and q(x) its probability after a rule is applied.

    Args:
        oracle: Model.
        rules: Arguments of `trialogue.samplers.truncated`, by the name of the rule.
        prompt: Token ids of the prompt.
        rows: Number of texts sampled from p.
        horizon: Maximum number of tokens per text.
        seed: Random seed.

    Returns:
        Two dictionaries by the name of the rule. The first has the total variation distance for the next token,
        averaged over the prefixes of each text, shape (rows,). The second has max(0, 1 - q(x) / p(x)), where x are the
        first tokens of each text, shape (horizon, rows). The mean of row h - 1 over texts is an unbiased estimate of
        the total variation distance between texts of h tokens.

    Example:
        >>> from trialogue.data import Table
        >>> chain = Table(lambda prefix: (0.95, 0.05) if prefix[-1] == 0 else (0.5, 0.5), 2, memory=1)
        >>> rules = {"nucleus": {"top_p": 0.9}}
        >>> tokens, texts = rule_distances(chain, rules, [0], rows=5000, horizon=8, seed=0)
        >>> print(f"{tokens['nucleus'].mean():.2f}")
        0.05
        >>> print(texts["nucleus"].mean(1).round(2).tolist())
        [0.05, 0.1, 0.15, 0.19, 0.23, 0.27, 0.31, 0.34]
    """
    oracles = {name: truncated(oracle, **settings) for name, settings in rules.items()}
    log_ratios = {name: torch.zeros(rows, dtype=torch.float64) for name in rules}
    sums = {name: torch.zeros(rows, dtype=torch.float64) for name in rules}
    steps = torch.zeros(rows, dtype=torch.float64)
    deficits = {name: np.zeros((horizon, rows)) for name in rules}
    for step, active, distributions, sampled in sample_steps(oracle, prompt, rows, horizon, seed):
        steps[active] += 1
        indices, log_probs = torch.arange(len(active)), distributions.log_softmax(-1, dtype=torch.float64)
        for name, rule in oracles.items():
            altered = rule.truncate(distributions).double()
            sums[name][active] += (altered.exp() - log_probs.exp()).abs().sum(-1) / 2
            log_ratios[name][active] += altered[indices, sampled] - log_probs[indices, sampled]
            # The ratio of a text stays constant after its end, so all later steps are set as well.
            deficits[name][step:, active.numpy()] = (1 - log_ratios[name][active].exp()).clamp_min(0).numpy()
    return {name: (total / steps).numpy() for name, total in sums.items()}, deficits


def sharpening_weights(
    oracle: Autoregressive, temperature: float, prompt: list[int], rows: int, horizon: int, seed: int
) -> NDArray[np.float64]:
    """Compute importance weights from sampling at a temperature to the sharpened distribution of whole texts.

    The sharpened distribution is proportional to p(x)^(1/T), where p(x) is the probability of the whole text x and T
    the temperature. The weight w(x) of a text is p(x)^(1/T) divided by the probability of x when each token is sampled
    at temperature T.

    Args:
        oracle: Model.
        temperature: Temperature T.
        prompt: Token ids of the prompt.
        rows: Number of texts sampled at temperature T.
        horizon: Maximum number of tokens per text.
        seed: Random seed.

    Returns:
        log w(x) of the first h tokens of each text, in row h - 1 of an array of shape (horizon, rows). Entries after
        the end of a text are -inf.
    """
    tempered = truncated(oracle, temperature)
    total = torch.zeros(rows, dtype=torch.float64)
    found = np.full((horizon, rows), -np.inf)
    for step, active, distributions, _ in sample_steps(tempered, prompt, rows, horizon, seed):
        # With q = p^(1/T) / Z, the distribution p = q^T Z^T sums to one, which determines Z.
        total[active] -= (distributions.double() * temperature).logsumexp(-1) / temperature
        found[step, active.numpy()] = total[active].numpy()
    return found


def sharpened_distance(logs: NDArray[np.float64]) -> float:
    """Estimate a total variation distance from importance weights w, as mean(|w / mean(w) - 1|) / 2.

    Args:
        logs: Log-weights of sampled texts, shape (rows,). Entries of -inf are left out.

    Returns:
        The estimate. NaN if all entries are -inf.
    """
    if not np.isfinite(logs).any():
        return float("nan")
    weights = np.exp(logs[np.isfinite(logs)] - logs.max())
    return float(np.abs(weights / weights.mean() - 1).mean() / 2)


def publisher_rule(config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the decoding settings that the publisher of a model recommends.

    Args:
        config: Generation config of the model, without fields that equal the defaults of transformers.

    Returns:
        A dictionary with one item. The key is a name that lists the settings and the ignored fields, for
        instance a repetition penalty. The value has the arguments of `trialogue.samplers.truncated`. The
        dictionary is empty if the config does not recommend sampling with temperature, top-p, top-k or min-p.
    """
    if not config.get("do_sample"):
        return {}
    rule = {name: config[name] for name in _SETTINGS if config.get(name) is not None}
    # transformers disables top-k truncation if the value is 0.
    if rule.get("top_k", 1) < 1:
        del rule["top_k"]
    if not rule:
        return {}
    ignored = sorted(set(config) - {*_SETTINGS, *_UNRELATED})
    settings = ", ".join(f"{name.replace('_', '-')} {value:g}" for name, value in rule.items())
    return {f"publisher: {settings}" + (f" (without {', '.join(ignored)})" if ignored else ""): rule}


class DecodingRules(Measure):
    """Measure of how far common decoding settings move the distribution of a model.

    The settings are combinations of temperature, top-p and top-k, and those recommended by the model's
    publisher.
    """

    question = (
        "How far are the distributions sampled by common decoding rules from the intended distribution?"
    )
    reading = (
        "A total variation of 0 means equal distributions, and 1 means disjoint ones. For one token, it is exact for "
        "each prefix and averaged over prefixes sampled from the model. For whole texts, it is an unbiased estimate. "
        "p(x)^(1/T) applies the temperature T to the probability p(x) of a whole text, instead of each token. For this "
        "distribution, small samples underestimate the total variation, and there is no interval. The settings of the "
        "model's publisher are included if they define a sampling rule. The name of this rule lists ignored settings."
    )

    def count_tokens(self, subject: Subject, material: Material, effort: Effort) -> int:
        """Return the number of tokens of all sampled texts.

        Half of the texts are sampled at temperature 1, and the other half at temperature 0.7.

        Args:
            subject: Model to measure.
            material: Texts on which the model is evaluated.
            effort: Sample sizes and seed.
        """
        return 2 * effort.rows(_ROWS) * subject.processed_tokens(len(subject.start_tokens), _horizon(subject))

    def model_refusal(self, subject: Subject) -> str | None:
        """Return a reason if the model cannot generate a single token, and None otherwise.

        Args:
            subject: Model to measure.
        """
        if _horizon(subject) >= 1:
            return None
        return f"it generates texts of at most {subject.max_generated_length} tokens"

    def take(self, subject: Subject, material: Material, effort: Effort, report: Report) -> list[Quantity]:
        """Measure how far decoding rules, such as top-p or a temperature, move the distribution of sampled texts.

        The distance of two distributions is their total variation distance.

        Args:
            subject: Causal model.
            material: Not used.
            effort: Number of texts and seed.
            report: Called with progress messages.

        Returns:
            For each rule, the distance for one token, and a curve of the distance for texts by their length. A further
            curve compares temperature 0.7 with the sharpened distribution of whole texts, if the estimate is reliable.
        """
        oracle, rows, horizon = subject.oracle, effort.rows(_ROWS), _horizon(subject)
        rules = {**RULES, **publisher_rule(oracle.generation_config)}
        report(f"{rows} texts of {horizon} tokens at temperature 1")
        per_token, per_text = rule_distances(oracle, rules, subject.start_tokens, rows, horizon, effort.seed)
        report(f"{rows} texts at temperature {TEMPERATURE}")
        logs = sharpening_weights(
            oracle, TEMPERATURE, subject.start_tokens, rows, horizon, derive_seed(effort.seed, "tempered")
        )
        lengths = [2**power for power in range(horizon.bit_length()) if 2**power <= horizon]
        along = "tokens of the text"

        def shares(values: NDArray[np.float64]) -> list[Point]:
            return [share_point(values[length - 1], length) for length in lengths]

        found = [
            single_quantity(
                f"one token, {name}",
                mean_point(values),
                unit=_UNIT,
                exact=0.0,
            )
            for name, values in per_token.items()
        ]
        found += [
            curve_quantity(f"text, {name}", shares(values), along, unit=_UNIT, exact=0.0)
            for name, values in per_text.items()
        ]
        points = [
            Point(sharpened_distance(logs[length - 1]), at=length)
            for length in lengths
            if effective_sample_size(torch.from_numpy(logs[length - 1])) >= rows * _MIN_EFFECTIVE
        ]
        if points:
            name = f"text, temperature {TEMPERATURE} and p(x)^(1/{TEMPERATURE})"
            found.append(curve_quantity(name, points, along, unit=_UNIT, exact=0.0))
        return found


def _horizon(subject: Subject) -> int:
    return min(HORIZON, subject.max_generated_length - len(subject.start_tokens))
