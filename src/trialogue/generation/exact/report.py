"""What a walk samples on a small oracle, exactly, beside the law that it is to sample: the oracle's, restricted."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trialogue.errors import InputError
from trialogue.generation.exact.settings import LawSettings
from trialogue.generation.exact.sources import Asked, asked, read_values
from trialogue.generation.verifier_specs import Built
from trialogue.models.spelled import SpelledTokenization
from trialogue.oracles import Autoregressive, Verifier
from trialogue.samplers import ValueGuided, truncated
from trialogue.samplers.exact import (
    Law,
    PrefixTree,
    exact_law,
    exact_values,
    kullback_leibler,
    prefix_tree,
    total_variation,
    walk_conductances,
)
from trialogue.samplers.prefix.sampler import Walk
from trialogue.verifiers import Product, TableValues, Threshold
from trialogue.verifiers.language_verifier import LanguageVerifier

Prefix = tuple[int, ...]


@dataclass(frozen=True)
class Output:
    """One output: its completion in tokens, as text, and token by token; what the walk gives it, and what it should."""

    tokens: Prefix
    text: str
    spelled: tuple[str, ...]
    law: float
    restricted: float


@dataclass(frozen=True)
class WalkLaw:
    """The exact law of a walk.

    `outputs` are sorted by their restricted probability, then by that of the walk; `accepted_mass` is the oracle's
    probability of the rule (of values: their mean). `kl` is KL(law, restricted), infinite where the walk gives outputs
    that the rule does not allow, or none; `reverse_kl` is KL(restricted, law), infinite where it misses some. Both are
    in nats; what the law lacks of 1 is output that the restricted law does not have. `weighted_variation` is that of
    the law of outputs drawn by weight, of many samples, where the walk has weights. `rejected` is the probability of
    outputs outside of the restricted law, `failed` that of stopping before an output, `never_halts` of neither.
    `different_nodes` is the expected number of different prefixes whose law is asked for, and `leaf_mass` the
    stationary probability of leaves, of a value-guided walk.
    """

    walk: str
    outputs: Sequence[Output]
    accepted_mass: float
    total_variation: float
    kl: float
    reverse_kl: float
    weighted_variation: float | None
    rejected: float
    failed: float
    never_halts: float
    expected_queries: float
    states: int
    different_nodes: float | None
    leaf_mass: float | None

    def record(self) -> dict[str, Any]:
        """The law as JSON values: what is infinite is null."""
        numbers = {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in vars(self).items()
            if name != "outputs"
        }
        return {
            **numbers,
            "outputs": [
                {"tokens": list(one.tokens), "text": one.text, "law": one.law, "restricted": one.restricted}
                for one in self.outputs
            ],
        }


def law_of(settings: LawSettings) -> WalkLaw:
    """Compute what `settings` ask for.

    Raises `InputError` for whatever of them cannot be used, and for trees and walks with more than `max_states` nodes
    or states.
    """
    found, walking, walk = asked(settings.source), settings.walking, settings.walk
    written = None if walking.values in (None, "exact") else read_values(walking.values, found.tokenization)
    built = settings.rule.build(
        found.tokenization, verdicts=walk.uses == "verdicts", ranks=walk.uses in ("nothing", "ranks")
    )
    # At temperature 0 there is one output: held against what is left of the law without a temperature.
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
    law = _law(settings, found, guide)
    if written is not None and not law.probabilities and not law.never_halts:
        mend = "with these the walk stops before an output every time: give one, and its way, values above 0"
        raise InputError("values", walking.values, mend)
    guided = None
    if _is_plain(walk) and guide is not None and not walking.cuts:
        guided = walk_conductances(tree, guide)
    return _report(settings, found, law, target, accepted, guided)


def _is_plain(walk: Walk[Any]) -> bool:
    """Whether a walk is the value-guided one as printed, which goes to every child and has no momentum."""
    return isinstance(walk, ValueGuided) and walk == ValueGuided(
        lazy=walk.lazy, stop_at_leaf=walk.stop_at_leaf
    )


def _tree(
    settings: LawSettings, found: Asked, tempered: Autoregressive, built: Sequence[Built]
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


def _exact_values(settings: LawSettings, found: Asked, rule: Verifier | None) -> Verifier | None:
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


def _law(settings: LawSettings, found: Asked, verifier: Verifier | None) -> Law:
    walking, walk = settings.walking, settings.walk
    try:
        return exact_law(
            walk,
            truncated(found.oracle, **walking.truncation),
            None if walk.uses == "nothing" else verifier,
            prompt=found.prompt,
            max_new_tokens=walking.max_new_tokens,
            max_states=walking.max_states,
        )
    except InputError as error:
        raise _in_options(error) from None


def _in_options(error: InputError) -> InputError:
    """What is too large, in the words of the command."""
    if error.field == "max_states":
        mend = (
            f"the walk has more states than the {error.value:,} that are listed: shorten --max-new-tokens, raise "
            "--max-states, or sample instead (`trialogue generate`, trialogue.generate)"
        )
        return InputError("max_states", error.value, mend)
    if error.field == "max_new_tokens" and "max_nodes" in error.mend:
        return InputError("max_new_tokens", error.value, error.mend.replace("max_nodes", "--max-states"))
    return error


def _spelled(found: Asked, tokens: Prefix) -> tuple[str, ...]:
    """The texts of `tokens` one by one."""
    spelled = found.tokenization
    if isinstance(spelled, SpelledTokenization):
        return tuple(spelled.spellings[token] for token in tokens)
    return tuple(spelled.text((token,)) or "∅" for token in tokens)


def _report(
    settings: LawSettings,
    found: Asked,
    law: Law,
    target: dict[Prefix, float],
    accepted: float,
    guided: Any,
) -> WalkLaw:
    start, given = len(found.prompt), law.probabilities
    text = found.tokenization.text

    outputs = [
        Output(x[start:], text(x[start:]), _spelled(found, x[start:]), given.get(x, 0.0), target.get(x, 0.0))
        for x in target.keys() | {x for x, p in given.items() if p > 0}
    ]
    outputs.sort(key=lambda one: (-one.restricted, -one.law, one.tokens))
    weights = math.fsum(law.weights.values())
    weighted = None
    if settings.walk.weighted and weights > 0:
        weighted = total_variation({x: w / weights for x, w in law.weights.items()}, target)
    return WalkLaw(
        walk=repr(settings.walk),
        outputs=outputs,
        accepted_mass=accepted,
        total_variation=total_variation(given, target),
        kl=kullback_leibler(given, target),
        reverse_kl=kullback_leibler(target, given),
        weighted_variation=weighted,
        rejected=math.fsum(p for x, p in given.items() if x not in target),
        failed=law.failed,
        never_halts=law.never_halts,
        expected_queries=law.expected_queries,
        states=law.states,
        different_nodes=None if guided is None else math.fsum(guided.visited),
        leaf_mass=None
        if guided is None
        else math.fsum(guided.weight[guided.leaf]) / math.fsum(guided.weight),
    )
