"""kombu's own integration tests of a transport, on `streamfrom_worker.celery`.

Direct they run on kombu's transport in memory, which has every feature of its virtual transports: a test that passes there passes here.
"""

import os
import shutil
from pathlib import Path
from typing import Final

from streamfrom.proxy.embedded.servers import Family
from tests.suites.fetching import python_with, sdist
from tests.suites.python_tests import broker_url, run_pytest
from tests.suites.suite import Outcomes, Run, Suite


VERSION: Final = "5.7.0"
DATABASE: Final = "kombu_test"
PACKAGES: Final = ("pytest==9.2.0", f"kombu=={VERSION}", "asyncmy", "PyMySQL==1.2.4", "pytz")
CLIENTS: Final = Path(__file__).parents[2] / "clients/python"
RUN_S: Final = 600.0


def _fetch(cache: Path) -> Path:
    python_with(cache, "kombu", PACKAGES)
    return sdist(cache, "kombu", VERSION)


def _run(run: Run) -> Outcomes:
    python = python_with(run.suite_folder.parent, "kombu", PACKAGES)
    shutil.copy(
        Path(__file__).with_name("kombu_tests.py"),
        run.suite_folder / "t/integration/test_streamfrom.py",
    )
    return run_pytest(
        run,
        python,
        f"--config-file={os.devnull}",
        "--rootdir=.",
        "t/integration/test_streamfrom.py",
        environ={
            "KOMBU_URL": broker_url(run, python, DATABASE) or "memory://",
            "PYTHONPATH": str(CLIENTS),
        },
        limit_s=RUN_S,
    )


KOMBU: Final = Suite(
    name="kombu",
    version=VERSION,
    families=(Family.MARIADB, Family.MYSQL),
    databases=(DATABASE,),
    fetch=_fetch,
    run=_run,
)
