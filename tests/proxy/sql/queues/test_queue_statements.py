"""Queue statements are definitions of a table, and run on the connection of the session's account."""

import pytest

from streamfrom.proxy.embedded.servers import Family
from tests.fixtures.database_servers import ServerPool, execute, fresh_database
from tests.fixtures.running_proxy import StartProxy, keyspace_toml
from tests.fixtures.streams import message_table, refused, rows, run


pytestmark = pytest.mark.db
MAKES = (
    "CREATE QUEUE q (a INT)",
    "ALTER QUEUE msg SET (ack_wait = 3)",
    "ALTER QUEUE msg PAUSE",
    "DROP QUEUE msg",
    "CREATE QUEUE beside.q (a INT)",
)


def test_who_may_not_define_makes_no_queue(
    server_pool: ServerPool, family: Family, start_proxy: StartProxy
) -> None:
    real = server_pool.server(family, 0)
    for database in fresh_database(real):
        execute(real, message_table("msg"), database=database)
        name = f"reader_{database}"
        execute(real, f"CREATE USER {name}@'%' IDENTIFIED BY 'x'")
        execute(real, f"GRANT SELECT ON {database}.* TO {name}@'%'")
        users = f'[[users]]\nname = "{name}"\npassword = "x"\n'
        proxy = start_proxy(users + keyspace_toml(database, [real]))
        reader = proxy.connect(user=name, password="x", database=database, autocommit=True)
        before = execute(real, "SHOW CREATE TABLE msg", database=database)
        for sql in MAKES:
            assert refused(reader, sql)[0] in (1044, 1142), sql
        assert execute(real, "SHOW CREATE TABLE msg", database=database) == before
        execute(real, f"GRANT CREATE, ALTER, DROP ON {database}.* TO {name}@'%'")
        reader.close()
        owner = proxy.connect(user=name, password="x", database=database, autocommit=True)
        for sql in MAKES[:-1]:
            run(owner, sql)
        assert rows(owner, "SHOW QUEUES") == (("q",),)
        proxy.close()
        execute(real, f"DROP USER {name}@'%'")
