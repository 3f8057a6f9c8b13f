"""LOAD DATA LOCAL INFILE: the client's file goes to the server through the proxy."""

import pytest

from tests.fixtures.database_servers import execute
from tests.fixtures.running_proxy import RunningProxy
from tests.fixtures.streams import refused, run, value
from tests.integration.sessions.crowd import crowd


pytestmark = pytest.mark.db


class TestLoadData:
    @pytest.fixture
    def loaded(self, tight, servers):
        ((before,),) = execute(servers[1], "SELECT @@global.local_infile")
        execute(servers[1], "SET GLOBAL local_infile = ON")
        yield tight
        execute(servers[1], f"SET GLOBAL local_infile = {before}")

    def test_an_empty_file_and_a_missing_one_leave_the_connection_in_step(
        self, loaded, tmp_path
    ):
        (client,) = crowd(loaded, 1, local_infile=True)
        run(client, "CREATE TABLE filled (n INT)")
        file = tmp_path / "rows.csv"
        file.write_text("")
        load = f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE filled"
        run(client, load)
        file.unlink()
        code, _ = refused(client, load)
        assert code == 1017
        client.ping(reconnect=False)
        assert value(client, "SELECT COUNT(*) FROM filled") == 0

    def test_a_file_is_read_in_the_characters_that_the_database_has_now(self, loaded, tmp_path):
        file = tmp_path / "rows.csv"
        file.write_bytes("Ä".encode("latin1") + b"\n")
        before = crowd(loaded, 2)
        for client in before:  # each on a connection that has been in the database before
            run(client, "BEGIN")
            run(client, "SELECT 1")
        for client in before:
            run(client, "COMMIT")
        (first,) = crowd(loaded, 1)
        run(first, "ALTER DATABASE CHARACTER SET latin1")
        try:
            run(first, "CREATE TABLE filled (t VARCHAR(9) CHARACTER SET utf8mb4)")
            for _ in range(2):
                later = crowd(loaded, 2, local_infile=True)
                for client in later:
                    run(client, "BEGIN")
                    run(client, f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE filled")
                    assert value(client, "SELECT t FROM filled") == "Ä"
                for client in later:
                    # What pins resets the connection on its way to the next client.
                    run(client, "SET @pinned = 1")
                    client.close()
        finally:
            (client,) = crowd(loaded, 1)
            run(client, "ALTER DATABASE CHARACTER SET utf8mb4")

    def test_an_error_in_the_middle_is_the_servers(self, loaded, tmp_path):
        (client,) = crowd(loaded, 1, local_infile=True)
        run(client, "CREATE TABLE filled (n INT PRIMARY KEY)")
        file = tmp_path / "rows.csv"
        file.write_text("1\n" * 100_000)
        load = f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE nowhere"
        assert refused(client, load)[0] == 1146
        assert value(client, "SELECT COUNT(*) FROM filled") == 0

    def test_a_client_that_gives_no_files_is_refused(self, loaded: RunningProxy) -> None:
        (client,) = crowd(loaded, 1)
        run(client, "CREATE TABLE filled (n INT)")
        code, _ = refused(client, "LOAD DATA LOCAL INFILE '/x' INTO TABLE filled")
        assert code == (4166 if "MariaDB" in client.get_server_info() else 3948)
