"""The parts of a run: for every sample of the text its laws, and how near all that holds them comes."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, get_args

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.models.attention_only import AttentionOnly, AttentionOnlyConfig
from trialogue_lab.data.ngram_table import NgramTable
from trialogue_lab.data.ngrams import ngram_distributions
from trialogue_lab.data.sentences import corpus_or_sentences
from trialogue_lab.ledger import Part, note_model
from trialogue_lab.studies.memorization_text import networks
from trialogue_lab.studies.memorization_text.config import (
    EXACT,
    TABLE,
    TRAINED,
    TRANSFORMER,
    Config,
)
from trialogue_lab.theory import memorization
from trialogue_lab.theory.memorization.approximation import Method
from trialogue_lab.theory.memorization.targets import divergence

Row = Iterator[dict[str, Any]]
Answers = Callable[[Tensor], Tensor]
"""From contexts (n, S) to log-probabilities (n, N) of the next token."""
WEIGHT_BYTES = 4
"""Of a number of a network: float32"""


def parts(config: Config) -> list[Part]:
    """One part per sample."""
    return [
        Part(f"sample-{seed}", partial(_sample, config, seed), columns={"seed": seed})
        for seed in config.seeds
    ]


class SampleLaw:
    """The law of the next token after the most frequent contexts of a sample, and the sample's held-out text."""

    def __init__(self, config: Config, context: int, rows: Tensor, held_out: Tensor) -> None:
        size = config.vocab_size
        self.orders = [ngram_distributions(rows, length, size) for length in range(context + 1)]
        every, most = self.orders[-1], config.contexts
        self.counted = every._replace(contexts=every.contexts[:most], counts=every.counts[:most])
        self.contexts, self.prior = self.counted.contexts, self.counted.prior
        self.targets = self.counted.log_probs(config.smoothing)
        self.held_out = ngram_distributions(held_out, context, size)
        stored = set(map(tuple, self.contexts.tolist()))
        self.known = torch.tensor([tuple(row) in stored for row in self.held_out.contexts.tolist()])

    def scores(self, answers: Answers) -> dict[str, float]:
        """KL (law || answers) and losses on held-out text, in nats a token."""
        return {"kl": divergence(self.targets, answers(self.contexts), self.prior), **self.losses(answers)}

    def losses(self, answers: Answers) -> dict[str, float]:
        """Losses on held-out text, in nats a token: on all of it, and where the context is one of the law's."""
        counts = self.held_out.counts
        each = -(counts * answers(self.held_out.contexts)).sum(1)
        return {
            "held_out": float(each.sum() / counts.sum()),
            "held_out_known": float(each[self.known].sum() / counts[self.known].sum()),
        }

    @property
    def known_share(self) -> float:
        """The share of places of the held-out text whose contexts are those of the law."""
        return float(self.held_out.counts[self.known].sum() / self.held_out.counts.sum())


def _sample(config: Config, seed: int, artifacts: Path) -> Row:
    sizes = {"vocab_size": config.vocab_size, "length": config.length}
    corpus = corpus_or_sentences(config.text, artifacts, **sizes, test_share=config.test_share)
    note_model({"text": config.text or "made-up sentences", "files": corpus.fingerprint})
    rows, held_out = (part[seed :: config.samples] for part in (corpus.train, corpus.test))
    if not len(rows) or not len(held_out):
        hint = "the text has too few rows to deal out: use fewer samples, shorter rows, or a longer text"
        raise InputError("samples", config.samples, hint)
    rows = rows[: config.rows]
    for context in config.context_lengths:
        law = SampleLaw(config, context, rows, held_out)
        yield {"context": context} | _text(config, law)
        for width in config.widths:
            for row in _width(config, law, width, rows, seed, artifacts):
                yield {"context": context, "width": width} | row


def _text(config: Config, law: SampleLaw) -> dict[str, Any]:
    """What the law is of, and what knowing no context or all of them is worth."""
    whole = NgramTable(law.orders, smoothing=config.smoothing)
    alone = law.orders[0].log_probs(config.smoothing)
    scores = law.scores(lambda rows: alone.expand(len(rows), -1))
    return {
        "kind": "text",
        "tokens": law.orders[0].occurrences,
        "contexts": len(law.contexts),
        "different": law.counted.different,
        "share": law.counted.share,
        "entropy": -float(law.prior @ (law.targets.exp() * law.targets).sum(1)),
        "known_share": law.known_share,
        "table_bytes": whole.size,
        "table_held_out": law.losses(whole.answers)["held_out"],
        **{f"alone_{name}": value for name, value in scores.items()},
    }


def _width(config: Config, law: SampleLaw, width: int, rows: Tensor, seed: int, artifacts: Path) -> Row:
    encoder = memorization.nearest_encoder(law.targets, width, law.prior)
    truncated = memorization.truncated_encoder(law.targets, width, law.prior)
    yield {"kind": "encoder", "kl": encoder.kl, "truncated": truncated.kl}
    for share in (*config.shares, 1.0):
        wanted = share * len(law.contexts) if share < 1 else (1 + config.provision) * len(law.contexts)
        heads = max(1, math.ceil((wanted - width) / width))
        shape = AttentionOnlyConfig(
            vocab_size=config.vocab_size,
            context=law.contexts.shape[1],
            width=width,
            heads=heads,
            head_width=width,
        )
        same = {
            "kind": "network",
            "share": share,
            "features": memorization.capacity(width, width, heads),
            "heads": heads,
        }
        sized = {"parameters": shape.parameters, "bytes": WEIGHT_BYTES * shape.parameters}
        for row in _built(law, encoder, shape, seed, exact=share == 1):
            yield same | sized | {"encoder_kl": encoder.kl} | row
        table = NgramTable(law.orders, smoothing=config.smoothing, most_bytes=sized["bytes"])
        scores = law.scores(table.answers)
        kept = {"method": TABLE, "kept": table.contexts[-1], "bytes": table.size}
        yield same | scores | {"kl_float32": scores["kl"]} | kept
        if share in config.trained_shares:
            for row in _trained(config, law, shape, rows, seed, artifacts):
                yield same | {"encoder_kl": encoder.kl} | row


def _built(
    law: SampleLaw, encoder: memorization.Encoder, shape: AttentionOnlyConfig, seed: int, *, exact: bool
) -> Row:
    """Networks by construction: of all laws, or of the likeliest and by ridge regression."""
    asked = (law.targets, law.contexts, shape.width, shape.heads, shape.head_width, seed)
    if exact:
        built = memorization.memorize(*asked, prior=law.prior, encoder=encoder)
        yield {
            "method": EXACT,
            "kept": len(law.contexts),
            "left": 0.0,
            "error": built.largest_error,
            "error_float32": built.largest_error_float32,
            "condition": built.condition,
        } | _scores_of(law, built.model)
        return
    for method in get_args(Method):
        found = memorization.memorize_approximately(*asked, method=method, prior=law.prior, encoder=encoder)
        yield {
            "method": method,
            "kept": int(found.kept.sum()),
            "left": found.left,
            "tight": found.tight_bound,
            "loose": found.loose_bound if math.isfinite(found.loose_bound) else None,
        } | _scores_of(law, found.model)


def _scores_of(law: SampleLaw, network: AttentionOnly) -> dict[str, float]:
    """Scores of a built network in float64, and its KL where its weights are kept in as many bytes as are counted."""
    scores = law.scores(partial(networks.answers_of, network))
    single = divergence(law.targets, networks.answers_of(network.float(), law.contexts), law.prior)
    return scores | {"kl_float32": single}


def _trained(
    config: Config, law: SampleLaw, shape: AttentionOnlyConfig, rows: Tensor, seed: int, artifacts: Path
) -> Row:
    """A network of the same shape that has learned the text, and a transformer of as many parameters."""
    context = shape.context
    equal = networks.equal_transformer(config.vocab_size, context, config.layers, shape.parameters)
    for method, each in ((TRAINED, shape), (TRANSFORMER, equal)):
        network = networks.trained_network(config, each, rows, context, seed, artifacts)
        scores = law.scores(partial(networks.answers_of, network))
        size = networks.size_of(network)
        sized = {"method": method, "parameters": size, "bytes": WEIGHT_BYTES * size}
        yield sized | scores | {"kl_float32": scores["kl"]}
