"""Tasks of a run: the distributions of each sample of the text, and the methods that approximate them."""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, get_args

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.models.networks.attention_only import AttentionOnly, AttentionOnlyConfig
from trialogue_lab.data.ngram_table import NgramTable
from trialogue_lab.data.ngrams import ngram_distributions
from trialogue_lab.data.sentences import corpus_or_sentences
from trialogue_lab.ledger import MeasuredRows, Part, parts_by_seed, record_model
from trialogue_lab.studies.memorization_text import networks
from trialogue_lab.studies.memorization_text.config import EXACT, TABLE, TRAINED, TRANSFORMER, Config
from trialogue_lab.theory import memorization
from trialogue_lab.theory.memorization.approximation import Method
from trialogue_lab.theory.memorization.targets import compute_divergence

Predictor = Callable[[Tensor], Tensor]
"""Function from contexts (n, S) to log-probabilities (n, N) of the next token."""
WEIGHT_BYTES = 4
"""Bytes per parameter (float32)."""


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run, one for each sample of the text.

    Each task estimates the next-token distributions of its sample. It then builds and trains networks that store them,
    and measures their errors.

    Args:
        config: Settings of the run.
    """
    return parts_by_seed(config, config.seeds, sample=_measure_sample)


class TextSample:
    """A sample of a text, with the next-token distributions after its most frequent contexts.

    A context is a sequence of S tokens. The distributions are relative frequencies in the sample, stored as a table
    with one row per context. Networks are built to return the same distributions.

    Args:
        config: Settings of the run.
        context: Context length S.
        rows: Text of the sample (n, L), int64.
        held_out: Held-out text (m, L), int64.
    """

    def __init__(self, config: Config, context: int, rows: Tensor, held_out: Tensor) -> None:
        size, self.rows = config.vocab_size, rows
        self.orders = [ngram_distributions(rows, length, size) for length in range(context + 1)]
        every, most = self.orders[-1], config.contexts
        self.counted = every._replace(contexts=every.contexts[:most], counts=every.counts[:most])
        self.contexts, self.prior = self.counted.contexts, self.counted.prior
        self.targets = self.counted.log_probs(config.smoothing)
        self.held_out = ngram_distributions(held_out, context, size)
        stored = set(map(tuple, self.contexts.tolist()))
        self.known = torch.tensor([tuple(row) in stored for row in self.held_out.contexts.tolist()])

    def scores(self, predictor: Predictor) -> dict[str, float]:
        """Score predictions of the next token, on the sample and on held-out text.

        Args:
            predictor: Function from contexts (n, S) to log-probabilities (n, N).

        Returns:
            `kl`, the mean KL divergence of the predictions from the sample's next-token distributions, and the losses
            that `losses` returns. All are in nats per token.
        """
        kl = compute_divergence(self.targets, predictor(self.contexts), self.prior)
        return {"kl": kl, **self.losses(predictor)}

    def losses(self, predictor: Predictor) -> dict[str, float]:
        """Return the losses on held-out text, in nats per token.

        Args:
            predictor: Function from contexts (n, S) to log-probabilities (n, N).

        Returns:
            `held_out`, the mean over all positions, and `held_out_known`, the mean over positions whose context is
            among the most frequent ones of the sample.
        """
        counts = self.held_out.counts
        losses = -(counts * predictor(self.held_out.contexts)).sum(1)
        return {
            "held_out": float(losses.sum() / counts.sum()),
            "held_out_known": float(losses[self.known].sum() / counts[self.known].sum()),
        }

    @property
    def known_share(self) -> float:
        """Share of the held-out positions whose contexts are among the most frequent ones."""
        return float(self.held_out.counts[self.known].sum() / self.held_out.counts.sum())


def _measure_sample(config: Config, seed: int, artifacts: Path) -> MeasuredRows:
    sizes = {"vocab_size": config.vocab_size, "length": config.length}
    corpus = corpus_or_sentences(config.text, artifacts, **sizes, test_share=config.test_share)
    record_model({"text": config.text or "made-up sentences", "files": corpus.fingerprint})
    rows, held_out = (part[seed :: config.samples] for part in (corpus.train, corpus.test))
    if not len(rows) or not len(held_out):
        hint = "the text has too few rows: use fewer samples, shorter rows, or a longer text"
        raise InputError("samples", config.samples, hint)
    rows = rows[: config.rows]
    for context in config.context_lengths:
        sample = TextSample(config, context, rows, held_out)
        yield {"context": context} | _describe_text(config, sample)
        for width in config.widths:
            for row in _measure_width(config, sample, width, seed, artifacts):
                yield {"context": context, "width": width} | row


def _describe_text(config: Config, sample: TextSample) -> dict[str, Any]:
    """Return a row with properties of the next-token distributions and the scores of two baselines.

    The baselines are token frequencies without context, and a table of all counts.
    """
    table = NgramTable(sample.orders, smoothing=config.smoothing)
    alone = sample.orders[0].log_probs(config.smoothing)
    scores = sample.scores(lambda contexts: alone.expand(len(contexts), -1))
    return {
        "kind": "text",
        "tokens": sample.orders[0].occurrences,
        "contexts": len(sample.contexts),
        "different": sample.counted.different,
        "share": sample.counted.share,
        "entropy": -float(sample.prior @ (sample.targets.exp() * sample.targets).sum(1)),
        "known_share": sample.known_share,
        "table_bytes": table.size,
        "table_held_out": sample.losses(table.context_log_probs)["held_out"],
        **{f"alone_{name}": value for name, value in scores.items()},
    }


def _measure_width(
    config: Config, sample: TextSample, width: int, seed: int, artifacts: Path
) -> MeasuredRows:
    encoder = memorization.nearest_encoder(sample.targets, width, sample.prior)
    truncated = memorization.truncated_encoder(sample.targets, width, sample.prior)
    yield {"kind": "encoder", "kl": encoder.kl, "truncated": truncated.kl}
    for share in (*config.shares, 1.0):
        least_features = (share if share < 1 else 1 + config.provision) * len(sample.contexts)
        heads = max(1, math.ceil((least_features - width) / width))
        shape = AttentionOnlyConfig(
            vocab_size=config.vocab_size,
            context=sample.contexts.shape[1],
            width=width,
            heads=heads,
            head_width=width,
        )
        features = memorization.capacity(width, width, heads)
        columns = {"kind": "network", "share": share, "features": features, "heads": heads}
        for row in _measure_built_networks(sample, encoder, shape, seed, exact=share == 1):
            yield columns | _make_size_columns(shape.parameters) | {"encoder_kl": encoder.kl} | row
        max_bytes = WEIGHT_BYTES * shape.parameters
        table = NgramTable(sample.orders, smoothing=config.smoothing, most_bytes=max_bytes)
        scores = sample.scores(table.context_log_probs)
        kept = {"method": TABLE, "kept": table.contexts[-1], "bytes": table.size}
        yield columns | scores | {"kl_float32": scores["kl"]} | kept
        if share in config.trained_shares:
            for row in _measure_trained_networks(config, sample, shape, seed, artifacts):
                yield columns | {"encoder_kl": encoder.kl} | row


def _make_size_columns(parameters: int) -> dict[str, int]:
    return {"parameters": parameters, "bytes": WEIGHT_BYTES * parameters}


def _measure_built_networks(
    sample: TextSample, encoder: memorization.Encoder, shape: AttentionOnlyConfig, seed: int, *, exact: bool
) -> MeasuredRows:
    """Build networks that store all distributions, or that approximate them by each `Method`."""
    target = (sample.targets, sample.contexts, shape.width, shape.heads, shape.head_width, seed)
    if exact:
        built = memorization.memorize(*target, prior=sample.prior, encoder=encoder)
        yield {
            "method": EXACT,
            "kept": len(sample.contexts),
            "left": 0.0,
            "error": built.largest_error,
            "error_float32": built.largest_error_float32,
            "condition": built.condition,
        } | _score_built_network(sample, built.model)
        return
    for method in get_args(Method):
        found = memorization.memorize_approximately(
            *target, method=method, prior=sample.prior, encoder=encoder
        )
        yield {
            "method": method,
            "kept": int(found.kept.sum()),
            "left": found.left,
            "tight": found.tight_bound,
            "loose": found.loose_bound if math.isfinite(found.loose_bound) else None,
        } | _score_built_network(sample, found.model)


def _score_built_network(sample: TextSample, network: AttentionOnly) -> dict[str, float]:
    """Return the scores of a network in float64, and its KL divergence in float32."""
    scores = sample.scores(partial(networks.compute_next_token_log_probs, network))
    single = networks.compute_next_token_log_probs(network.float(), sample.contexts)
    return scores | {"kl_float32": compute_divergence(sample.targets, single, sample.prior)}


def _measure_trained_networks(
    config: Config, sample: TextSample, shape: AttentionOnlyConfig, seed: int, artifacts: Path
) -> MeasuredRows:
    """Train an attention-only network and a transformer with the same number of parameters."""
    equal = networks.match_transformer_size(config.vocab_size, shape.context, config.layers, shape.parameters)
    for method, each in ((TRAINED, shape), (TRANSFORMER, equal)):
        network = networks.train_or_load_network(config, each, sample.rows, seed, artifacts)
        scores = sample.scores(partial(networks.compute_next_token_log_probs, network))
        size = _make_size_columns(networks.count_parameters(network))
        yield {"method": method} | size | scores | {"kl_float32": scores["kl"]}
