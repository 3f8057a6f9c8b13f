"""Keep the objects that a Python worker of Spark has loaded out of garbage collection.

Spark's daemon runs a full collection after each task and each planning step. Scanning the objects that pyspark, pandas and
pyarrow have created by then takes 40 ms of processor time, as long as reading 150,000 rows.
"""

import gc
from itertools import count
from typing import Final


# The first task of a process imports further modules while it runs.
_TASKS: Final = 2
_tasks = count()


def keep_loaded() -> None:
    """Exclude all current objects from later collections; call it when a process begins its first tasks, when most is loaded."""
    if next(_tasks) < _TASKS:
        gc.freeze()
