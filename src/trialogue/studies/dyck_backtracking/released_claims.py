"""Claims about Algorithm 1 as the released code does it, beside those about Algorithm 1 as printed; all are ours."""

from trialogue.ledger import Claim
from trialogue.studies.dyck_backtracking.quantities import errors_ratio, inducing

RELEASED_CLAIMS = (
    Claim(
        "larger-quota-helps-as-released",
        "With the redo as released a quota of 4 is more accurate than one of 1, mean over strides.",
        inducing("released", quota=4) - inducing("released", quota=1) > 0,
        "Table 3.2",
        "0.508 to 0.734",
        "ours",
    ),
    Claim(
        "longer-strides-help-as-released",
        "With the redo as released a stride of 6 is more accurate than one of 2, mean over quotas.",
        inducing("released", stride=6) - inducing("released", stride=2) > 0,
        "Table 3.2",
        "0.465 to 0.762",
        "ours",
    ),
    Claim(
        "quota-extends-one-path",
        "As printed, more than 90 % of the completions at a quota of 4 are those at a quota of 1, mean over strides.",
        inducing("backtracking", "same_as_at_first_quota", quota=4) > 0.9,
        "Table 3.2 (control not in the thesis)",
        origin="ours",
    ),
    Claim(
        "released-leaves-fewer",
        "With the redo as released the trained verifier leaves fewer errors at top-p 0.9 than as printed (log ratio).",
        errors_ratio("trained, as released", "trained", 0.9).log() < 0,
        "Table 3.3 (the other reading of the redo)",
        origin="ours",
    ),
)
