"""What a Python worker of Spark has loaded, kept out of the garbage collection.

Spark's daemon collects all garbage after each task and each planning step. Looking through what pyspark, pandas and
pyarrow have made of objects by then takes 40 ms of processor time, as long as reading 150,000 rows.
"""

import gc
from itertools import count
from typing import Final


# The first task of a process loads what it needs only while it runs.
_TASKS: Final = 2
_tasks = count()


def keep_loaded() -> None:
    """Let no later collection look at what exists now; where a process begins its first tasks, when most is loaded."""
    if next(_tasks) < _TASKS:
        gc.freeze()
