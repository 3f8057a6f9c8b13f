import sys

import pytest

from streamfrom.proxy.errors import (
    ConnectionMemoryExceeded,
    TooManyStatements,
    UnknownStatement,
)
from streamfrom.proxy.memory import Memory
from streamfrom.proxy.sql.prepared_statements import PreparedStatement, PreparedStatements
from tests.sqlparse_ext.facts import statement


def prepared(sql: str = "SELECT ?") -> PreparedStatement:
    return PreparedStatement(statement(sql), None)


def test_a_session_has_a_limit_and_an_unknown_id_is_told_as_mysql_does():
    table = PreparedStatements(statements_max=3)
    with pytest.raises(UnknownStatement, match=r"\(9\) given to mysqld_stmt_execute") as error:
        table.find(9, "mysqld_stmt_execute")
    assert error.value.wire_code() == (1243, "HY000")
    for _ in range(3):
        table.begin()
        table.add(prepared())
    with pytest.raises(TooManyStatements):
        table.begin()
    table.remove(table.find(2, "x"))
    table.begin()
    table.clear()
    assert table.get(1) is None


def test_long_data_of_all_statements_together_is_bounded_and_told_at_the_execution():
    memory = Memory(lambda: 10_000, ConnectionMemoryExceeded)
    table = PreparedStatements(memory)
    for _ in range(2):
        table.begin()
        table.add(prepared())
    first, second = table.find(1, "x"), table.find(2, "x")
    first.add_long_data(0, b"x" * 4000, 1 << 20)
    held_bytes = memory.used_bytes
    second.add_long_data(0, b"x" * 1500, 1 << 20)
    piece = bytes(1500)
    references = sys.getrefcount(piece)
    second.add_long_data(0, piece, 1 << 20)
    assert isinstance(second.fault, ConnectionMemoryExceeded)
    assert sys.getrefcount(piece) == references, "the fault holds what it refused"
    assert (first.fault, bytes(first.long_data[0])) == (None, b"x" * 4000)
    # What is refused is given back at once.
    assert memory.used_bytes == held_bytes
