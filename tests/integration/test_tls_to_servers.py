"""TLS to the servers: MariaDB has none here, MySQL makes a certificate of its own."""

import pymysql
import pytest

from streamfrom.proxy.embedded.servers import Family
from tests.fixtures.database_servers import execute
from tests.fixtures.fork_server import run_to_end
from tests.fixtures.running_proxy import keyspace_toml
from tests.fixtures.streams import message_table, run
from tests.proxy.certificates import issued


@pytest.mark.parametrize("mode", ["preferred", "required"])
def test_a_server_without_tls_will_do_where_tls_is_only_preferred(
    server, database, start_proxy, consume, mode
):
    execute(server, message_table(poller_interval=1), database=database)
    address = f"127.0.0.1:{server.port}/{database}"
    config = keyspace_toml(database, [server])
    proxy = start_proxy(config.replace(address, f"{address}?ssl_mode={mode}"))
    if mode == "required" and server.family is Family.MARIADB:
        proxy.wait_for_log("shard not available")
        return
    assert "not available" not in proxy.log()
    stream = consume(proxy, database=database)
    producer = proxy.connect(database=database, autocommit=True)
    run(producer, "INSERT INTO my_message (id) VALUES (1)")
    assert stream.ids(1) == [1]
    # The proxy's own connections and those of its clients.
    plain = execute(
        server,
        "SELECT COUNT(*) FROM performance_schema.threads"
        f" WHERE processlist_db = '{database}' AND connection_type <> 'SSL/TLS'",
    )
    assert server.family is Family.MARIADB or plain == ((0,),)


@pytest.mark.parametrize("authority", ["another", "none"])
def test_what_is_wrong_with_the_authority_is_reported(
    server, database, start_proxy, tmp_path, authority
):
    if server.family is Family.MARIADB:
        pytest.skip("MariaDB has no TLS here")
    path = tmp_path / "ca.pem"
    path.write_bytes(issued("another").pem[0] if authority == "another" else b"")
    address = f"127.0.0.1:{server.port}/{database}"
    config = keyspace_toml(database, [server])
    proxy = start_proxy(
        "[server]\nfailover_buffer = 0\nlisten = '127.0.0.1:0'\n"
        + config.replace(address, f"{address}?ssl_ca={path}")
    )
    checked = run_to_end(["check", "--config", str(proxy.config)], tmp_path).stdout
    with pytest.raises(pymysql.MySQLError) as refused:
        run(proxy.connect(database=database), "SELECT 1")
    if authority == "another":
        assert "certificate verify failed" in checked
        assert "; ssl_ca of the address names the authority" in checked
        assert "TLS failed: self-signed certificate in certificate chain" in str(refused.value)
    else:
        for text in (checked, str(refused.value)):
            assert f"ssl_ca {path}: " in text
