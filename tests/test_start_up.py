"""The garbage collector rests while a command begins, and only then."""

import gc

from trialogue.start_up import uncollected


def test_the_collector_rests_until_the_outermost_block_ends() -> None:
    assert gc.isenabled()
    try:
        with uncollected():
            with uncollected():
                assert not gc.isenabled()
            assert not gc.isenabled()
        assert gc.isenabled()
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


def test_a_collector_that_the_program_stopped_stays_stopped() -> None:
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
