import pytest

from streamfrom.proxy.backends.shard import ReplicaHealth, lag_trouble, primary_health


class Control:
    """A server that answers from a dictionary of texts."""

    def __init__(self, **channel):
        self.channels = [channel] if channel else []
        self.read_only = 0

    async def rows(self, sql):
        return [("8.4.3",)] if sql == "SELECT VERSION()" else [(self.read_only, "8.4.3")]

    async def records(self, sql):
        assert sql == "SHOW REPLICA STATUS"
        return self.channels


async def test_a_primary_must_be_writable():
    control = Control()
    assert await primary_health(control) == ("8.4.3", None)  # type: ignore[arg-type]
    control.read_only = 1
    found = await primary_health(control)  # type: ignore[arg-type]
    assert found.trouble == "the server is read-only"


@pytest.mark.parametrize("column", ["Seconds_Behind_Source", "Seconds_Behind_Master"])
async def test_a_replica_must_be_near_its_primary(column):
    ask = ReplicaHealth(30)
    assert await ask(Control(**{column: 30})) == ("8.4.3", None)  # type: ignore[arg-type]
    found = await ask(Control(**{column: 31}))  # type: ignore[arg-type]
    assert found.trouble == "31 s behind, more than replica_max_lag"
    ask.lag_max_s = 31
    assert await ask(Control(**{column: 31})) == ("8.4.3", None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("channels", "trouble"),
    [
        ([], "the server is no replica"),
        ([{"Seconds_Behind_Source": None}], "replication is not running"),
        ([{"Seconds_Behind_Master": None, "Last_SQL_Error": "", "Last_IO_Error": "no route"}], "replication is not running: no route"),
        ([{"Seconds_Behind_Source": 0}, {"Seconds_Behind_Source": "7"}], "7 s behind, more than replica_max_lag"),
    ],
)  # fmt: skip
def test_what_keeps_a_replica_from_being_read_is_told(channels, trouble):
    assert lag_trouble(channels, 5) == trouble
