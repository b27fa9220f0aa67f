"""What the children of a node weigh in a sampler that a value function guides."""

import math

from torch import Tensor

from trialogue.oracles import Decoding
from trialogue.samplers.cut import Cut
from trialogue.samplers.prefix.batch import Children
from trialogue.samplers.prefix.judge import Judge
from trialogue.samplers.prefix.sampler import require_support


def weighed_children(decoding: Decoding, rows: Tensor, verifier: Judge, cut: Cut) -> Children:
    """The children of `rows` (n,), which are not complete, with weights p(a|y) V(ya); a query of each row.

    Of those of positive value only what `cut` keeps of the oracle's distribution on them.
    """
    log_probs = decoding.log_probs(rows)

    def weigh(some: Tensor) -> Tensor:
        distributions = log_probs[some].double()
        require_support(distributions)
        if cut.nothing:
            return distributions + _log(verifier.children(rows[some], distributions > -math.inf))
        values = verifier.leading_children(rows[some], distributions, verdicts=True, cut=cut)
        allowed = distributions.masked_fill(values <= 0, -math.inf)
        open_ = (allowed.amax(1) > -math.inf).nonzero()[:, 0]
        allowed[open_] = allowed[open_].masked_fill(cut(allowed[open_]) == -math.inf, -math.inf)
        return allowed + _log(values)

    return verifier.weighed_children(rows, weigh)


def _log(values: Tensor) -> Tensor:
    """Logarithms of `values` or verdicts, most of which may be zero: what takes `log` ten times as long."""
    none = values == 0
    return values.double().masked_fill(none, 1.0).log_().masked_fill_(none, -math.inf)
