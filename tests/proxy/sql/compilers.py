"""A compiler of statements over two keyspaces, without any server."""

from types import SimpleNamespace

from streamfrom.engine.errors import TableLoadError
from streamfrom.engine.messaging.table.message_table import load
from streamfrom.proxy.backends.session_variables import Settings
from streamfrom.proxy.execution.session_state import SessionState
from streamfrom.proxy.sql.compile.catalog import Catalog
from streamfrom.proxy.sql.compile.statement_compiler import StatementCompiler
from streamfrom.sqlparse_ext.cache import StatementCache
from tests.proxy.fake_client import MODERN
from tests.proxy.keyspaces import PLAIN, SHARDED
from tests.proxy.rigs import FixedClock
from tests.sim.memory_store import raw_table


class Registry:
    """`msg` in both keyspaces, `only` in one, `broken` everywhere."""

    def table(self, keyspace, name):
        if name == "msg" or (name == "only" and keyspace == "plain"):
            return load(keyspace, raw_table(name))
        if name == "broken":
            return TableLoadError("broken", "vt_ack_wait is missing")
        return None


def compiler(use=None, state=None, keyspaces=(PLAIN, SHARDED), **replicas):
    """Return one for a session of *use*; all keyspaces but SHARDED are on one server."""
    runtimes = {
        (keyspace.name, shard.name): SimpleNamespace(
            database=f"db_{keyspace.name}",
            dsn=SimpleNamespace(
                host="commerce" if keyspace is SHARDED else "plain", port=3306, unix_socket=None
            ),
        )
        for keyspace in keyspaces
        for shard in keyspace.shards
    }
    registry = Registry()
    catalog = Catalog(keyspaces, runtimes, registry, **replicas)  # type: ignore[arg-type]
    made = StatementCompiler(
        state or SessionState(int(MODERN), Settings()),
        catalog,
        registry,  # type: ignore[arg-type]
        StatementCache(),
        FixedClock(),
    )
    if use is not None:
        made.target.use(use)
    return made
