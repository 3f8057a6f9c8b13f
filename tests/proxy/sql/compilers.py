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


class FakeRuntime(SimpleNamespace):
    """A shard that is always available, without a server."""

    is_answering = True

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)


def catalog_of(keyspaces, **replicas):
    """Return a catalog of *keyspaces*; all but SHARDED are on one server."""
    runtimes = {
        (keyspace.name, shard.name): FakeRuntime(
            name=shard.name,
            database=f"db_{keyspace.name}",
            dsn=SimpleNamespace(
                host="commerce" if keyspace is SHARDED else "plain", port=3306, unix_socket=None
            ),
        )
        for keyspace in keyspaces
        for shard in keyspace.shards
    }
    return Catalog(keyspaces, runtimes, Registry(), **replicas)  # type: ignore[arg-type]


def compiler_over(catalog, registry, state=None):
    return StatementCompiler(
        state or SessionState(int(MODERN), Settings()),
        catalog,
        registry,
        StatementCache(),
        FixedClock(),
    )


def compiler(use=None, state=None, keyspaces=(PLAIN, SHARDED), **replicas):
    """Return a compiler for a session in *use*."""
    made = compiler_over(catalog_of(keyspaces, **replicas), Registry(), state)
    if use is not None:
        made.target.use(use)
    return made
