"""The garbage collector rests while a command begins, and only then."""

import gc
import weakref

from trialogue.start_up import for_good, uncollected


def test_the_collector_rests_until_the_outermost_block_ends() -> None:
    assert gc.isenabled()
    with uncollected():
        with uncollected():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_what_was_loaded_is_collected_once_nobody_holds_it() -> None:
    class Model:
        pass

    with uncollected():
        model = Model()
        model.itself = model  # type: ignore[attr-defined]
        held = weakref.ref(model)
    del model
    gc.collect()
    assert held() is None


def test_one_command_of_a_process_keeps_what_it_loads() -> None:
    try:
        with for_good():
            with uncollected():
                pass
            assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
    with uncollected():
        pass
    assert gc.get_freeze_count() == 0
