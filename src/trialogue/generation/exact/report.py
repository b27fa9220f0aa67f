"""What a sampler samples on a small oracle, exactly, beside the distribution that it is to sample: the oracle's,
restricted.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trialogue.errors import InputError
from trialogue.generation.exact.settings import DistributionSettings
from trialogue.generation.exact.sources import Asked, asked, read_values
from trialogue.generation.verifier_specs import Built
from trialogue.models.spelled import SpelledTokenization
from trialogue.oracles import Autoregressive, Verifier
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
from trialogue.samplers.prefix.sampler import Sampler
from trialogue.verifiers import Product, TableValues, Threshold
from trialogue.verifiers.language_verifier import LanguageVerifier

Prefix = tuple[int, ...]


@dataclass(frozen=True)
class Output:
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
    outputs: Sequence[Output]
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


def law_of(settings: DistributionSettings) -> SamplerDistribution:
    """Compute what `settings` ask for.

    Raises `InputError` for whatever of them cannot be used, and for trees and samplers with more than `max_states`
    nodes or states.
    """
    found, walking, sampler = asked(settings.source), settings.walking, settings.sampler
    written = None if walking.values in (None, "exact") else read_values(walking.values, found.tokenization)
    built = settings.rule.build(
        found.tokenization, verdicts=sampler.uses == "verdicts", ranks=sampler.uses in ("nothing", "ranks")
    )
    # At temperature 0 there is one output: held against what is left of the distribution without a temperature.
    tempered = truncated(found.oracle, temperature=walking.temperature or 1.0)
    # Values in a file may lead where a language rules everything out.
    tree = _tree(settings, found, tempered, built if written is None else ())
    rule = _product([one.verifier for one in built])
    values = written if written is not None else _exact_values(settings, found, rule)
    judged = _product(
        [one.verifier if one.threshold is None else Threshold(one.verifier, one.threshold) for one in built]
    )
    target, accepted = _restricted(tree, judged or written)
    if written is not None and judged is not None:
        _require_hope(written, str(walking.values), tree, target, found)
    guide = values or rule
    distribution = _law(settings, found, guide)
    if written is not None and not distribution.probabilities and not distribution.never_halts:
        hint = (
            "with these the sampler stops before an output every time: give one, and its way, values above 0"
        )
        raise InputError("values", walking.values, hint)
    guided = None
    if _is_plain(sampler) and guide is not None and not walking.cuts:
        guided = walk_conductances(tree, guide)
    return _report(settings, found, distribution, target, accepted, guided)


def _is_plain(sampler: Sampler[Any]) -> bool:
    """Whether a sampler is the value-guided one as printed, which goes to every child and has no momentum."""
    return isinstance(sampler, ValueGuided) and sampler == ValueGuided(
        lazy=sampler.lazy, stop_at_leaf=sampler.stop_at_leaf
    )


def _tree(
    settings: DistributionSettings, found: Asked, tempered: Autoregressive, built: Sequence[Built]
) -> PrefixTree:
    """The prefixes that are held against each other: those of the oracle, as far as languages do not rule them out."""
    languages = [one.verifier for one in built if isinstance(one.verifier, LanguageVerifier)]
    most = settings.walking.max_states
    try:
        return prefix_tree(
            tempered,
            prompt=found.prompt,
            max_new_tokens=settings.walking.max_new_tokens,
            max_nodes=most,
            viable=_product(languages),
        )
    except InputError as error:
        raise _in_options(error) from None


def _product(verifiers: Sequence[Verifier]) -> Verifier | None:
    return Product(*verifiers) if len(verifiers) > 1 else next(iter(verifiers), None)


def _exact_values(settings: DistributionSettings, found: Asked, rule: Verifier | None) -> Verifier | None:
    """The values that are asked for by the word "exact"."""
    walking = settings.walking
    if walking.values != "exact" or rule is None:
        return None
    try:
        return exact_values(
            truncated(found.oracle, temperature=walking.temperature or 1.0),
            rule,
            prompt=found.prompt,
            max_new_tokens=walking.max_new_tokens,
            max_nodes=walking.max_states,
        )
    except InputError as error:
        raise _in_options(error) from None


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
    written: TableValues, file: str, tree: PrefixTree, target: dict[Prefix, float], found: Asked
) -> None:
    """Raise `InputError` for a positive value of a prefix that the rule's outcome is certain to be zero after."""
    start = len(found.prompt)
    hopeful = {x[:length] for x in target for length in range(start, len(x) + 1)}
    for place in np.flatnonzero(~np.array([prefix in hopeful for prefix in tree.prefixes])).tolist():
        prefix = tree.prefixes[place]
        value = written.table.get(prefix, 0.0)
        if value > 0:
            text = " ".join(_spelled(found, prefix))
            rejected = (
                "the rule rejects it" if tree.leaf[place] else "nothing that the rule accepts begins so"
            )
            raise InputError("values", file, f"of {text!r} it is {value:g}, but {rejected}: give 0 there")


def _law(settings: DistributionSettings, found: Asked, verifier: Verifier | None) -> ExactDistribution:
    walking, sampler = settings.walking, settings.sampler
    try:
        return exact_distribution(
            sampler,
            truncated(found.oracle, **walking.truncation),
            None if sampler.uses == "nothing" else verifier,
            prompt=found.prompt,
            max_new_tokens=walking.max_new_tokens,
            max_states=walking.max_states,
        )
    except InputError as error:
        raise _in_options(error) from None


def _in_options(error: InputError) -> InputError:
    """What is too large, in the words of the command."""
    if error.field == "max_states":
        hint = (
            f"the sampler has more states than the {error.value:,} that are listed: shorten --max-new-tokens, raise "
            "--max-states, or sample instead (`trialogue generate`, trialogue.generate)"
        )
        return InputError("max_states", error.value, hint)
    if error.field == "max_new_tokens" and "max_nodes" in error.hint:
        return InputError("max_new_tokens", error.value, error.hint.replace("max_nodes", "--max-states"))
    return error


def _spelled(found: Asked, tokens: Prefix) -> tuple[str, ...]:
    """The texts of `tokens` one by one."""
    spelled = found.tokenization
    if isinstance(spelled, SpelledTokenization):
        return tuple(spelled.spellings[token] for token in tokens)
    return tuple(spelled.text((token,)) or "∅" for token in tokens)


def _report(
    settings: DistributionSettings,
    found: Asked,
    distribution: ExactDistribution,
    target: dict[Prefix, float],
    accepted: float,
    guided: Any,
) -> SamplerDistribution:
    start, given = len(found.prompt), distribution.probabilities
    text = found.tokenization.text

    outputs = [
        Output(x[start:], text(x[start:]), _spelled(found, x[start:]), given.get(x, 0.0), target.get(x, 0.0))
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
