"""Checks for your own samplers, chains, models and verifiers, to be called in tests.

A check tests whether an object satisfies all requirements of the package. It can be called in a test, for example with
pytest:

    from trialogue.testing import check_sampler

    def test_my_sampler():
        check_sampler(MySampler())

A violation raises `AssertionError` with a message that states the violated requirement. pytest is not required.
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
