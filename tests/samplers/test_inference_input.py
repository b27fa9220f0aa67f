"""Samplers, chains, simulations, distributions and verifiers: bad numbers and objects are one line with field, value
and hint.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

from trialogue.data import Ising, Table, window_tables
from trialogue.errors import InputError
from trialogue.models.probe import Probe
from trialogue.samplers import (
    Ancestral,
    Backtracking,
    BestOfN,
    BlockBestOfN,
    BlockValueGuided,
    ChainRule,
    Gibbs,
    Metropolis,
    OutcomeRejection,
    SequentialMonteCarlo,
    StationaryValueGuided,
    TokenwiseRejection,
    ValueGuided,
    effective_sample_size,
    generate,
    hitting_times,
    resampled,
    run_chain,
    run_sweeps,
    truncated,
)
from trialogue.samplers.chains.simulation.chromatic import Chromatic
from trialogue.samplers.chains.simulation.heat_bath import HeatBath
from trialogue.samplers.chains.simulation.multispin import Multispin
from trialogue.samplers.exact import (
    chain_transitions,
    ergodicity,
    exact_distribution,
    target_distribution,
    transition_matrix,
)
from trialogue.verifiers import FunctionVerifier, ProbeVerifier, RandomVerifier, Threshold

COINS = Table([[0.25, 0.25], [0.25, 0.25]])
SPINS = Ising(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.zeros(2))
START = torch.zeros(2, 2, dtype=torch.int64)
ANY = FunctionVerifier(lambda prefix: 1.0)

CALLS: list[tuple[Callable[[], object], str]] = [
    (lambda: Backtracking(quota=1.5), "quota=1.5: use an integer"),
    (lambda: Backtracking(quota=math.nan), "quota=nan: use an integer"),
    (lambda: Backtracking(stride=1.5), "stride=1.5: use an integer"),
    (lambda: Backtracking(stride=True), "stride=True: use an integer"),
    (lambda: Backtracking(argmax_redo="no"), "argmax_redo='no': use True or False"),
    (lambda: BestOfN(2.0), "candidates=2.0: use an integer"),
    (lambda: BestOfN(None), "candidates=None: use an integer"),
    (lambda: SequentialMonteCarlo(2.0), "particles=2.0: use an integer"),
    (
        lambda: SequentialMonteCarlo(ess_threshold="1"),
        "ess_threshold='1': use a number",
    ),
    (lambda: SequentialMonteCarlo(ess_threshold=True), "ess_threshold=True: use a number"),
    *[
        (lambda kind=kind, field=field, value=value: kind(**{field: value}), f"{field}={value!r}: {hint}")
        for kind, field, value, hint in [
            (BestOfN, "candidates", 0, "use at least 1"),
            (BlockBestOfN, "candidates", 0, "use at least 1"),
            (BlockBestOfN, "block_tokens", 0, "use at least 1"),
            (BlockBestOfN, "min_tokens", 0, "use at least 1"),
            (BlockBestOfN, "block_delimiter", "", "give a text of at least 1 character"),
            (BlockValueGuided, "candidates", 0, "use at least 1"),
            (BlockValueGuided, "block_tokens", 0, "use at least 1"),
            (Backtracking, "quota", -1, "use at least 0"),
            (Backtracking, "stride", 0, "use at least 1"),
            (Backtracking, "redo", "greedy", "use one of stride, erased, accumulated"),
            (Backtracking, "verified", "none", "use one of sampled, every"),
            (Backtracking, "once_per_prefix", 1, "use True or False"),
            (SequentialMonteCarlo, "particles", 0, "use at least 1"),
            (SequentialMonteCarlo, "ess_threshold", 1.5, "use at most 1"),
            (SequentialMonteCarlo, "proposal", "best", "use one of oracle, mask, rejection"),
            (SequentialMonteCarlo, "resampling", "residual", "use one of multinomial, systematic"),
            (ValueGuided, "candidates", 0, "use at least 1"),
            (ValueGuided, "nucleus", 0.0, "use a number above 0"),
            (ValueGuided, "momentum", 2.0, "use at most 1"),
            (StationaryValueGuided, "steps", 0, "use at least 1"),
            (StationaryValueGuided, "tries", 0, "use at least 1"),
            (StationaryValueGuided, "node", "first", "use one of uniform, last"),
            (OutcomeRejection, "most", 0.0, "use a number above 0"),
        ]
    ],
    (lambda: BlockBestOfN(delimiters=(-1,)), "delimiters=-1: item 1: use at least 0"),
    (lambda: BlockBestOfN(delimiters=(0,), block_tokens=2), "block_tokens=2: leave it out"),
    (lambda: BlockBestOfN(block_delimiter="a", block_tokens=1), "block_delimiter='a': leave it out"),
    (lambda: BlockBestOfN(block_delimiter="a", delimiters=(0,)), "block_delimiter='a': leave it out"),
    (
        lambda: Backtracking(argmax_redo=False, redo="erased"),
        "redo='erased': nothing is redone with argmax_redo=False",
    ),
    (lambda: BlockBestOfN(delimiters=None), "delimiters=None: give a list"),
    (lambda: BlockBestOfN(block_delimiter=3), "block_delimiter=3: give a text"),
    (lambda: BestOfN(10**11), "candidates=100000000000: use at most 65536"),
    (lambda: SequentialMonteCarlo(10**6), "particles=1000000: use at most 65536"),
    (lambda: StationaryValueGuided(steps=10**11), "steps=100000000000: use at most 16777216"),
    (lambda: ValueGuided(lazy="no"), "lazy='no': use True or False"),
    (lambda: TokenwiseRejection(max_rejections=0), "max_rejections=0: use at least 1"),
    (lambda: TokenwiseRejection(max_rejections=1.5), "max_rejections=1.5: use an integer"),
    (lambda: truncated(COINS, top_k=1.5), "top_k=1.5: keep at least 1 token"),
    (lambda: truncated(COINS, top_k="1"), "top_k='1': keep at least 1 token"),
    (lambda: truncated(COINS, temperature="1"), "temperature='1': use a finite number of at least 0"),
    (lambda: truncated(COINS, temperature=True), "temperature=True: use a finite number of at least 0"),
    (lambda: truncated(COINS, top_p=None), r"top_p=None: use a probability in \(0, 1\]"),
    (lambda: truncated(None), "oracle='NoneType': give an Autoregressive oracle"),
    (lambda: generate(None), "oracle='NoneType': give an Autoregressive oracle"),
    (
        lambda: generate(COINS, sampler="rejection"),
        "sampler='rejection': give an instance of a subclass of Sampler, such as Ancestral",
    ),
    (lambda: generate(COINS, num_samples=2, sample_ids=[1, 1]), "sample_ids=1: give 2 different integers"),
    (lambda: generate(COINS, num_samples=2, sample_ids=[-1, 0]), "sample_ids=-1: .*of at least 0"),
    (lambda: generate(COINS, num_samples=2, sample_ids="ab"), "sample_ids='ab': give 2 different integers"),
    (lambda: generate(COINS, num_samples=True), "num_samples=True: use an integer"),
    (lambda: generate(COINS, [[True]]), r"prompts=\[True\]: give a sequence of integer token ids"),
    (lambda: generate(COINS, torch.ones(1, 1) > 0), "prompts=torch.bool: give integer token ids"),
    (
        lambda: exact_distribution(Ancestral(), COINS, prompt="01"),
        "prompt='01': give a sequence of integer token ids",
    ),
    (
        lambda: exact_distribution(Ancestral(), COINS, prompt=(0.5,)),
        r"prompt=\[0.5\]: give a sequence of integer",
    ),
    (lambda: exact_distribution(Ancestral(), COINS, prompt=None), "prompt=None: give a sequence of integer"),
    (
        lambda: exact_distribution("ancestral", COINS),
        "sampler='ancestral': give an instance of a subclass of Sampler",
    ),
    (lambda: exact_distribution(Ancestral(), None), "oracle='NoneType': give an Autoregressive oracle"),
    (
        lambda: target_distribution(COINS, lambda prefix: 1.0, prompt="01"),
        "prompt='01': give a sequence of integer",
    ),
    (lambda: transition_matrix("gibbs", SPINS), "sampler='gibbs': give a chain"),
    (lambda: chain_transitions(None, SPINS), "chain=None: give a chain"),
    (lambda: chain_transitions(Gibbs(), SPINS, device="nope"), "device='nope': it cannot be used here"),
    (lambda: ergodicity([[1j, 0], [0, 1]]), "matrix=.*: give real numbers"),
    (lambda: ergodicity(torch.full((2, 2), math.nan)), "matrix=.*: give a square matrix of probabilities"),
    (lambda: resampled(None), "samples='NoneType': give the Samples"),
    (lambda: effective_sample_size(None), "log_weights=None: give logarithms of weights"),
    (lambda: effective_sample_size(np.array([1j])), "log_weights=.*complex128.*: give real numbers"),
    (lambda: run_chain(Gibbs(), SPINS, start=START, steps=True), "steps=True: use a whole number"),
    (lambda: run_chain(Gibbs(), SPINS, start=START > 0, steps=1), "start=torch.bool: give token ids"),
    (lambda: run_chain(Gibbs(), SPINS, start=START, steps=1, until=3), "until=3: give a function"),
    (lambda: run_chain(Gibbs(), SPINS, start=START, steps=1, require_ergodic="no"), "require_ergodic='no'"),
    (
        lambda: hitting_times(Gibbs(), SPINS, start=START, target=None, budget=1),
        "target=None: give a function",
    ),
    (lambda: Metropolis(np.array(["sweep", "random"])), "order=array.*: use"),
    (lambda: ChainRule(SPINS, np.array(["forward", "random"])), "order=array.*: use one of forward, random"),
    (lambda: run_sweeps(SPINS, chains=1, sweeps=1, device="nope"), "device='nope': it cannot be used here"),
    (lambda: run_sweeps(SPINS, chains=1, sweeps=1, device=1.5), "device=1.5: it cannot be used here"),
    (
        lambda: run_sweeps(SPINS, chains=1, sweeps=1, method=["multispin"]),
        r"method=\['multispin'\]: use one of",
    ),
    (lambda: run_sweeps(SPINS, start="ab", sweeps=1), "start='ab': give token ids"),
    (lambda: run_sweeps(SPINS, start=START > 0, sweeps=1), "start=torch.bool: give token ids"),
    (lambda: run_sweeps(SPINS, chains=True, sweeps=1), "chains=True: use a whole number"),
    (lambda: window_tables(None, 4), "energy=None: give W axes"),
    (lambda: window_tables(torch.zeros(2, 2) * 1j, 4), "energy=torch.complex64: give real numbers"),
    (
        lambda: window_tables(torch.full((2, 2), 1e308, dtype=torch.float64), 4),
        "energy=.*: give finite energies of windows",
    ),
    (lambda: window_tables(torch.zeros(2, 2), 4, periodic="no"), "periodic='no': use True or False"),
    *[
        (call, message)
        for kind in (HeatBath, Multispin, Chromatic)
        for call, message in [
            (lambda kind=kind: kind(SPINS, 1.5, 0), "chains=1.5: use a whole number"),
            (lambda kind=kind: kind(SPINS, -1, 0), "chains=-1: use at least 1"),
            (
                lambda kind=kind: kind(SPINS, 2, 0, torch.tensor([[0, 5], [0, 0]])),
                "tokens=5: use tokens below 2",
            ),
            (
                lambda kind=kind: kind(SPINS, 2, 0, START.float()),
                r"tokens=torch.float32: give token ids of shape \(2",
            ),
            (lambda kind=kind: kind(SPINS, 2, 0).advance(1.5), "sweeps=1.5: use a whole number"),
        ]
    ],
    (lambda: FunctionVerifier(None), "function=None: give a function"),
    (lambda: FunctionVerifier(len, "all"), "scope='all': use one of sequence, completion"),
    (lambda: FunctionVerifier(len, timeout="1"), "timeout='1': use a positive number of seconds"),
    (lambda: FunctionVerifier(len, whole="no"), "whole='no': use True or False"),
    (lambda: Threshold(None, 0.5), "verifier=None: give a Verifier"),
    (lambda: Threshold(ANY, "0.5"), "threshold='0.5': use a finite number of at least 0"),
    (lambda: Threshold(ANY, np.complex64(1 + 1j)), "threshold=.*: use a finite number of at least 0"),
    (lambda: generate(COINS, verifier=FunctionVerifier), r"verifier='FunctionVerifier': give an instance"),
    (lambda: RandomVerifier(True), "seed=True: use a whole number"),
    (lambda: ProbeVerifier(Probe(4), layer=0.5), "layer=0.5: use a whole number"),
]


@pytest.mark.parametrize(("call", "message"), CALLS, ids=[message for _, message in CALLS])
def test_bad_input_is_one_line(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}") as error:
        call()
    assert "\n" not in str(error.value)


def test_numbers_of_numpy_are_numbers() -> None:
    sampler = Backtracking(quota=np.int64(1), stride=np.int8(2))
    drawn = generate(
        truncated(COINS, temperature=np.float32(0.5), top_k=np.int64(2)),
        [np.array([0]), torch.tensor([1])],
        sampler=sampler,
        verifier=ANY,
        num_samples=np.int64(2),
        sample_ids=np.arange(4),
    )
    assert len(drawn.sequences()) == 4
    assert exact_distribution(Ancestral(), COINS, prompt=torch.tensor([1])).probabilities.keys() == {
        (1, 0),
        (1, 1),
    }
