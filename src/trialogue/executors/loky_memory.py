"""Prevents loky from ending worker processes that hold large models.

loky ends a worker whose memory has grown by more than 300 MB since its first task, because it takes the
growth for a leak. There is no public setting for this limit, so a private name is used here.
"""

import math


def allow_growth() -> None:
    """Disable the memory growth limit at which loky ends this worker process."""
    from joblib.externals.loky import process_executor

    process_executor._MAX_MEMORY_LEAK_SIZE = math.inf
