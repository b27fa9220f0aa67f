"""Networks of the study `window-coherence`: trained on stored patterns, made to write, and solved exactly."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from trialogue.analysis.coherence import coherence_of
from trialogue.data import PatternCorpus, maximal_length_patterns
from trialogue.models import Cropped, Endless, Transformer, TransformerConfig
from trialogue.oracles import Autoregressive
from trialogue.randomness import seed_of
from trialogue.studies.window_coherence_rows import SLIDING, cropped
from trialogue.theory.potts.domain_walls import crossing_length
from trialogue.theory.potts.map import AutoregressiveHamiltonian, hamiltonian_of
from trialogue.theory.potts.pattern_survival import PatternSurvival
from trialogue.training import TrainingConfig, train

Array = NDArray[np.float64]
_SAME_RATE = 1e-7


@dataclass(frozen=True)
class Setting:
    """What all networks of a run share: the corpus, how it is measured, and the recipe of training.

    Patterns have period 2^`pattern_bits` - 1; text is measured by windows of `periods` periods, which are also the
    prompt, over `horizon` generated tokens. A step of training predicts about `batch_tokens` tokens.
    """

    pattern_bits: int
    noise: float
    periods: int
    horizon: int
    attention_window: int
    layers: int
    width: int
    heads: int
    training_steps: int
    batch_tokens: int
    learning_rate: float
    samples: int

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


@cache
def chains(setting: Setting) -> list[PatternSurvival]:
    """The chain that dies at the first wall, from each pattern in phase 0."""
    corpus = setting.corpus()
    return [
        PatternSurvival(corpus.patterns, setting.measured_window, pattern * corpus.period, corpus.vocab_size)
        for pattern in range(len(corpus.patterns))
    ]


def tempered(log_probs: Tensor, temperature: float) -> Tensor:
    """The next-token laws that `temperature` makes of `log_probs` (..., V)."""
    return (log_probs / temperature).log_softmax(-1)


def rates_of(setting: Setting, log_probs: Tensor) -> Array:
    """Exact long-run decay rates (patterns,), in nats per token, of a model with a finite window."""
    found = [chain.decay_rate(log_probs, tolerance=_SAME_RATE).rate for chain in chains(setting)]
    return np.array(found)


def curves_of(setting: Setting, log_probs: Sequence[Tensor]) -> Array:
    """Exact survival (patterns, horizon + 1), by the next-token laws for each pattern."""
    curves = [
        chain.curve(law, setting.horizon) for chain, law in zip(chains(setting), log_probs, strict=True)
    ]
    return np.stack(curves)


def late_error(setting: Setting, curves: Array, rates: Array) -> float:
    """Largest log ratio between how fast survival falls over the last measured window and the long-run rate."""
    span = setting.measured_window
    late = np.log(curves[:, -1 - span] / curves[:, -1]) / span
    return float(np.abs(np.log(late / rates)).max())


def reference_rows(
    setting: Setting, windows: range, temperatures: tuple[float, ...]
) -> Iterator[dict[str, Any]]:
    """The corpus itself, and the best model with each window, exactly."""
    corpus = setting.corpus()
    itself = [
        corpus.label_log_probs(pattern * corpus.period, setting.measured_window, setting.horizon)[:, None]
        for pattern in range(len(corpus.patterns))
    ]
    survival = curves_of(setting, itself).mean(0)
    late = setting.measured_window
    yield {
        "kind": "corpus",
        "survival": float(survival[-1]),
        "rate": float(-np.log(survival[-1] / survival[late]) / (setting.horizon - late)),
    }
    for window in windows:
        log_probs = corpus.context_log_probs(window)
        for temperature in temperatures:
            law = tempered(log_probs, temperature)
            yield {
                "kind": "best",
                "window": window,
                "temperature": temperature,
                "rate": float(rates_of(setting, law).mean()),
            }


def trained(setting: Setting, name: str, window: int | None, seed: int) -> tuple[Transformer, float]:
    """A network trained on the corpus, and its mean loss (nats per token) over the last tenth of the steps.

    A cropped one reads sequences of its window and the token after it; the others read whole ones. Sliding attention
    knows no positions, so that its answers depend on the tokens it sees alone.
    """
    corpus = setting.corpus()
    length = setting.length if window is None or name == SLIDING else window + 1
    model = Transformer(
        TransformerConfig(
            vocab_size=corpus.vocab_size,
            layers=setting.layers,
            heads=setting.heads,
            width=setting.width,
            mlp_width=4 * setting.width,
            max_length=length,
            positions="none" if name == SLIDING else "learned",
            attention_window=setting.attention_window if name == SLIDING else None,
        ),
        seed_of(seed, "window-coherence", name),
    )
    rows = max(1, round(setting.batch_tokens / length))
    recipe = TrainingConfig(
        steps=setting.training_steps,
        batch_size=rows,
        learning_rate=setting.learning_rate,
        weight_decay=0.0,
        warmup_steps=setting.training_steps // 10,
        seed=seed,
        bf16=False,
    )

    def batch(step: int) -> Tensor:
        return corpus.sample(rows, length, seed_of(seed, "window-coherence", "batch", name, step))

    losses = train(model, batch, recipe, progress=False, loss=token_loss).losses
    return model, float(losses[-max(1, setting.training_steps // 10) :].mean())


def token_loss(model: Transformer, tokens: Tensor) -> Tensor:
    """Mean cross-entropy (nats) of every token of `tokens` (n, L), which are cut from texts that go on."""
    inputs = F.pad(tokens[:, :-1], (1, 0), value=model.bos)
    return F.cross_entropy(model(inputs).flatten(0, 1), tokens.flatten())


def network_rows(
    setting: Setting,
    name: str,
    window: int | None,
    seed: int,
    temperatures: tuple[float, ...],
    exact_temperatures: tuple[float, ...],
) -> Iterator[dict[str, Any]]:
    """Train one network and measure it: its text at each temperature and greedily, and its exact rates."""
    model, loss = trained(setting, name, window, seed)
    oracle: Autoregressive = Endless(model)
    if name == cropped(window or 0):
        oracle = Cropped(oracle, window or 0)
    own: dict[str, Any] = {"model": name, "seed": seed} | ({} if window is None else {"window": window})
    curves: dict[float, Array] = {}
    if window is not None:
        hamiltonian = hamiltonian_of_network(model, name, window)
        energies = hamiltonian.chain.energies
        labels = setting.corpus().labels
        most, bound = float(energies.max()), crossing_length(window + 1, float(energies.max()), 1.0, labels)
        yield {"kind": "bound", **own, "max_energy": most, "log_crossing": float(np.log(bound))}
        log_probs = -(energies + hamiltonian.offset).flatten(0, -2)
        for temperature in exact_temperatures:
            law = tempered(log_probs, temperature)
            rates = rates_of(setting, law)
            row = {"kind": "rate", **own, "temperature": temperature, "rate": float(rates.mean())}
            if temperature in temperatures:
                curves[temperature] = curves_of(setting, [law] * len(rates))
                row["late_error"] = late_error(setting, curves[temperature], rates)
            yield row
    for temperature in (*temperatures, 0.0):
        exact = curves[temperature].mean(0) if temperature in curves else None
        yield from text_rows(setting, oracle, own | {"loss": loss}, temperature, exact)


def hamiltonian_of_network(model: Transformer, name: str, window: int) -> AutoregressiveHamiltonian:
    """The Potts chain that a network with a window of so many tokens is, by Theorem 1.2."""
    # Single precision moves an answer with the batch, and the map asks that it does not move.
    oracle = Endless(copy.deepcopy(model).double())
    return hamiltonian_of(oracle if name == SLIDING else Cropped(oracle, window), window)


def text_rows(
    setting: Setting,
    oracle: Autoregressive,
    own: dict[str, Any],
    temperature: float,
    exact: Array | None,
) -> Iterator[dict[str, Any]]:
    """Let a network continue each pattern, and measure: runs, and at temperature 1 the curve of survival."""
    measured = coherence_of(
        oracle,
        setting.corpus().patterns,
        max_new_tokens=setting.horizon,
        window=setting.measured_window,
        temperature=temperature,
        repeats=setting.periods,
        num_samples=1 if temperature == 0 else setting.samples,
        seed=seed_of(own["seed"], "window-coherence", "text"),
    )
    runs = measured.first_runs()
    # Behind one measured window the text no longer shows that it began with a prompt without noise.
    late = (runs.lengths - setting.measured_window).clip(min=0)
    survival = runs.survival(np.arange(setting.horizon + 1))
    yield {
        "kind": "network",
        **own,
        "temperature": temperature,
        "survival": float(survival[-1]),
        "mean_run": runs.restricted_mean(),
        "walls": measured.walls_per_token(),
        "late_ends": int(runs.ended[late > 0].sum()),
        "late_tokens": int(late.sum()),
    } | (
        {}
        if exact is None
        else {"exact_survival": float(exact[-1]), "exact_mean_run": float(exact[:-1].sum())}
    )
    if temperature == 1:
        for token in range(0, setting.horizon + 1, 3):
            row = {"kind": "curve", **own, "token": token, "survival": float(survival[token])}
            yield row | ({} if exact is None else {"exact_survival": float(exact[token])})
