"""Exact output distributions of refinement and of Markov chains with perfect models, by enumeration of all sentences.

Refinement samples all target tokens in parallel, given their current values, and repeats this for several passes.
"""

from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from trialogue.oracles import Masked, enumerate_sequences
from trialogue.samplers import BlockGibbs, ChainRule, Gibbs
from trialogue.samplers.exact import transition_matrix
from trialogue_lab.ledger import MeasuredRows
from trialogue_lab.studies.translation_dependency import parallel_steps
from trialogue_lab.studies.translation_dependency.config import CONDITIONALS, DENOISER, Config, Sentence
from trialogue_lab.studies.translation_dependency.hidden_markov import Denoiser, HiddenMarkov
from trialogue_lab.theory.masking.product_kernels import closest_in_divergence

Distributions = dict[int, Tensor]
"""Distributions (V^N,) of the sequences of N tokens, by length N."""


class TrueDistribution:
    """True distribution of the translations of a sentence, to which other distributions are compared.

    Args:
        translations: Distribution of the translations.
        correct: Distribution under which exactly the correct translations have positive probability.
        longest: Number of tokens of the longest translation.

    Attributes:
        lengths: Probability of each possible length.
        distributions: Distribution of the sequences of each possible length.
    """

    def __init__(self, translations: HiddenMarkov, correct: HiddenMarkov, longest: int) -> None:
        lengths = enumerate(translations.length_log_probs(longest).exp().tolist())
        self.lengths = {length: probability for length, probability in lengths if probability > 0}
        self.distributions: Distributions = {}
        self._correct: dict[int, Tensor] = {}
        self._repeats: dict[int, Tensor] = {}
        for length in self.lengths:
            tokens = enumerate_sequences(translations.vocab_size, length)
            self.distributions[length] = (-translations.energy(tokens)).softmax(0)
            self._correct[length] = correct.energy(tokens) < torch.inf
            self._repeats[length] = (tokens[:, 1:] == tokens[:, :-1]).double().sum(1) / max(1, length - 1)

    def compared(self, distributions: Distributions) -> dict[str, float]:
        """Compare distributions with the true distribution of translations.

        Args:
            distributions: Distributions (V^N,) of the sequences of N tokens, by N.

        Returns:
            Means over lengths, by name.

            - "divergence": KL divergence in nats.
            - "variation": total variation distance.
            - "valid": share of correct translations.
            - "stutter": share of equal adjacent tokens.
        """
        means = dict.fromkeys(("divergence", "variation", "valid", "stutter"), 0.0)
        for length, weight in self.lengths.items():
            own = distributions[length]
            distances = parallel_steps.compute_divergence_and_variation(self.distributions[length], own)
            valid, stutter = float(own[self._correct[length]].sum()), float(own @ self._repeats[length])
            for name, number in zip(means, (*distances, valid, stutter), strict=True):
                means[name] += weight * number
        return means

    def joint(self, distributions: Distributions) -> tuple[float, float]:
        """Compare a joint distribution of the length and the tokens of a translation with the true one.

        Args:
            distributions: Probabilities (V^N,) of the sequences of N tokens, by N. They may sum to less than one.

        Returns:
            The KL divergence in nats and the total variation.
        """
        truth = torch.cat([weight * self.distributions[length] for length, weight in self.lengths.items()])
        joint = torch.cat([distributions[length] for length in self.lengths])
        return parallel_steps.compute_divergence_and_variation(truth / truth.sum(), joint)

    def total_correlation(self, vocab: int) -> float:
        """Return the total correlation of the target tokens in nats, averaged over lengths.

        It measures how strongly the tokens depend on each other: the KL divergence from their joint distribution to the
        product of its marginals, given the length.

        Args:
            vocab: Number of tokens of the vocabulary.
        """
        return sum(
            weight * closest_in_divergence(self.distributions[length].view((vocab,) * length)).distance
            for length, weight in self.lengths.items()
        )


def measure_sentence(sentence: Sentence, config: Config, _: Path) -> MeasuredRows:
    """Compute the exact output distribution of refinement for one source sentence, after each pass.

    Refinement is a translation method that samples all target tokens in parallel, given their current values, and
    repeats this for several passes.

    Args:
        sentence: The source sentence.
        config: Settings with the couplings (strengths of the dependence between target tokens) and the number of
            passes.

    Yields:
        One row per coupling with the total correlation of the target tokens. One row per coupling, model and pass, with
        distances of the output from the true distribution of translations. One row per coupling for a teacher that
        always uses the first synonym of every word.
    """
    columns = {"sentence": sentence.name, "pattern": sentence.pattern, "swapping": sentence.swapping}
    for coupling in config.couplings:
        translations, correct = sentence.translations(coupling), sentence.translations(coupling, slips=0.0)
        truth = TrueDistribution(translations, correct, sentence.longest)
        task = columns | {"coupling": coupling}
        own = truth.compared(truth.distributions)
        yield {
            "kind": "truth",
            **task,
            "total_correlation": truth.total_correlation(translations.vocab_size),
            "states": max(map(len, truth.distributions.values())),
            "valid": own["valid"],
            "stutter": own["stutter"],
        }
        for row in _measure_refinement(translations, truth, config, config.passes):
            yield {"kind": "refined", **task, **row}
        teacher = sentence.deterministic_translations()
        taught = TrueDistribution(teacher, correct, sentence.longest)
        passes, compared = next(_compare_passes(teacher, taught, 1))
        length = next(iter(taught.lengths))
        joint = truth.lengths[length] * truth.distributions[length]
        overlap = float(torch.minimum(joint, taught.distributions[length]).sum())
        yield {"kind": "alike", **task, "passes": passes, **compared, "from_truth": 1 - overlap}


def _measure_refinement(
    translations: HiddenMarkov, truth: TrueDistribution, config: Config, passes: int
) -> MeasuredRows:
    """Yield distances from the true distribution after each pass of two perfect models.

    The models are exact conditionals and the perfect denoiser.
    """
    noise_tokens = max(config.noise_tokens, translations.vocab_size)
    models = {CONDITIONALS: translations, DENOISER: Denoiser(translations, config.correct, noise_tokens)}
    for sampler, model in models.items():
        for number, compared in _compare_passes(model, truth, passes):
            yield {"sampler": sampler, "passes": number, **compared}


def _compare_passes(
    model: Masked, truth: TrueDistribution, passes: int
) -> Iterator[tuple[int, dict[str, float]]]:
    """Yield distances from the true distribution after 1, 2, ... passes, starting from masks."""
    refined = {
        length: parallel_steps.compute_refinement_distributions(model, length, passes - 1)
        for length in truth.lengths
    }
    for number in range(passes):
        yield number + 1, truth.compared({length: each[number] for length, each in refined.items()})


def measure_chains(sentence: Sentence, config: Config, _: Path) -> MeasuredRows:
    """Compare Markov chains with refinement for one source sentence, at equal numbers of model calls.

    Refinement is a translation method that samples all target tokens in parallel in several passes. All samplers start
    with the same first pass from masked tokens.

    Args:
        sentence: The source sentence.
        config: Settings with the coupling (strength of the dependence between target tokens) and the number of passes.

    Yields:
        One row per sampler and number of model calls, with distances from the true distribution of translations.
    """
    translations = sentence.translations(config.chain_coupling)
    correct = sentence.translations(config.chain_coupling, slips=0.0)
    truth = TrueDistribution(translations, correct, sentence.longest)
    task = {"kind": "chain", "sentence": sentence.name, "coupling": config.chain_coupling}
    for row in _measure_refinement(translations, truth, config, config.chain_passes):
        yield {**task, **row}
    for sampler, block, calls in (("Gibbs", 1, 1), ("Gibbs of pairs", 2, 2)):
        current, matrices = {}, {}
        for length in truth.lengths:
            chain = Gibbs() if min(block, length) == 1 else BlockGibbs(block)
            matrices[length] = transition_matrix(chain, ChainRule(translations), sites=length)
            current[length] = parallel_steps.compute_refinement_distributions(translations, length, 0)[0]
        for passes in range(1, config.chain_passes + 1, calls):
            yield {**task, "sampler": sampler, "passes": passes, **truth.compared(current)}
            current = {length: current[length] @ matrix for length, matrix in matrices.items()}
    by_chain_rule = {
        length: _compute_left_to_right_distribution(translations, length) for length in truth.lengths
    }
    mean_length = sum(length * weight for length, weight in truth.lengths.items())
    yield {**task, "sampler": "chain rule", "passes": mean_length, **truth.compared(by_chain_rule)}


def _compute_left_to_right_distribution(translations: HiddenMarkov, length: int) -> Tensor:
    """Return the distribution (V^N,) of N tokens that are sampled from left to right while later tokens are masked."""
    total = torch.zeros(1, dtype=torch.float64)
    for site in range(length):
        prefixes = enumerate_sequences(translations.vocab_size, site)
        tokens = torch.nn.functional.pad(prefixes, (0, length - site))
        masked = (torch.arange(length) >= site).expand(len(tokens), -1)
        total = (total[:, None] + translations.log_probs(tokens, masked)[:, site]).flatten()
    return total.exp()
