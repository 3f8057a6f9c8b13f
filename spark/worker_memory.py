"""What a Python worker of Spark has loaded, kept out of the garbage collection.

Spark's daemon collects all garbage after each task and each planning step. Looking through what pyspark, pandas and
pyarrow have made of objects by then takes 40 ms of processor time, as long as reading 100,000 rows.
"""

import gc
from functools import cache


@cache
def keep_loaded() -> None:
    """Let no later collection look at what exists now; once in a process, when most is loaded."""
    gc.freeze()
