"""The processes that train a network together."""

import torch
from accelerate import PartialState
from accelerate.utils import parse_flag_from_env


def processes() -> PartialState:
    """Those that `accelerate launch` or torchrun has started; this one alone where nothing has.

    accelerate takes processes without a GPU for strangers unless it is told that they compute on processors; each
    would train, and write, all by itself.
    """
    on_processors = parse_flag_from_env("ACCELERATE_USE_CPU") or not torch.accelerator.is_available()
    return PartialState(cpu=on_processors)
