"""`python -m tests.integration.troubles.clock_off serve …`: the proxy on a machine whose clock is off.

By how many seconds is written in the file that the variable CLOCK_OFF names, and is read at each look at the clock.
"""

import os
import time
from pathlib import Path
from unittest.mock import patch

from streamfrom.engine.clock import SystemClock
from streamfrom.proxy.cli import main


def wrong_time_ns(_clock: SystemClock) -> int:
    """Return the time, and how far it is off."""
    off_s = Path(os.environ["CLOCK_OFF"]).read_text()
    return time.time_ns() + int(off_s) * 10**9


if __name__ == "__main__":
    with patch.object(SystemClock, "time_ns", wrong_time_ns):
        raise SystemExit(main())
