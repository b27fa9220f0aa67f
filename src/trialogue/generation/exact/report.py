"""What a sampler samples on a small oracle, exactly, beside the distribution that it is to sample: the oracle's,
restricted.
"""

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
    """One output: its completion in tokens, as text, and token by token; what the sampler gives it, and what it
    should.
    """

    tokens: Prefix
    text: str
    spelled: tuple[str, ...]
    distribution: float
    restricted: float


@dataclass(frozen=True)
class SamplerDistribution:
    """The exact distribution of a sampler.

    `outputs` are sorted by their restricted probability, then by that of the sampler; `accepted_mass` is the oracle's
    probability of the rule (of values: their mean). `kl` is KL(distribution, restricted), infinite where the sampler
    gives outputs that the rule does not allow, or none; `reverse_kl` is KL(restricted, distribution), infinite where it
    misses some. Both are in nats; what the distribution lacks of 1 is output that the restricted distribution does not
    have. `weighted_variation` is that of the distribution of outputs drawn by weight, of many samples, where the
    sampler has weights. `rejected` is the probability of outputs outside of the restricted distribution, `failed` that
    of stopping before an output, `never_halts` of neither. `different_nodes` is the expected number of different
    prefixes whose distribution is asked for, and `leaf_mass` the stationary probability of leaves, of a value-guided
    sampler.
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
        """The distribution as JSON values: what is infinite is null."""
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


def sampler_distribution(settings: DistributionSettings) -> SamplerDistribution:
    """Compute the exact distribution of a sampler.

    Raises `InputError` for settings that cannot be used, and for trees and samplers with more than `max_states` nodes
    or states.
    """
    with _in_options():
        return _sampler_distribution(settings, load_source(settings.source))


def _sampler_distribution(settings: DistributionSettings, source: LoadedSource) -> SamplerDistribution:
    sampling, sampler = settings.sampling, settings.sampler
    values = sampling.values
    written = None if values in (None, "exact") else read_values(values, source.tokenization)
    built = settings.rule.build(
        source.tokenization,
        verdicts=sampler.uses == "verdicts",
        ranks=sampler.uses in ("nothing", "ranks"),
    )
    # At temperature 0 there is one output: it is compared with the distribution without a temperature.
    tempered = truncated(source.oracle, temperature=sampling.temperature or 1.0)
    limits: dict[str, Any] = {"prompt": source.prompt, "max_new_tokens": sampling.max_new_tokens}
    # Values in a file may lead where a language rules everything out.
    languages = [one for one in built if isinstance(one.verifier, LanguageVerifier) and written is None]
    tree = prefix_tree(tempered, **limits, max_nodes=sampling.max_states, viable=combine_verifiers(languages))
    rule = combine_verifiers(built)
    guide: Verifier | None = written or rule
    if values == "exact" and rule is not None:
        guide = exact_values(tempered, rule, **limits, max_nodes=sampling.max_states)
    judges = [
        one if one.threshold is None else one._replace(verifier=Threshold(one.verifier, one.threshold))
        for one in built
    ]
    judged = combine_verifiers(judges)
    target, accepted = _restricted(tree, judged or written)
    if written is not None and judged is not None:
        _require_hope(written, str(values), tree, target, source)
    distribution = exact_distribution(
        sampler,
        truncated(source.oracle, **sampling.truncation),
        None if sampler.uses == "nothing" else guide,
        **limits,
        max_states=sampling.max_states,
    )
    if written is not None and not distribution.probabilities and not distribution.never_halts:
        hint = (
            "with these the sampler stops before an output every time: give one, and its way, values above 0"
        )
        raise InputError("values", values, hint)
    guided = None
    if _is_plain(sampler) and guide is not None and not sampling.cuts:
        guided = walk_conductances(tree, guide)
    return _report(settings, source, distribution, target, accepted, guided)


def _is_plain(sampler: Sampler[Any]) -> bool:
    """Return whether a sampler is the published value-guided one, with all children and without momentum."""
    return isinstance(sampler, ValueGuided) and sampler == ValueGuided(
        lazy=sampler.lazy, stop_at_leaf=sampler.stop_at_leaf
    )


def _restricted(tree: PrefixTree, judged: Verifier | None) -> tuple[dict[Prefix, float], float]:
    """p(x) V(x) over its sum, of complete sequences, and the sum."""
    leaves = np.flatnonzero(tree.leaf)
    weights = np.exp(tree.log_probs[leaves])
    if judged is not None:
        weights = weights * tree.values(judged, leaves)
    total = math.fsum(weights)
    if not total > 0:
        raise InputError("verifier", 0.0, "it accepts nothing that the oracle can give within the horizon")
    return {
        tree.prefixes[leaf]: weight / total
        for leaf, weight in zip(leaves.tolist(), weights.tolist(), strict=True)
        if weight > 0
    }, total


def _require_hope(
    written: TableValues, file: str, tree: PrefixTree, target: dict[Prefix, float], source: LoadedSource
) -> None:
    """Raise `InputError` for a positive value of a prefix that the rule's outcome is certain to be zero after."""
    start = len(source.prompt)
    hopeful = {x[:length] for x in target for length in range(start, len(x) + 1)}
    for place in np.flatnonzero(~np.array([prefix in hopeful for prefix in tree.prefixes])).tolist():
        prefix = tree.prefixes[place]
        value = written.table.get(prefix, 0.0)
        if value > 0:
            text = " ".join(_spelled(source, prefix))
            rejected = (
                "the rule rejects it" if tree.leaf[place] else "nothing that the rule accepts begins so"
            )
            raise InputError("values", file, f"of {text!r} it is {value:g}, but {rejected}: give 0 there")


@contextmanager
def _in_options() -> Iterator[None]:
    """Name the options of the command in errors about trees and samplers that are too large."""
    try:
        yield
    except InputError as error:
        if error.field == "max_states":
            hint = (
                f"the sampler has more states than the {error.value:,} that are listed: shorten --max-new-tokens, "
                "raise --max-states, or sample instead (`trialogue generate`, trialogue.generate)"
            )
            raise InputError("max_states", error.value, hint) from None
        if error.field == "max_new_tokens" and "max_nodes" in error.hint:
            hint = error.hint.replace("max_nodes", "--max-states")
            raise InputError("max_new_tokens", error.value, hint) from None
        raise


def _spelled(source: LoadedSource, tokens: Prefix) -> tuple[str, ...]:
    """The texts of `tokens` one by one."""
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
    guided: Any,
) -> SamplerDistribution:
    start, given = len(source.prompt), distribution.probabilities
    text = source.tokenization.text

    outputs = [
        ExactOutput(
            x[start:], text(x[start:]), _spelled(source, x[start:]), given.get(x, 0.0), target.get(x, 0.0)
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
        different_nodes=None if guided is None else math.fsum(guided.visited),
        leaf_mass=None
        if guided is None
        else math.fsum(guided.weight[guided.leaf]) / math.fsum(guided.weight),
    )
