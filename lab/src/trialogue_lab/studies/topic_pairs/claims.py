"""Claims of `topic-pretrained` about attention that ten samples of texts left undecided."""

from dataclasses import replace

from trialogue_lab.ledger import Claim
from trialogue_lab.studies.topic_pretrained.claims import PUBLISHED as EARLIER

_UNDECIDED = (
    "minilm-attends-less-than-to-words-it-meets",
    "gemma3-attends-less-than-to-words-it-meets",
    "gemma3-random-attention",
    "lengths-bias-attention",
)


def _remove_corrections(claim: Claim) -> Claim:
    """Return the claim without the recorded corrections of its statistic.

    The corrections concern results of the other study.
    """
    quantity = replace(claim.statistic, corrections=())
    return replace(claim, criterion=replace(claim.criterion, statistic=quantity))


_BY_ID = {claim.id: claim for claim in EARLIER}

CLAIMS = tuple(_remove_corrections(_BY_ID[identity]) for identity in _UNDECIDED)

NUMBERS = {claim.id: claim.statistic for claim in CLAIMS}
