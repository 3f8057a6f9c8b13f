import sys

import pytest
from hypothesis import given, strategies as st

from streamfrom.proxy.backends.session_variables import Settings, names
from streamfrom.proxy.errors import (
    ConnectionMemoryExceeded,
    TooManyStatements,
    UnknownStatement,
)
from streamfrom.proxy.memory import Memory
from streamfrom.proxy.sql.prepared_statements import (
    LAST_PREPARED,
    PreparedStatement,
    PreparedStatements,
)
from streamfrom.sqlparse_ext.cache import StatementCache
from streamfrom.sqlparse_ext.statements import OPAQUE
from tests.proxy.fake_client import parameter
from tests.proxy.wire.peers import write_parameters


def prepared(sql: str = "SELECT ?") -> PreparedStatement:
    return PreparedStatement(StatementCache().get(sql.encode()), None)


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


def test_what_the_server_converts_or_the_text_does_not_show_routes_nothing():
    statement = prepared("SELECT * FROM t WHERE id = ? AND a = ? AND b = ?")
    body = write_parameters([parameter(5), parameter(b"th\xe9"), parameter(b"tea")])
    statement.take_types(body)
    latin1 = names("latin1", "latin1_swedish_ci")
    bound = statement.bind(statement.original, body, latin1)
    assert bound.arguments == (5, OPAQUE, b"tea")
    utf8 = names("utf8mb4", "utf8mb4_bin")
    assert statement.bind(statement.original, body, utf8).arguments == (5, b"th\xe9", b"tea")
    statement = prepared("SELECT ?")
    statement.counted(2)
    body = write_parameters([parameter(5), parameter(6)])
    statement.take_types(body)
    assert statement.bind(statement.original, body, Settings()).arguments is None


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


STEPS = st.one_of(
    st.tuples(st.just("prepare"), st.integers(0, 3000)),
    st.tuples(st.just("long data"), st.integers(0, 4000)),
    st.tuples(st.just("execute"), st.just(0)),
    st.tuples(st.just("close"), st.just(0)),
    st.tuples(st.just("begin anew"), st.just(0)),
)


@given(st.lists(st.tuples(STEPS, st.integers(1, 8), st.integers(0, 2)), max_size=80))
def test_whatever_is_done_the_count_is_what_is_kept_and_ends_at_nothing(steps):
    memory = Memory(lambda: 20_000, ConnectionMemoryExceeded)
    table = PreparedStatements(memory)
    for (step, size), number, parameter_number in steps:
        found = table.get(number)
        if step == "prepare":
            table.begin()
            try:
                table.add(prepared(f"SELECT ?, ?, '{'x' * size}'"))
            except ConnectionMemoryExceeded:
                assert table.get(LAST_PREPARED) is None
        elif step == "begin anew":
            table.clear()
            assert memory.used_bytes == 0
        elif found is None:
            continue
        elif step == "long data":
            found.add_long_data(parameter_number, b"x" * size, 6000)
        elif step == "execute":
            found.drop_long_data()
        else:
            table.remove(found)
        kept = [each for number in range(1, 90) if (each := table.get(number)) is not None]
        assert memory.used_bytes >= sum(
            each.kept_bytes + sum(map(len, each.long_data.values())) for each in kept
        )
        assert 0 <= memory.used_bytes <= 20_000
    for number in range(1, 90):
        if (each := table.get(number)) is not None:
            table.remove(each)
    assert memory.used_bytes == 0
