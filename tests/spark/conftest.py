"""One Spark for all tests that need a JVM, on two threads as on a laptop."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.spark.early_worker import make_program
from tests.spark.killed import SETTINGS


MARIADB_JAR = Path("/usr/share/java/mariadb-java-client.jar")


def connector_j() -> Path | None:
    """Return the newest MySQL Connector/J that Maven has brought to this machine."""
    repository = Path.home() / ".m2" / "repository" / "com" / "mysql" / "mysql-connector-j"
    return max(repository.glob("*/mysql-connector-j-*.jar"), default=None)


LEFT_OUT = {
    "cluster": "a Spark cluster of its own: pytest -m cluster",
    "kills": "a JVM for each step that is killed: pytest -m kills",
}


def pytest_collection_modifyitems(config, items):
    """Leave out what takes minutes and JVMs of its own, unless it is asked for."""
    asked = config.getoption("markexpr") or ""
    for marker, reason in LEFT_OUT.items():
        if marker not in asked:
            for item in items:
                if item.get_closest_marker(marker):
                    item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("no java: apt-get install default-jre-headless")
    from pyspark.sql import SparkSession

    # Its workers must be this Python, and find the package as the tests do.
    os.environ["PYSPARK_PYTHON"] = str(make_program(tmp_path_factory.mktemp("worker")))
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    jars = ",".join(str(jar) for jar in (MARIADB_JAR, connector_j()) if jar and jar.is_file())
    builder = SparkSession.builder.master("local[2]").appName("streamfrom tests")
    session = builder.config(map={**SETTINGS, "spark.jars": jars}).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
