"""The plugins of the suite, nothing else."""

pytest_plugins = (
    "tests.fixtures.fix_servers",
    "tests.fixtures.fix_proxy",
    "tests.fixtures.fix_streams",
    "tests.fixtures.fix_load",
    "tests.fixtures.fix_terminal",
)
