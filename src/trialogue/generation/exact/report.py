"""Comparison of the exact output distribution of a sampler with its target, on a small model."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from trialogue.errors import InputError
from trialogue.generation.exact.settings import DistributionSettings
from trialogue.generation.exact.sources import LoadedSource, load_source, read_values
from trialogue.generation.verifiers.specs import combine_verifiers
from trialogue.models.wrappers.spelled import SpelledTokenization
from trialogue.oracles import Verifier
from trialogue.samplers import ValueGuided, truncated
from trialogue.samplers.exact import (
    ExactDistribution,
    PrefixTree,
    exact_distribution,
    exact_values,
    kullback_leibler,
    prefix_tree,
    total_variation,
    walk_conductances,
)
from trialogue.samplers.prefix.contract.sampler import Sampler
from trialogue.verifiers import TableValues, Threshold
from trialogue.verifiers.languages.language_verifier import LanguageVerifier

Prefix = tuple[int, ...]


@dataclass(frozen=True)
class ExactOutput:
    """An output of a sampler with its exact probabilities.

    Args:
        tokens: Token ids of the completion.
        text: Text of the completion.
        spelled: Text of each token.
        distribution: Probability under the sampler.
        restricted: Probability under the target, which is the model's distribution conditioned on acceptance
            by the verifiers.
    """

    tokens: Prefix
    text: str
    spelled: tuple[str, ...]
    distribution: float
    restricted: float


@dataclass(frozen=True)
class SamplerDistribution:
    """Exact output distribution of a sampler, compared with its target.

    The target is the model's distribution conditioned on acceptance by the verifiers. With graded verifiers,
    the model's probabilities are multiplied by their values and normalized. The probabilities of the sampler
    sum to less than 1 if it can stop without an output or run forever.

    Args:
        sampler: Description of the sampler.
        outputs: Outputs with their probabilities, by decreasing target probability and then by decreasing
            probability under the sampler.
        accepted_mass: Probability that an output of the model is accepted. With graded verifiers, the mean
            value.
        total_variation: Total variation distance between sampler and target.
        kl: Kullback-Leibler divergence KL(sampler || target) in nats. Infinite if the sampler has an output
            outside the target, or no output.
        reverse_kl: Kullback-Leibler divergence KL(target || sampler) in nats. Infinite if the sampler never
            returns some output of the target.
        weighted_variation: Total variation distance between the target and the outputs resampled by weight,
            in the limit of many samples. None if the sampler has no weights.
        rejected: Probability of outputs with probability zero under the target.
        failed: Probability that the sampler stops without an output.
        never_halts: Probability that the sampler runs forever.
        expected_calls: Expected number of model evaluations.
        states: Number of states of the sampler that were enumerated.
        different_nodes: Expected number of distinct prefixes that a value-guided sampler evaluates. None for
            other samplers.
        leaf_mass: Stationary probability of complete outputs in the Markov chain of a value-guided sampler.
            None for other samplers.
    """

    sampler: str
    outputs: Sequence[ExactOutput]
    accepted_mass: float
    total_variation: float
    kl: float
    reverse_kl: float
    weighted_variation: float | None
    rejected: float
    failed: float
    never_halts: float
    expected_calls: float
    states: int
    different_nodes: float | None
    leaf_mass: float | None

    def record(self) -> dict[str, Any]:
        """Convert the distribution to a dictionary that can be written as JSON. Infinite numbers become None."""
        numbers = {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in vars(self).items()
            if name != "outputs"
        }
        return {
            **numbers,
            "outputs": [
                {
                    "tokens": list(one.tokens),
                    "text": one.text,
                    "distribution": one.distribution,
                    "restricted": one.restricted,
                }
                for one in self.outputs
            ],
        }


def sampler_distribution(settings: DistributionSettings, *, progress: bool = False) -> SamplerDistribution:
    """Compute the exact output distribution of a sampler on a small model, and compare it with its target.

    Args:
        settings: All settings of `trialogue distribution`.
        progress: Whether to count prefixes and states on standard error (default: False).

    Returns:
        Probabilities of all outputs, distances from the target, and costs.

    Raises:
        InputError: If the settings cannot be used. Also if the tree of prefixes or the sampler has more than
            `max_states` nodes or states.
    """
    with _with_option_names():
        return _sampler_distribution(settings, load_source(settings.source), progress)


def _sampler_distribution(
    settings: DistributionSettings, source: LoadedSource, progress: bool
) -> SamplerDistribution:
    sampling, sampler = settings.sampling, settings.sampler
    values = sampling.values
    written = None if values in (None, "exact") else read_values(values, source.tokenization)
    built = settings.rule.build(
        source.tokenization,
        verdicts=sampler.uses == "verdicts",
        ranks=sampler.uses in ("nothing", "ranks"),
    )
    # At temperature 0 there is one output, which is compared with the distribution at temperature 1.
    tempered = truncated(source.oracle, temperature=sampling.temperature or 1.0)
    limits: dict[str, Any] = {"prompt": source.prompt, "max_new_tokens": sampling.max_new_tokens}
    # Values in a file may guide the sampler to prefixes that no accepted output has.
    languages = [one for one in built if isinstance(one.verifier, LanguageVerifier) and written is None]
    tree = prefix_tree(
        tempered,
        **limits,
        max_nodes=sampling.max_states,
        viable=combine_verifiers(languages),
        progress=progress,
    )
    rule = combine_verifiers(built)
    guide: Verifier | None = written or rule
    if values == "exact" and rule is not None:
        guide = exact_values(tempered, rule, **limits, max_nodes=sampling.max_states)
    judges = [
        one if one.threshold is None else one._replace(verifier=Threshold(one.verifier, one.threshold))
        for one in built
    ]
    restriction = combine_verifiers(judges)
    target, accepted = _restrict(tree, restriction or written)
    if written is not None and restriction is not None:
        _require_reachable(written, str(values), tree, target, source)
    distribution = exact_distribution(
        sampler,
        truncated(source.oracle, **sampling.truncation),
        None if sampler.uses == "nothing" else guide,
        **limits,
        max_states=sampling.max_states,
        progress=progress,
    )
    if written is not None and not distribution.probabilities and not distribution.never_halts:
        hint = "use positive values for an output and all its prefixes: the sampler always stops without an output"
        raise InputError("values", values, hint)
    conductances = None
    if _is_default_value_guided(sampler) and guide is not None and not sampling.cuts:
        conductances = walk_conductances(tree, guide)
    return _report(settings, source, distribution, target, accepted, conductances)


def _is_default_value_guided(sampler: Sampler[Any]) -> bool:
    """Return whether a sampler is the published value-guided one, with all children and without momentum."""
    return isinstance(sampler, ValueGuided) and sampler == ValueGuided(
        lazy=sampler.lazy, stop_at_leaf=sampler.stop_at_leaf
    )


def _restrict(tree: PrefixTree, restriction: Verifier | None) -> tuple[dict[Prefix, float], float]:
    """Return the distribution proportional to p(x) V(x) over complete sequences, and its normaliser.

    Here p(x) is the model's probability of the sequence x, and V(x) is its value under `restriction`.
    """
    leaves = np.flatnonzero(tree.leaf)
    weights = np.exp(tree.log_probs[leaves])
    if restriction is not None:
        weights = weights * tree.values(restriction, leaves)
    total = math.fsum(weights)
    if not total > 0:
        raise InputError(
            "verifier",
            0.0,
            "use another verifier or more tokens: it accepts no output of the model",
        )
    return {
        tree.prefixes[leaf]: weight / total
        for leaf, weight in zip(leaves.tolist(), weights.tolist(), strict=True)
        if weight > 0
    }, total


def _require_reachable(
    written: TableValues, file: str, tree: PrefixTree, target: dict[Prefix, float], source: LoadedSource
) -> None:
    """Raise `InputError` for a positive value of a prefix that has no accepted continuation."""
    start = len(source.prompt)
    viable = {x[:length] for x in target for length in range(start, len(x) + 1)}
    for place in np.flatnonzero(~np.array([prefix in viable for prefix in tree.prefixes])).tolist():
        prefix = tree.prefixes[place]
        value = written.table.get(prefix, 0.0)
        if value > 0:
            text = " ".join(_token_texts(source, prefix))
            rejected = "the verifier rejects it" if tree.leaf[place] else "it has no accepted continuation"
            raise InputError("values", file, f"use the value 0 for {text!r}, not {value:g}: {rejected}")


@contextmanager
def _with_option_names() -> Iterator[None]:
    """Convert errors about large trees and samplers to the option names of the command."""
    try:
        yield
    except InputError as error:
        if error.field == "max_states":
            hint = (
                f"the sampler has more than {error.value:,} states: decrease --max-new-tokens, increase --max-states, "
                "or sample instead (`trialogue generate`, trialogue.generate)"
            )
            raise InputError("max_states", error.value, hint) from None
        if error.field == "max_new_tokens" and "max_nodes" in error.hint:
            hint = error.hint.replace("max_nodes", "--max-states")
            raise InputError("max_new_tokens", error.value, hint) from None
        raise


def _token_texts(source: LoadedSource, tokens: Prefix) -> tuple[str, ...]:
    """Return the text of each token in `tokens`."""
    spelled = source.tokenization
    if isinstance(spelled, SpelledTokenization):
        return tuple(spelled.spellings[token] for token in tokens)
    return tuple(spelled.text((token,)) or "∅" for token in tokens)


def _report(
    settings: DistributionSettings,
    source: LoadedSource,
    distribution: ExactDistribution,
    target: dict[Prefix, float],
    accepted: float,
    conductances: Any,
) -> SamplerDistribution:
    start, given = len(source.prompt), distribution.probabilities
    text = source.tokenization.text

    outputs = [
        ExactOutput(
            x[start:], text(x[start:]), _token_texts(source, x[start:]), given.get(x, 0.0), target.get(x, 0.0)
        )
        for x in target.keys() | {x for x, p in given.items() if p > 0}
    ]
    outputs.sort(key=lambda one: (-one.restricted, -one.distribution, one.tokens))
    weights = math.fsum(distribution.weights.values())
    weighted = None
    if settings.sampler.weighted and weights > 0:
        weighted = total_variation({x: w / weights for x, w in distribution.weights.items()}, target)
    return SamplerDistribution(
        sampler=repr(settings.sampler),
        outputs=outputs,
        accepted_mass=accepted,
        total_variation=total_variation(given, target),
        kl=kullback_leibler(given, target),
        reverse_kl=kullback_leibler(target, given),
        weighted_variation=weighted,
        rejected=math.fsum(p for x, p in given.items() if x not in target),
        failed=distribution.failed,
        never_halts=distribution.never_halts,
        expected_calls=distribution.expected_calls,
        states=distribution.states,
        different_nodes=None if conductances is None else math.fsum(conductances.visited),
        leaf_mass=None
        if conductances is None
        else math.fsum(conductances.weight[conductances.leaf]) / math.fsum(conductances.weight),
    )
