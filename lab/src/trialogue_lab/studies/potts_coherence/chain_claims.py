"""Claims about chains: Theorem 1.1, equations 2 to 5, and sampled walls."""

from functools import partial

from trialogue_lab.ledger import RESOLVED, Claim, cited, largest, ours, smallest
from trialogue_lab.ledger.claims.claims import Origin
from trialogue_lab.studies.potts_coherence import statistics
from trialogue_lab.studies.potts_coherence.chains import PERIODIC, PLANTED, SHARED, UNIFORM
from trialogue_lab.studies.potts_coherence.statistics import SEVERAL

EQUAL = 1e-10
"""Differences between equal numbers that are due to rounding."""

WALLS = "Theorem 1.1"
_CROSSING = "Equation 5 solved for L"
_ONE_TOKEN = f"{SEVERAL} and family in {(UNIFORM, PLANTED)}"
_MORE_TOKENS = f"{SEVERAL} and family in {(PERIODIC, SHARED)}"
_PATTERNS: tuple[tuple[str, str, str, str, Origin], ...] = (
    ("", "of one token each", _ONE_TOKEN, ", with an assumption that it needs", "ours"),
    ("-for-any-patterns", "that share tokens too", _MORE_TOKENS, "", "published"),
)
_control = partial(ours, source=f"{WALLS} (control not in the document)")
_crossing = partial(Claim, source=_CROSSING, statement_id="potts:S0-T1.1")
_our_crossing = partial(ours, source=_CROSSING)
_AS_LOGARITHMS = "numbers of walls are compared by ratios, because they are tiny at low temperatures"

CHAIN_CLAIMS = (
    Claim(
        "walls-are-inevitable",
        "With two or more patterns the probability of no wall falls exponentially with the length in every chain, at "
        "every temperature tried (0.2 to 5; smallest rate per site, above what rounding leaves).",
        smallest("chain", "wall_decay", where=SEVERAL) > RESOLVED,
        **cited(WALLS, "no convergence to one pattern", "potts:S0-T1.1"),
    ),
    Claim(
        "energy-of-a-wall-bounded",
        "A single wall costs at most (W - 1) E_max, in every chain (largest excess).",
        largest("length", "wall_energy - (window - 1) * max_energy", where=SEVERAL) < EQUAL,
        **cited("Equation 3", "at most 0", "potts:S0-T1.1"),
    ),
    *(
        Claim(
            f"walls-counted{ending}",
            f"There are (L - 1)(N - 1) sequences with a single wall, for patterns {kind} (largest ratio to the exact "
            "number).",
            largest("length", "splices_counted / splices", where=where) < 1 + EQUAL,
            f"Equation 4{assumption}",
            "1",
            origin,
            statement_id="potts:S0-T1.1.proof" if origin == "published" else "",
        )
        for ending, kind, where, assumption, origin in _PATTERNS
    ),
    *(
        Claim(
            f"free-energy-bounded{ending}",
            f"Equation 5 bounds the free energy of a single wall, for patterns {kind} (largest excess).",
            largest("length", "free_energy - free_energy_bound", where=where) < EQUAL,
            f"Equation 5{assumption}",
            "at most 0",
            origin,
            statement_id="potts:S0-T1.1.proof" if origin == "published" else "",
        )
        for ending, kind, where, assumption, origin in _PATTERNS
    ),
    _crossing(
        "beyond-the-crossing-length",
        "From the crossing length L* on there is a wall with probability above one half (smallest over chains and "
        "lengths).",
        statistics.wall_likelihood_from_crossing() > 0.5,
        published="ΔF < 0: likelier than not",
    ),
    ours(
        "crossing-length-is-sharp",
        "Between nearest neighbours P(no wall) at L* tends to 1/e as T falls (difference at the coldest).",
        statistics.left_of_sharpness() < 0.001,
        f"{_CROSSING} (not in the document)",
    ),
    _control(
        "solved-by-hand",
        "The nearest-neighbour chain has the partition function, walls and P(no wall) of independent bonds (largest "
        "difference).",
        largest("closed form", "log_partition_error", "walls_error", "no_wall_error") < EQUAL,
    ),
    _control(
        "decay-solved-by-hand",
        "There P(no wall) falls by log(1 + (V - 1) e^(-J/T)) per bond (largest difference from the transfer matrix).",
        largest("closed form", "decay_error") < EQUAL,
    ),
    *(
        Claim(
            f"{more}-more-walls",
            f"Expected walls grow with the {what} (least log ratio, uniform patterns).",
            statistics.smallest_step(along).corrected(_AS_LOGARITHMS) > 0,
            **cited("Equation 5", published, "potts:S0-T1.1.derived"),
        )
        for more, what, along, published in (
            ("hotter-has", "temperature", "temperature", "entropy wins with T"),
            ("more-patterns-have", "number of patterns N of the same vocabulary", "patterns", "log(N - 1)"),
        )
    ),
    Claim(
        "wider-windows-stay-longer",
        "At fixed E_max / T the first coherent run grows with the window W, wherever it is shorter than the chain "
        "(smallest ratio of one window to the next).",
        statistics.run_ratio().corrected("E_max grew with the window at a fixed energy of a wrong token") > 1,
        **cited("Equation 5", "(W - 1) E_max", "potts:S0-T1.1.derived"),
    ),
    _control(
        "one-pattern-is-left-too",
        "With a single pattern there are no walls, but the probability of no excitation falls all the same (smallest "
        "rate, above what rounding leaves).",
        smallest("chain", "ground_decay", where="patterns == 1") > RESOLVED,
    ),
    _control(
        "costly-windows-do-not",
        "Two patterns whose walls cost E_max = 2, 5, 10 or 20 T are left, as they are not where E_max is infinite "
        "(smallest rate, above what rounding leaves).",
        smallest("control", "ground_decay", where="not forbidden") > RESOLVED,
    ),
    _control(
        "drawn-as-computed",
        "The share of exact samples with a wall is the computed one within 0.02 (mean difference).",
        statistics.share_error("drawn").near(0, margin=0.02),
    ),
    _control(
        "pattern-left-by-gibbs",
        "Gibbs sampling that begins in a stored pattern ends with as many walls as equilibrium has: the share of "
        "chains with one is the computed one within 0.02 (mean difference).",
        statistics.share_error("gibbs").near(0, margin=0.02),
    ),
    _crossing(
        "walls-increase-through-the-crossing-length",
        "Of Gibbs chains that begin in a stored pattern, more have a wall at L* than at L* / 10, and more at 10 L* "
        "than at L* (smallest rise of the share, over the chains sampled).",
        statistics.rise(0, 1, 2) > 0,
        published="rises through L*",
    ),
    _our_crossing(
        "walls-appear-through-the-crossing-length",
        "From L* / 10 to 10 L* the share of Gibbs chains with a wall rises by more than one half (smallest over "
        "chains).",
        statistics.rise(0, 2) > 0.5,
        published="rises through L*",
    ),
    _our_crossing(
        "ten-crossing-lengths",
        "At 10 L* more than 95 % of the Gibbs chains have a wall (smallest over chains).",
        statistics.share(2) > 0.95,
        published="inevitable",
    ),
)
