"""The keyspace of the benchmark: one message table on two servers, filled on the servers."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from bench import messages
from bench.lab import Endpoint as Process, sharded
from bench.plan import Plan
from bench.processes import HOST
from streamfrom.spark.endpoint import Endpoint


DATABASE: Final = "pipeline"
TABLE: Final = "queue"
SHARDS: Final = ("-80", "80-")
# One message is acknowledged per microsecond, from this long ago: the window is closed, but not yet purged.
ACKED_AGO_NS: Final = 3_600 * messages.NS_PER_S
BODY: Final = "CONCAT('{\"number\": ', n, ', \"text\": \"', REPEAT('x', 50), '\"}')"


@dataclass(frozen=True, slots=True)
class Shards:
    """Two shards and their addresses for Spark, through the proxy and direct."""

    plan: Plan
    proxy: Process

    @property
    def endpoint(self) -> Endpoint:
        """The keyspace, through the proxy."""
        return Endpoint(HOST, self.proxy.port, "root", DATABASE)

    @property
    def direct(self) -> Sequence[Endpoint]:
        """The server of each shard."""
        servers = (self.plan.lab.server_number(number) for number in range(len(SHARDS)))
        return [Endpoint(HOST, server.port, "root", DATABASE) for server in servers]

    @property
    def source(self) -> dict[str, str]:
        """The options of `format("streamfrom")`."""
        return {"proxy": f"mysql://root@{HOST}:{self.proxy.port}/{DATABASE}", "table": TABLE}

    @contextmanager
    def table(self, rows: int, acked_ns: int | None = None) -> Iterator[None]:
        """Fill the table with *rows* messages of about 100 bytes, half of them on each shard.

        acked_ns: when the first one was acknowledged; each other one follows a microsecond later. None: all are due.
        """
        self.proxy.execute(messages.create_table(TABLE, comment=True), DATABASE)
        lab = self.plan.lab
        try:
            for number in range(len(SHARDS)):
                # A read by shard name does not check where a row belongs.
                columns, values = "id, message", f"{number} + 2 * n, {BODY}"
                if acked_ns is not None:
                    columns += ", epoch, time_next, time_acked"
                    values += f", 1, NULL, {acked_ns} + 1000 * n"
                server = lab.server_number(number)
                messages.fill(lab, DATABASE, TABLE, columns, values, rows // 2, server)
            lab.settle()
            yield
        finally:
            self.proxy.execute(f"DROP TABLE {TABLE}", DATABASE)

    def acked(self) -> int:
        """Return the number of acknowledged messages."""
        lab, count = self.plan.lab, f"SELECT COUNT(time_acked) FROM {TABLE}"
        servers = map(lab.server_number, range(len(SHARDS)))
        return sum(int(lab.execute(count, DATABASE, server)[0][0]) for server in servers)


@contextmanager
def two_shards(plan: Plan) -> Iterator[Shards]:
    """Run the proxy in front of two servers."""
    with plan.lab.keyspace(DATABASE, shards=len(SHARDS), vschema=sharded(TABLE)) as proxy:
        yield Shards(plan, proxy)
