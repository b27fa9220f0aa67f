"""Claims of the study: Corollary 1.2.1, decay rates, effects on coherence, and controls."""

import math
from functools import partial
from typing import Any

from trialogue_lab.ledger import RESOLVED, Claim, largest, ours, smallest
from trialogue_lab.studies.window_coherence import statistics
from trialogue_lab.studies.window_coherence.config import UNLIMITED

_COROLLARY = "Potts chains, Corollary 1.2.1"
_OURS = f"{_COROLLARY} (not in the document)"
_TOPOLOGIES = "Potts chains, section on topologies (not measured there)"
_CROSSING = "Potts chains, Theorem 1.1, equation 5"
_GROWING: dict[str, Any] = {
    "source": "Potts chains, Theorem 1.1, equation 3",
    "published": "the most a wall can cost grows with W - 1",
}
_COLDER: dict[str, Any] = {"source": _CROSSING, "published": "exp(-(W - 1) E_max / T)"}
_STAY = "the product of the probabilities to stay"
_SETTING = (
    "Small networks with windows of 3 to 11 tokens, trained on two noisy patterns of seven tokens, represent any "
    "autoregressive model with a fixed window."
)
_BEST_OVER_CORPUS = smallest("best", "rate", where="temperature == 1") / statistics.corpus("rate")

_claim = partial(Claim, setting=_SETTING)
_best = partial(ours, source=_OURS)
_unlimited = partial(ours, source=_TOPOLOGIES)
_growing = partial(ours, **_GROWING)

CLAIMS = (
    _claim(
        "no-window-is-coherent-for-ever",
        "Every network trained here with a finite window leaves its pattern at every temperature tried (0.4 to 1.4; "
        "smallest long-run rate, nats per token, above what rounding leaves).",
        smallest("rate", "rate") > RESOLVED,
        _COROLLARY,
        "cannot generate infinite coherent output",
        statement_id="potts:S0-C1.2.1",
    ),
    _claim(
        "coherent-below-the-crossing-length",
        "The mean coherent length of every network trained here is below the crossing length of its Hamiltonian (most "
        "decades above).",
        statistics.decades_beyond_crossing() < 0,
        _CROSSING,
        "L* = 1 + exp((W - 1) E_max / T) / (N - 1)",
        statement_id="potts:S0-T1.1",
    ),
    _best(
        "no-window-has-the-law-of-the-corpus",
        "The best model with any of the windows leaves its pattern more than ten times as fast as the corpus seems to, "
        "by the noise of the measure (smallest ratio).",
        _BEST_OVER_CORPUS > 10,
    ),
    _claim(
        "measured-rate-is-the-eigenvalue",
        "Text leaves its pattern at the rate of the transfer matrix of the network that wrote it (log ratio of walls "
        "behind the first measured window, all windows together, within 0.1).",
        statistics.measured_rate_error().near(0, margin=0.1),
        _COROLLARY,
        _STAY,
        statement_id="potts:S0-C1.2.1.rate",
    ),
    ours(
        "text-has-the-exact-law",
        "Text stays in its pattern as long as the transfer matrix of the network that wrote it says (log ratio of the "
        "mean tokens before a wall or the horizon, mean over finite windows, within 0.05).",
        statistics.mean_run_error().near(0, margin=0.05),
        _COROLLARY,
        "Theorem 1.2: the model is a Potts chain",
    ),
    ours(
        "survival-falls-at-the-eigenvalue",
        "Over the last measured window before the horizon, exact survival falls at the rate of the chain's largest "
        "eigenvalue within 5 % (largest log ratio over networks, patterns and temperatures of generation).",
        largest("rate", "late_error", where="late_error.notna()") < 0.05,
        _COROLLARY,
        _STAY,
    ),
    _growing(
        "best-models-with-longer-windows-stay-longer",
        "Of the best models with a window, one with a token more always leaves its pattern more slowly (least log "
        "ratio of rates, from the shortest trained window on).",
        statistics.best_step() > 0,
    ),
    _claim(
        "each-longer-window-stays-longer",
        "Each longer window leaves its pattern more slowly than the next shorter one (least log ratio of rates).",
        statistics.longer() > 0,
        **_GROWING,
        statement_id="potts:S0-T1.1.derived",
    ),
    _growing(
        "longer-windows-stay-longer",
        "Up to the longest window but one (one period), networks with a longer window leave their pattern more slowly "
        "(least log ratio of rates).",
        statistics.longer(last=-1) > 0,
    ),
    _growing(
        "beyond-a-period-stays-longer",
        "The longest window (more than one period) leaves its pattern more slowly than the one before (log ratio of "
        "rates).",
        statistics.longer(first=-1) > 0,
    ),
    _claim(
        "colder-leaves-more-slowly",
        "Where the window tells the patterns apart, the rate at the lowest temperature of generation is below that at "
        "1 (least log ratio).",
        statistics.colder(tells=True) > 0,
        **_COLDER,
        statement_id="potts:S0-T1.1.derived",
    ),
    ours(
        "colder-stays-longer",
        "Where the window tells the patterns apart, the rate at the lowest temperature of generation is less than half "
        "of that at 1 (least log ratio).",
        statistics.colder(tells=True) > math.log(2),
        **_COLDER,
    ),
    ours(
        "cold-does-not-help-a-window-that-cannot-tell",
        "With the shortest window, whose contexts belong to both patterns, the rate does not depend on the temperature "
        "(log ratio of rates within 0.1).",
        statistics.colder(tells=False).near(0, margin=0.1),
        "Potts chains, Theorem 1.1 (not in the document)",
    ),
    _best(
        "networks-leave-faster-than-the-best",
        "A trained network leaves its pattern faster than the best model with its window (log ratio of rates, mean "
        "over windows that tell the patterns apart).",
        statistics.above_best(sliding=False) > 0,
    ),
    _best(
        "sliding-attention-is-a-window",
        "Attention within a window leaves faster than the best model whose window is its receptive field (log ratio of "
        "rates).",
        statistics.above_best(sliding=True) > 0,
    ),
    _unlimited(
        "unlimited-attention-stays-longer",
        "With attention to all of the text, more of it is still in its pattern at the horizon than with the longest "
        "window, by more than 0.2.",
        statistics.unlimited_gain() > 0.2,
    ),
    _unlimited(
        "unlimited-attention-is-as-coherent-as-the-corpus",
        "With attention to all of the text, survival to the horizon is that of the corpus (within 0.02).",
        (statistics.text(UNLIMITED, "survival") - statistics.corpus("survival")).near(0, margin=0.02),
    ),
    ours(
        "greedy-decoding-stays",
        "At temperature zero, where E_max is infinite and the theorem does not hold, networks whose window tells the "
        "patterns apart hold each of them to the horizon (least share of patterns).",
        statistics.greedy_survival() > 0.99,
        "Potts chains, Theorem 1.1, its assumption",
        "E_max is finite",
    ),
)

NUMBERS = {
    "survival with unlimited attention": statistics.text(UNLIMITED, "survival"),
    "survival of the corpus": statistics.corpus("survival"),
    "smallest rate of a network": smallest("rate", "rate"),
    "best window over corpus": _BEST_OVER_CORPUS,
}
