"""The plugins of the suite, nothing else."""

pytest_plugins = (
    "tests.fixtures.database_servers",
    "tests.fixtures.running_proxy",
    "tests.fixtures.streams",
    "tests.fixtures.load",
    "tests.fixtures.terminal",
)
