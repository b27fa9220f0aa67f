"""The contracts of the package as checks: hold what is your own to them, each by one call in pytest.

    from trialogue.testing import check_sampler

    def test_my_walk():
        check_sampler(MyWalk())

What breaks a distribution raises `AssertionError` that says which, and where. Nothing here needs pytest.
"""

from trialogue.testing.chains import check_chain
from trialogue.testing.models import check_energy, check_joint, check_masked
from trialogue.testing.oracles import check_oracle
from trialogue.testing.samplers import check_sampler
from trialogue.testing.verifiers import check_verifier

__all__ = [
    "check_chain",
    "check_energy",
    "check_joint",
    "check_masked",
    "check_oracle",
    "check_sampler",
    "check_verifier",
]
