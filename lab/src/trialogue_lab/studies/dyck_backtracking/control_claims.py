"""Claims of ours about the controls of Table 3.3: other verifiers and greedy decoding."""

from trialogue_lab.ledger import Claim
from trialogue_lab.studies.dyck_backtracking.statistics import errors_ratio

_CONTROL = "Table 3.3 (control not in the thesis)"

CONTROL_CLAIMS = (
    Claim(
        "random-is-as-good",
        "A random verifier leaves as many errors as the trained one at top-p 0.9 (log ratio within 0.25).",
        errors_ratio("random", "trained", 0.9).log().near(0, margin=0.25),
        _CONTROL,
        origin="ours",
    ),
    Claim(
        "greedy-is-as-good",
        "Greedy decoding without a verifier leaves as many errors as Algorithm 1 at top-p 0.9 (log ratio within 0.25).",
        errors_ratio("greedy", "trained", 0.9, of_first=0.0).log().near(0, margin=0.25),
        _CONTROL,
        origin="ours",
    ),
    Claim(
        "trained-beats-random",
        "The trained verifier leaves fewer errors than a random one at top-p 0.9 (log ratio).",
        errors_ratio("trained", "random", 0.9).log() < 0,
        _CONTROL,
        origin="ours",
    ),
    Claim(
        "trained-beats-greedy",
        "Algorithm 1 with the trained verifier leaves fewer errors at top-p 0.9 than greedy decoding (log ratio).",
        errors_ratio("greedy", "trained", 0.9, of_first=0.0).log() > 0,
        _CONTROL,
        origin="ours",
    ),
    Claim(
        "exact-beats-trained",
        "The exact process verifier leaves fewer errors than the trained one at top-p 0.9 (log ratio).",
        errors_ratio("exact", "trained", 0.9).log() < 0,
        _CONTROL,
        origin="ours",
    ),
)
