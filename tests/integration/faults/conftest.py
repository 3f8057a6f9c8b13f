"""A proxy with short waits before servers that are for breaking, and whole again afterwards."""

from collections.abc import Iterator

import pytest

from tests.fixtures.database_servers import execute
from tests.fixtures.running_proxy import MESSAGE_VSCHEMA, keyspace_toml, write_vschema
from tests.integration.faults.breaking import Servers


@pytest.fixture
def start(start_proxy, tmp_path, breakable_servers, breakable_database):
    vschema = write_vschema(tmp_path, MESSAGE_VSCHEMA)

    def start(port=0, user="root", **options):
        settings = {"stream_grace": 120, "failover_buffer": 120, "schema_reload": 1} | options
        lines = ["[server]", f'listen = "127.0.0.1:{port}"']
        lines += [f"{key} = {setting}" for key, setting in settings.items()]
        keyspace = keyspace_toml("commerce", breakable_servers, breakable_database, vschema)
        config = "\n".join([*lines, keyspace]).replace("//root@", f"//{user}@")
        return start_proxy(config)

    return start


@pytest.fixture(autouse=True)
def writable(breakable_servers: Servers) -> Iterator[None]:
    yield
    for server in breakable_servers:
        server.start()
        execute(server, "SET GLOBAL read_only = 0")
