"""Claims of the study about sampling from a power of the model's distribution."""

from functools import partial

from trialogue_lab.ledger import RESOLVED, Claim, cited, ours
from trialogue_lab.studies.power_sampling.config import (
    CORRECTED,
    EARLY_ENDS,
    EXACT,
    METROPOLIS,
    ONE_LENGTH,
    PARTICLES,
    RELEASED,
    WEIGHTED,
)
from trialogue_lab.studies.power_sampling.statistics import (
    best_factor,
    chain,
    ended,
    growth,
    least_excess,
    local,
    lookahead,
    markov,
    variance_ratio,
)

_KARAN = "arXiv 2510.14901"
_POWER_SMC = "arXiv 2602.10273, abstract"
_SUFFIXES = "arXiv 2605.04542, abstract"
_SCALED = "arXiv 2601.21590, abstract"
_CONVERGES = "for large enough n, this process converges to sampling from the target distribution p^alpha"
_LUMPED = (
    "The models are random Markov models, the power is 2, and the distance is that of the lengths of the texts, a "
    "lower bound of the total variation that includes sampling error."
)
_ENDS = (
    "The statement is about the algorithm for texts of one length. The released code is run on random models whose "
    "texts have at most four tokens and end with probability 0.15 after each token."
)
_CALLS = (
    "Random Markov models and equal numbers of model calls. The source compares accuracy and latency of language "
    "models on MATH500."
)
_RULES = "The models are random, with three tokens. The source gives no distance."

_converges = partial(cited, f"{_KARAN}, section 4.2", _CONVERGES, grade=True)
_released = partial(_converges, "power-sampling:M-4.2.released")
_local = cited(
    _SUFFIXES,
    "inexpensive local approximations cannot reproduce sequence-level power without information about possible "
    "suffixes",
    "power-bridge:M-abstract.local",
    grade=True,
    setting=_RULES,
)

PUBLISHED = (
    Claim(
        "temperature-is-not-the-power",
        "At alpha 4, the output distribution of per-token temperature 1/4 differs from p^4 by a total variation above "
        "0.1 (random models with three tokens, exact).",
        local("temperature") > 0.1,
        **cited(
            f"{_KARAN}, Proposition 1",
            "Low-temperature sampling does not sample from the power distribution",
            "power-sampling:M-P1",
            grade=True,
        ),
    ),
    Claim(
        "power-prefers-few-futures",
        "The first token under p^4 has completions of lower entropy than the first token at temperature 1/4 (mean "
        "difference of entropies in nats).",
        local("entropy_difference") < 0,
        **cited(
            f"{_KARAN}, Observation 1",
            "upweights tokens with few but high likelihood future paths, while low-temperature sampling upweights "
            "tokens with several but low likelihood completions",
            "power-sampling:M-O1",
        ),
    ),
    Claim(
        "one-over-alpha-minimises-incremental-variance",
        "Given the prefix, the incremental weight p^alpha / q has a larger relative variance at every other "
        "temperature tried, for the model and for the uniform distribution than at temperature 1 / alpha (smallest "
        "excess).",
        least_excess() > RESOLVED,
        **cited(
            _POWER_SMC,
            "temperature 1/alpha is the unique prefix-only proposal minimizing incremental weight variance",
            "power-smc:M-abstract.variance",
        ),
    ),
    Claim(
        "no-local-rule-reaches-the-power",
        "Any rule that sees next-token distributions only has a mean total variation above 0.05 from p^4, over models "
        "with equal first next-token distributions (lower bound, from the first token).",
        local("any_rule") > 0.05,
        **_local,
    ),
    Claim(
        "no-temperature-reaches-the-power",
        "The best per-token temperature, chosen for each model with knowledge of the power, has a total variation "
        "above 0.05 from p^4.",
        local("best") > 0.05,
        **_local,
    ),
    Claim(
        "rollouts-approximate-the-power",
        "Low temperature scaled by power sums that are estimated from 8 completions per candidate has a total "
        "variation below 0.1 from p^4.",
        lookahead(8) < 0.1,
        **cited(
            _SCALED,
            "the global power distribution can be approximated by a token-level scaled low-temperature one",
            "scalable-power:M-abstract.scaled",
            grade=True,
            setting="The models are random, all three tokens are candidates, and the jackknife correction is left out.",
        ),
    ),
    Claim(
        "algorithm-converges-at-one-length",
        "Where all texts have one length, the chain has a total variation below 0.01 from p^4 after 100 steps (two "
        "blocks, exact).",
        chain(RELEASED, ONE_LENGTH, 2, 100, "variation", 4.0) < 0.01,
        **_converges("power-sampling:M-4.2.algorithm", setting="Random models whose texts have four tokens."),
    ),
    *(
        Claim(
            f"released-code-converges-with-{blocks}-block{'s' * (blocks > 1)}",
            f"Where texts end at different lengths, the released chain with {blocks} block{'s' * (blocks > 1)} has a "
            "total variation below 0.1 from p^2 after 100 steps (exact).",
            chain(RELEASED, EARLY_ENDS, blocks) < 0.1,
            **_released(setting=_ENDS),
        )
        for blocks in (1, 2)
    ),
    Claim(
        "released-code-converges-with-16-blocks",
        "On Markov models whose texts end at different lengths, up to 32, the released chain with 16 blocks has a "
        "total variation below 0.1 from p^2 in the lengths of the texts, after 10 steps per block.",
        ended(RELEASED) < 0.1,
        **_released(setting=_LUMPED),
    ),
    Claim(
        "particles-are-no-farther-than-metropolis",
        "At about equal numbers of model calls, sequential Monte Carlo with 16 particles is no farther from p^4 than "
        "the Metropolis-Hastings chain, by 0.02 (Markov models, texts of 256 tokens, visits to the most predictable "
        "token).",
        markov(PARTICLES) - markov(METROPOLIS) < 0.02,
        **cited(
            _POWER_SMC,
            "matches or exceeds MH power sampling",
            "power-smc:M-abstract.metropolis",
            grade=True,
            setting=_CALLS,
        ),
    ),
)

OURS = (
    ours(
        "another-temperature-minimises-the-variance-of-whole-weights",
        "The temperature whose weights of complete texts have the smallest variance is above 1 / alpha (factor, alpha "
        "4).",
        best_factor().as_ratio() > 1,
        _POWER_SMC,
    ),
    ours(
        "one-over-alpha-wastes-variance",
        "At the best temperature, the variance of the weights of complete texts is below 0.9 of that at temperature "
        "1 / alpha (ratio, alpha 4).",
        variance_ratio().as_ratio() < 0.9,
        _POWER_SMC,
    ),
    ours(
        "temperatures-by-position-do-not-reach-the-power",
        "With one temperature per position, the smallest total variation from p^4 that was found is above 0.05.",
        local("best_by_position") > 0.05,
        _SUFFIXES,
    ),
    ours(
        "power-sums-of-siblings-differ",
        "The power sums of the children of a prefix differ by a factor above 2 (mean range of logarithms above 0.693, "
        "alpha 4).",
        local("sibling_range") > 0.693,
        _SCALED,
    ),
    ours(
        "one-rollout-is-worse-than-temperature",
        "With one completion per candidate, lookahead is farther from p^4 than per-token temperature.",
        lookahead(1) - local("temperature") > 0,
        _SCALED,
    ),
    ours(
        "sixteen-rollouts-are-close",
        "With 16 completions per candidate, lookahead has a total variation below 0.05 from p^4.",
        lookahead(16) < 0.05,
        _SCALED,
    ),
    *(
        ours(
            f"corrected-chain-converges-with-{blocks}-block{'s' * (blocks > 1)}",
            f"Where texts end at different lengths, the corrected chain with {blocks} block{'s' * (blocks > 1)} has a "
            "total variation below 0.01 from p^2 after 100 steps (exact).",
            chain(CORRECTED, EARLY_ENDS, blocks) < 0.01,
            f"{_KARAN}, section 4.2",
        )
        for blocks in (1, 2)
    ),
    ours(
        "corrected-chain-converges-with-16-blocks",
        "On Markov models whose texts end at different lengths, the corrected chain with 16 blocks is no farther from "
        "p^2 in the lengths of the texts than as many exact draws, by 0.1, after 10 steps per block.",
        ended(CORRECTED, None, "variation", True) < 0.1,
        f"{_KARAN}, section 4.2",
    ),
    ours(
        "a-hundred-corrected-steps-are-too-few-at-four",
        "At alpha 4, the corrected chain with one block still has a total variation above 0.1 from p^4 after 100 "
        "steps, where texts end at different lengths (exact).",
        chain(CORRECTED, EARLY_ENDS, 1, 100, "variation", 4.0) > 0.1,
        f"{_KARAN}, section 4.2",
    ),
    ours(
        "released-chain-gets-worse-with-steps",
        "Where texts end at different lengths, the released chain is farther from p^2 after 100 steps than after 10 "
        "(one block, exact).",
        chain(RELEASED, EARLY_ENDS, 1) - chain(RELEASED, EARLY_ENDS, 1, 10) > 0,
        f"{_KARAN}, released code",
    ),
    ours(
        "weighted-draws-get-worse-with-length",
        "From the shortest to the longest texts of Markov models, 8 to 256 tokens, the distance of 16 weighted draws "
        "from p^4, beyond sampling error, grows by more than 0.03.",
        growth(WEIGHTED) > 0.03,
        _POWER_SMC,
    ),
    ours(
        "particles-are-closer-than-weighted-draws",
        "At 256 tokens and equal numbers of model calls, sequential Monte Carlo with 16 particles is closer to p^4 "
        "than 16 weighted draws.",
        markov(PARTICLES) - markov(WEIGHTED) < 0,
        _POWER_SMC,
    ),
    ours(
        "particles-are-close-at-256",
        "At 256 tokens, sequential Monte Carlo with 16 particles is no farther from p^4 than as many exact draws, by "
        "0.05.",
        markov(PARTICLES, None, "variation", True) < 0.05,
        _POWER_SMC,
    ),
)

CLAIMS = (*PUBLISHED, *OURS)

NUMBERS = {
    "temperature 1/4": local("temperature"),
    "best temperature": local("best"),
    "best temperature by position": local("best_by_position"),
    "lower bound for any local rule": local("any_rule"),
    "best factor of whole weights": best_factor().as_ratio(),
    **{f"lookahead, {rollouts} rollouts": lookahead(rollouts) for rollouts in (1, 4, 8, 16)},
    **{
        f"calls of lookahead, {rollouts} rollouts": lookahead(rollouts, "calls") for rollouts in (1, 4, 8, 16)
    },
    **{
        f"{name} chain, {blocks} blocks": chain(name, EARLY_ENDS, blocks)
        for name in (CORRECTED, RELEASED)
        for blocks in (1, 2)
    },
    **{f"{name} chain, 16 blocks": ended(name) for name in (CORRECTED, RELEASED)},
    "exact draws, lengths": ended(EXACT),
    **{f"{name}, longest": markov(name) for name in (WEIGHTED, PARTICLES, METROPOLIS, EXACT)},
}
