"""What `streamfrom grants` prints of real servers, and what it refuses."""

from pathlib import Path

import pytest

from tests.fixtures.database_servers import execute, root
from tests.fixtures.fork_server import run_to_end
from tests.fixtures.running_proxy import keyspace_toml
from tests.fixtures.streams import message_table, refused, run


pytestmark = pytest.mark.db


def asked(folder: Path, toml: str, *argv: str) -> tuple[int, str, str]:
    path = folder / "asked.toml"
    path.write_text(toml)
    found = run_to_end(["grants", "--config", str(path), *argv], folder)
    return found.returncode, found.stdout, found.stderr


def test_every_queue_of_every_keyspace_at_every_shard(servers, sharded_database, tmp_path):
    odd, quoted = "it's `a` 日本 queue", "`it's ``a`` 日本 queue`"
    for server in servers:
        connection = root(server, database=sharded_database, autocommit=True)
        run(connection, message_table(quoted))
        run(connection, message_table("plain"))
        run(connection, "CREATE TABLE other (id INT)")
        connection.close()
    vschema = tmp_path / "vschema.json"
    vschema.write_text('{"sharded": true}')
    toml = keyspace_toml("shop.eu", servers, sharded_database, vschema)
    code, out, errors = asked(tmp_path, toml, "--for", "reader", "o'neil")
    assert (code, errors) == (0, "")
    lines = out.splitlines()
    assert len(lines) == 6
    host = "localhost" if "`@`localhost`" in out else "127.0.0.1" if "`127." in out else "%"
    for index, server in enumerate(servers):
        comment, first, second = lines[index * 3 : index * 3 + 3]
        assert comment.startswith(
            f"-- shop.eu/{('-80', '80-')[index]} at 127.0.0.1:{server.port}, "
        )
        # As it stands it makes the account, and the statements are its rights.
        execute(server, comment.partition(": ")[2].replace("<password>", "x"))
        try:
            for line in (first, second):
                assert line.endswith(f" TO `o'neil`@`{host}`;")
                execute(server, line.rstrip(";"))
            reader = root(server, user="o'neil", password="x", database=sharded_database)
            assert refused(reader, "SELECT * FROM other")[0] == 1142
            run(reader, f"SELECT * FROM {quoted}")
            reader.close()
        finally:
            execute(server, f"DROP USER `o'neil`@`{host}`")
    one = asked(tmp_path, toml, "--for", "reader", "--queue", f"shop.eu.{odd}", "o'neil")
    assert [line for line in one[1].splitlines() if not line.startswith("--")] == [
        lines[1],
        lines[4],
    ]


def test_what_cannot_be_printed_is_refused(server, database, tmp_path):
    execute(server, message_table("q"), database=database)
    execute(server, message_table("bad", more=",vt_max_rate=none"), database=database)
    toml = keyspace_toml(database, [server])
    # The operator makes it.
    code, out, _ = asked(
        tmp_path, toml, "--for", "operator", "--queue", f"{database}.none", "op"
    )
    assert code == 0
    assert f"GRANT SELECT, UPDATE, DELETE, CREATE, ALTER, DROP ON `{database}`.`none` TO" in out
    # One that cannot be used spares the others.
    code, out, _ = asked(tmp_path, toml, "--for", "reader", "r")
    assert code == 1
    assert "-- not usable: message table 'bad' failed to load: " in out
    assert f"GRANT SELECT ON `{database}`.`q` TO `r`@" in out
    nobody = toml.replace("root@", "nobody@")
    code, out, errors = asked(tmp_path, nobody, "--for", "reader", "r")
    assert (code, out) == (1, "")
    assert f"{database}/-: " in errors
    assert "Access denied" in errors


def test_commits_in_two_phases_need_a_right_of_their_own(server, database, tmp_path):
    execute(server, message_table("q"), database=database)
    toml = keyspace_toml(database, [server])
    twopc = f'[server]\ntransaction_mode = "twopc"\n{toml}'
    for job, more in (("reader", 0), ("producer", 2), ("consumer", 2), ("operator", 2)):
        _, plain, _ = asked(tmp_path, toml, "--for", job, "app")
        code, out, _ = asked(tmp_path, twopc, "--for", job, "app")
        assert code == 0
        assert out.startswith(plain)
        note_and_grant = out.removeprefix(plain).splitlines()
        assert len(note_and_grant) == more
        if more:
            assert note_and_grant[0].startswith("-- ")
            assert note_and_grant[1].startswith(
                "GRANT SELECT, INSERT ON streamfrom.decisions TO `app`@"
            )
