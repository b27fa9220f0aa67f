"""Published claims of the study, and the numbers that documentation pages quote."""

from functools import partial

from trialogue_lab.ledger import RESOLVED, Claim, cited
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
from trialogue_lab.studies.power_sampling.own_claims import KARAN, OURS, POWER_SMC, SCALED, SUFFIXES
from trialogue_lab.studies.power_sampling.statistics import (
    best_factor,
    chain,
    ended,
    least_excess,
    local,
    lookahead,
    markov,
)

_CONVERGES = "for large enough n, this process converges to sampling from the target distribution p^alpha"
_LUMPED = (
    "The models are random Markov models, the power is 2, and the distance is that of the lengths of the texts, a "
    "lower bound of the total variation that includes sampling error."
)
_ENDS = (
    "The statement is about the algorithm for texts of one length. The released code is run on random models whose "
    "texts have at most four tokens and end with probability 0.15 after each token. The power is 2 instead of 4."
)
_CALLS = (
    "Random Markov models and equal numbers of model calls. The source compares accuracy and latency of language "
    "models on MATH500."
)
_RULES = "The models are random, with three tokens. The source gives no distance."

_converges = partial(cited, f"{KARAN}, section 4.2", _CONVERGES, grade=True)
_released = partial(_converges, "power-sampling:M-4.2.released")
_local = cited(
    SUFFIXES,
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
            f"{KARAN}, Proposition 1",
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
            f"{KARAN}, Observation 1",
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
            POWER_SMC,
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
            SCALED,
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
            POWER_SMC,
            "matches or exceeds MH power sampling",
            "power-smc:M-abstract.metropolis",
            grade=True,
            setting=_CALLS,
        ),
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
    "corrected chain at alpha 4": chain(CORRECTED, EARLY_ENDS, 1, 100, "variation", 4.0),
    **{f"{name} chain, 16 blocks": ended(name) for name in (CORRECTED, RELEASED)},
    "exact draws, lengths": ended(EXACT),
    **{f"{name}, longest": markov(name) for name in (WEIGHTED, PARTICLES, METROPOLIS, EXACT)},
}
