"""What tests of jobs share."""

import pytest

from streamfrom.proxy.embedded.servers import Family


@pytest.fixture
def job_family(request):
    """The family of servers: MariaDB, where a test does not ask for another (`tests.spark.killed`)."""
    return getattr(request, "param", Family.MARIADB)
