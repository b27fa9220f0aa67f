"""Prevents loky from ending worker processes that hold large models.

loky ends a worker whose memory has grown by more than 300 MB since its first task, because it takes the growth for a
leak. A worker of `Local` may load a large model after its first task and keeps it for later ones. Ending the worker
would load the model again and would print a warning. Neither loky nor joblib has a public setting for this limit, which
is why its private name is used here, and nowhere else.
"""

import math


def allow_growth() -> None:
    """Disable the memory growth limit at which loky ends this worker process."""
    from joblib.externals.loky import process_executor

    process_executor._MAX_MEMORY_LEAK_SIZE = math.inf
