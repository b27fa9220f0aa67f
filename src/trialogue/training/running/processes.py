"""Processes of a distributed training."""

import torch
from accelerate import PartialState
from accelerate.utils import parse_flag_from_env


def get_processes() -> PartialState:
    """Return the processes that train together, started by `accelerate launch` or torchrun, or this process alone."""
    # Without a GPU, accelerate treats the processes as one group only with cpu=True. Otherwise each would train alone.
    on_processors = parse_flag_from_env("ACCELERATE_USE_CPU") or not torch.accelerator.is_available()
    return PartialState(cpu=on_processors)
