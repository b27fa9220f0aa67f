"""What is computed: the laws of refinement and of chains with perfect answers, on sentences small enough to list."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trialogue.oracles import Masked, whole_sequences
from trialogue.samplers import BlockGibbs, ChainRule, Gibbs
from trialogue.samplers.exact import transition_matrix
from trialogue_lab.studies.translation_dependency.config import CONDITIONALS, DENOISER, Config, Sentence
from trialogue_lab.studies.translation_dependency.hidden_markov import Denoiser, HiddenMarkov
from trialogue_lab.studies.translation_dependency.parallel_steps import (
    divergence_and_variation,
    refinement_laws,
)
from trialogue_lab.theory.masking.product_kernels import closest_in_divergence


class Truth:
    """The law of translations by length: of each that can occur its probability, and the law of its sequences."""

    def __init__(self, law: HiddenMarkov, clean: HiddenMarkov, longest: int) -> None:
        lengths = enumerate(law.length_log_probs(longest).exp().tolist())
        self.lengths = {length: chance for length, chance in lengths if chance > 0}
        states = {length: whole_sequences(law.vocab_size, length) for length in self.lengths}
        self.laws = {length: (-law.energy(tokens)).softmax(0) for length, tokens in states.items()}
        self._clean = {length: clean.energy(tokens) < torch.inf for length, tokens in states.items()}
        self._repeats = {
            length: (tokens[:, 1:] == tokens[:, :-1]).double().sum(1) / max(1, length - 1)
            for length, tokens in states.items()
        }

    def compared(self, laws: dict[int, Tensor]) -> dict[str, float]:
        """How far `laws` by length are from it, averaged over its lengths: KL in nats, and total variation.

        And the share of them that are translations, and of adjacent tokens that are repeated.
        """
        found = dict.fromkeys(("divergence", "variation", "valid", "stutter"), 0.0)
        for length, weight in self.lengths.items():
            law = laws[length]
            divergence, variation = divergence_and_variation(self.laws[length], law)
            valid, stutter = float(law[self._clean[length]].sum()), float(law @ self._repeats[length])
            for name, number in zip(found, (divergence, variation, valid, stutter), strict=True):
                found[name] += weight * number
        return found

    def joint(self, laws: dict[int, Tensor]) -> tuple[float, float]:
        """KL in nats and total variation of laws q(N, x) by length N, which need not sum to one."""
        truth = torch.cat([weight * self.laws[length] for length, weight in self.lengths.items()])
        return divergence_and_variation(
            truth / truth.sum(), torch.cat([laws[length] for length in self.lengths])
        )

    def total_correlation(self, vocab: int) -> float:
        """Of the tokens given the length, averaged over lengths."""
        return sum(
            weight * closest_in_divergence(self.laws[length].view((vocab,) * length)).distance
            for length, weight in self.lengths.items()
        )


def sentence_rows(sentence: Sentence, config: Config, _: Path) -> Iterator[dict[str, Any]]:
    """The gap of refinement at every coupling, pass by pass, and that to the translations of a teacher."""
    named = {"sentence": sentence.name, "pattern": sentence.pattern, "swapping": sentence.swapping}
    for coupling in config.couplings:
        law = sentence.law(coupling)
        truth = Truth(law, sentence.law(coupling, slips=0.0), sentence.longest)
        told = named | {"coupling": coupling}
        own = truth.compared(truth.laws)
        yield {
            "kind": "truth",
            **told,
            "total_correlation": truth.total_correlation(law.vocab_size),
            "states": max(map(len, truth.laws.values())),
            "valid": own["valid"],
            "stutter": own["stutter"],
        }
        for sampler, model in _models(law, config):
            for passes, compared in _refined(model, truth, config.passes):
                yield {"kind": "refined", **told, "sampler": sampler, "passes": passes, **compared}
        alike = sentence.alike()
        taught = Truth(alike, sentence.law(coupling, slips=0.0), sentence.longest)
        passes, compared = next(_refined(alike, taught, 1))
        length = next(iter(taught.lengths))
        lost = truth.lengths[length] * truth.laws[length]
        yield {
            "kind": "alike",
            **told,
            "passes": passes,
            **compared,
            "from_truth": 1 - float(torch.minimum(lost, taught.laws[length]).sum()),
        }


def _models(law: HiddenMarkov, config: Config) -> list[tuple[str, Masked]]:
    among = max(config.among, law.vocab_size)
    return [(CONDITIONALS, law), (DENOISER, Denoiser(law, config.correct, among))]


def _refined(model: Masked, truth: Truth, passes: int) -> Iterator[tuple[int, dict[str, float]]]:
    """After 1, 2, ... passes of `model` from masks, how far its law is from `truth`."""
    laws = {length: refinement_laws(model, length, passes - 1) for length in truth.lengths}
    for number in range(passes):
        yield number + 1, truth.compared({length: law[number] for length, law in laws.items()})


def chain_rows(sentence: Sentence, config: Config, _: Path) -> Iterator[dict[str, Any]]:
    """The gap of what leaves the law invariant, from the same first pass, by how often the oracle was asked."""
    law = sentence.law(config.chain_coupling)
    truth = Truth(law, sentence.law(config.chain_coupling, slips=0.0), sentence.longest)
    told = {"kind": "chain", "sentence": sentence.name, "coupling": config.chain_coupling}
    start = {length: refinement_laws(law, length, 0)[0] for length in truth.lengths}
    for sampler, model in _models(law, config):
        for passes, compared in _refined(model, truth, config.chain_passes):
            yield {**told, "sampler": sampler, "passes": passes, **compared}
    for sampler, block, cost in (("Gibbs", 1, 1), ("Gibbs of pairs", 2, 2)):
        laws = dict(start)
        matrices = {
            length: transition_matrix(
                Gibbs() if min(block, length) == 1 else BlockGibbs(block), ChainRule(law), sites=length
            )
            for length in truth.lengths
        }
        for passes in range(1, config.chain_passes + 1, cost):
            yield {**told, "sampler": sampler, "passes": passes, **truth.compared(laws)}
            laws = {length: laws[length] @ matrix for length, matrix in matrices.items()}
    ruled = {length: _by_chain_rule(law, length) for length in truth.lengths}
    mean = sum(length * weight for length, weight in truth.lengths.items())
    yield {**told, "sampler": "chain rule", "passes": mean, **truth.compared(ruled)}


def _by_chain_rule(law: HiddenMarkov, length: int) -> Tensor:
    """The law (V^N,) of tokens that are drawn from the first to the last, the rest masked."""
    vocab = law.vocab_size
    total = torch.zeros(1, dtype=torch.float64)
    for site in range(length):
        prefixes = whole_sequences(vocab, site)
        tokens = torch.nn.functional.pad(prefixes, (0, length - site))
        masked = (torch.arange(length) >= site).expand(len(tokens), -1)
        total = (total[:, None] + law.log_probs(tokens, masked)[:, site]).flatten()
    return total.exp()
