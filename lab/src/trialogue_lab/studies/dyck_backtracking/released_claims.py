"""Claims about Algorithm 1 as the released code does it, beside those about Algorithm 1 as printed; all are ours."""

from trialogue_lab.ledger import Claim
from trialogue_lab.studies.dyck_backtracking.statistics import inducing

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
        "quota-changes-nothing-as-printed",
        "As printed, a quota of 4 is as accurate as one of 1, mean over strides (difference within 2 points).",
        (inducing("backtracking", quota=4) - inducing("backtracking", quota=1)).near(0, margin=0.02),
        "Table 3.2",
        "0.508 to 0.734",
        "ours",
    ),
    Claim(
        "released-is-more-accurate",
        "With the redo as released the trained verifier gains more than as printed, mean over Q and B.",
        inducing("released") - inducing("backtracking") > 0,
        "Table 3.2 (the other reading of the redo)",
        "0.620 (mean of nine cells)",
        "ours",
    ),
)
