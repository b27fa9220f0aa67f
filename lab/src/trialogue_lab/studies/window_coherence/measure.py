"""Tasks of a run: networks that are trained on stored patterns, generate text, and are solved exactly."""

import copy
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from trialogue.inspection.coherence import measure_coherence
from trialogue.models import Cropped, Endless, Transformer, TransformerConfig
from trialogue.oracles import Autoregressive
from trialogue.randomness import seed_of
from trialogue.training import TrainingConfig, train
from trialogue_lab.ledger import Part
from trialogue_lab.studies.window_coherence.config import SLIDING, Config
from trialogue_lab.theory.potts.domain_walls import crossing_length
from trialogue_lab.theory.potts.map import AutoregressiveHamiltonian, hamiltonian_of
from trialogue_lab.theory.potts.pattern_survival import PatternSurvival

Array = NDArray[np.float64]
_RATE_TOLERANCE = 1e-7


def parts(config: Config) -> list[Part]:
    """Return the exact task, and one task per network."""
    networks = [
        Part(f"{seed}-{name.replace(' ', '-')}", partial(network_rows, config, name, seed), lane=str(seed))
        for seed in config.seeds
        for name in config.networks
    ]
    return [Part("exact", partial(reference_rows, config)), *networks]


@cache
def chains(config: Config) -> list[PatternSurvival]:
    """Return the chain that is killed at the first wall, for each pattern in phase 0."""
    corpus = config.corpus()
    return [
        PatternSurvival(corpus.patterns, config.measured_window, pattern * corpus.period, corpus.vocab_size)
        for pattern in range(len(corpus.patterns))
    ]


def tempered(log_probs: Tensor, temperature: float) -> Tensor:
    """Return the next-token log-probabilities `log_probs` (..., V) at `temperature`."""
    return (log_probs / temperature).log_softmax(-1)


def rates_of(config: Config, log_probs: Tensor) -> Array:
    """Return the exact long-run decay rates (patterns,), in nats per token, of a model with a finite window."""
    return np.array([chain.decay_rate(log_probs, tolerance=_RATE_TOLERANCE).rate for chain in chains(config)])


def curves_of(config: Config, log_probs: Sequence[Tensor]) -> Array:
    """Return the exact survival (patterns, horizon + 1) for next-token distributions by pattern."""
    pairs = zip(chains(config), log_probs, strict=True)
    return np.stack([chain.curve(each, config.horizon) for chain, each in pairs])


def late_error(config: Config, curves: Array, rates: Array) -> float:
    """Return the largest log ratio of the decay over the last measured window to the long-run rate."""
    span = config.measured_window
    late = np.log(curves[:, -1 - span] / curves[:, -1]) / span
    return float(np.abs(np.log(late / rates)).max())


def reference_rows(config: Config, _: Path) -> Iterator[dict[str, Any]]:
    """Yield exact rows of the corpus, and of the best model with each window up to `config.best_windows`."""
    corpus = config.corpus()
    log_probs_of_corpus = [
        corpus.label_log_probs(pattern * corpus.period, config.measured_window, config.horizon)[:, None]
        for pattern in range(len(corpus.patterns))
    ]
    survival = curves_of(config, log_probs_of_corpus).mean(0)
    late = config.measured_window
    yield {
        "kind": "corpus",
        "survival": float(survival[-1]),
        "rate": float(-np.log(survival[-1] / survival[late]) / (config.horizon - late)),
    }
    for window in range(1, config.best_windows + 1):
        log_probs = corpus.context_log_probs(window)
        for temperature in config.exact_temperatures:
            rate = float(rates_of(config, tempered(log_probs, temperature)).mean())
            yield {"kind": "best", "window": window, "temperature": temperature, "rate": rate}


def train_network(config: Config, name: str, seed: int) -> tuple[Transformer, float]:
    """Train a network on the corpus, and return it with its mean loss over the last tenth of the steps.

    A cropped network reads sequences of one window and the next token. The other networks read full sequences. Sliding
    attention has no positions, so that its predictions depend on the visible tokens only.

    Returns:
        The network, and the loss in nats per token.
    """
    corpus, window = config.corpus(), config.networks[name]
    length = config.length if window is None or name == SLIDING else window + 1
    shape = config.shared(TransformerConfig) | ({} if name == SLIDING else {"attention_window": None})
    model = Transformer(
        TransformerConfig(
            **shape,
            vocab_size=corpus.vocab_size,
            mlp_width=4 * config.width,
            max_length=length,
            positions="none" if name == SLIDING else "learned",
        ),
        seed_of(seed, "window-coherence", name),
    )
    rows = max(1, round(config.batch_tokens / length))
    recipe = TrainingConfig(
        steps=config.training_steps,
        batch_size=rows,
        learning_rate=config.learning_rate,
        weight_decay=0.0,
        warmup_steps=config.training_steps // 10,
        seed=seed,
        bf16=False,
    )

    def batch(step: int) -> Tensor:
        return corpus.sample(rows, length, seed_of(seed, "window-coherence", "batch", name, step))

    losses = train(model, batch, recipe, progress=False, loss=token_loss).losses
    return model, float(losses[-max(1, config.training_steps // 10) :].mean())


def token_loss(model: Transformer, tokens: Tensor) -> Tensor:
    """Return the mean cross-entropy (nats) of every token of `tokens` (n, L), without an end token."""
    inputs = F.pad(tokens[:, :-1], (1, 0), value=model.bos)
    return F.cross_entropy(model(inputs).flatten(0, 1), tokens.flatten())


def network_rows(config: Config, name: str, seed: int, _: Path) -> Iterator[dict[str, Any]]:
    """Train one network and yield its exact rates, and measurements of its text at each temperature."""
    window = config.networks[name]
    model, loss = train_network(config, name, seed)
    oracle: Autoregressive = Endless(model)
    if window is not None and name != SLIDING:
        oracle = Cropped(oracle, window)
    network: dict[str, Any] = {"model": name, "seed": seed} | ({} if window is None else {"window": window})
    curves: dict[float, Array] = {}
    if window is not None:
        hamiltonian = hamiltonian_of_network(model, name, window)
        energies = hamiltonian.chain.energies
        max_energy = float(energies.max())
        bound = crossing_length(window + 1, max_energy, 1.0, config.corpus().labels)
        yield {"kind": "bound", **network, "max_energy": max_energy, "log_crossing": float(np.log(bound))}
        log_probs = -(energies + hamiltonian.offset).flatten(0, -2)
        for temperature in config.exact_temperatures:
            tempered_log_probs = tempered(log_probs, temperature)
            rates = rates_of(config, tempered_log_probs)
            row = {"kind": "rate", **network, "temperature": temperature, "rate": float(rates.mean())}
            if temperature in config.temperatures:
                curves[temperature] = curves_of(config, [tempered_log_probs] * len(rates))
                row["late_error"] = late_error(config, curves[temperature], rates)
            yield row
    for temperature in (*config.temperatures, 0.0):
        exact = curves[temperature].mean(0) if temperature in curves else None
        yield from text_rows(config, oracle, network | {"loss": loss}, temperature, exact)


def hamiltonian_of_network(model: Transformer, name: str, window: int) -> AutoregressiveHamiltonian:
    """Return the Potts chain of a network with a window, by Theorem 1.2."""
    # The map needs predictions that do not depend on the batch, which single precision does not give.
    oracle = Endless(copy.deepcopy(model).double())
    return hamiltonian_of(oracle if name == SLIDING else Cropped(oracle, window), window)


def text_rows(
    config: Config, oracle: Autoregressive, network: dict[str, Any], temperature: float, exact: Array | None
) -> Iterator[dict[str, Any]]:
    """Yield measurements of text that continues each pattern, with survival curves at temperature 1."""
    measured = measure_coherence(
        oracle,
        config.corpus().patterns,
        max_new_tokens=config.horizon,
        window=config.measured_window,
        temperature=temperature,
        repeats=config.periods,
        num_samples=1 if temperature == 0 else config.samples,
        seed=seed_of(network["seed"], "window-coherence", "text"),
    )
    runs = measured.first_runs()
    # After one measured window, the noise-free prompt no longer affects the text.
    late = (runs.lengths - config.measured_window).clip(min=0)
    survival = runs.survival(np.arange(config.horizon + 1))
    row = {
        "kind": "network",
        **network,
        "temperature": temperature,
        "survival": float(survival[-1]),
        "mean_run": runs.restricted_mean(),
        "walls": measured.walls_per_token(),
        "late_ends": int(runs.ended[late > 0].sum()),
        "late_tokens": int(late.sum()),
    }
    if exact is not None:
        row |= {"exact_survival": float(exact[-1]), "exact_mean_run": float(exact[:-1].sum())}
    yield row
    for token in range(0, config.horizon + 1, 3) if temperature == 1 else ():
        row = {"kind": "curve", **network, "token": token, "survival": float(survival[token])}
        yield row | ({} if exact is None else {"exact_survival": float(exact[token])})
