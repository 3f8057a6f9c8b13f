from streamfrom.proxy.local_statements.show_processlist import Process, columns, rows
from tests.sqlparse_ext.facts import shape


BUSY = Process(
    9, "ann", "10.0.0.1", "commerce", "Query", 3, "executing", b"SELECT " + b"x" * 200
)
IDLE = Process(7, "ann", "localhost", None, "Sleep", 12, "", None)


def test_clients_come_in_order_of_their_ids_and_bytes_that_are_no_text_as_such():
    idle, busy = rows(shape("SHOW PROCESSLIST"), [BUSY, IDLE], on_mariadb=False)
    assert idle == (b"7", b"ann", b"localhost", None, b"Sleep", b"12", b"", None)
    assert busy[:7] == (b"9", b"ann", b"10.0.0.1", b"commerce", b"Query", b"3", b"executing")
    assert len(idle) == len(columns(on_mariadb=False))
    odd = Process(1, "a", "h", None, "Query", 0, "executing", b"SELECT '\xff'")
    assert (
        rows(shape("SHOW PROCESSLIST"), [odd], on_mariadb=False)[0][7]
        == "SELECT '\N{REPLACEMENT CHARACTER}'".encode()
    )
