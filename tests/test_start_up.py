"""Garbage collection is disabled during the start of a command."""

import gc
import weakref

from trialogue.start_up import freeze_collector, pause_collector


def test_collection_is_disabled_until_the_outermost_block_ends():
    assert gc.isenabled()
    with pause_collector():
        with pause_collector():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_objects_loaded_without_collection_are_collected_later():
    class Model:
        pass

    with pause_collector():
        model = Model()
        model.itself = model  # type: ignore[attr-defined]
        reference = weakref.ref(model)
    del model
    gc.collect()
    assert reference() is None


def test_a_process_with_a_single_command_excludes_loaded_objects_from_collection():
    gc.unfreeze()  # `conftest.py` excludes the collected tests
    try:
        with freeze_collector():
            with pause_collector():
                pass
            assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
    with pause_collector():
        pass
    assert gc.get_freeze_count() == 0
    gc.freeze()
