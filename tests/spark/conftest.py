"""One Spark for all tests that need a JVM, on two threads as on a laptop."""

import os
import shutil
import sys

import pytest


@pytest.fixture(scope="session")
def spark():
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("no java: apt-get install default-jre-headless")
    from pyspark.sql import SparkSession

    # Its workers must be this Python, and find the package as the tests do.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    session = (
        SparkSession.builder.master("local[2]")
        .appName("streamfrom tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
