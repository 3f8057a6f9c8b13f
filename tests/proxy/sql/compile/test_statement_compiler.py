import pytest

from streamfrom.engine.errors import TableLoadError
from tests.cases import cases
from tests.proxy.sql.compilers import compiler


def step(sql):
    made = compiler("plain")
    assert made.target.view is not None
    return made.compile(made.target.view, made.target.parse(sql.encode()))


@cases(sql=str)
def test_what_writes_no_message_is_left_as_it_is(sql):
    found = step(sql)
    assert (found.statement.sql.decode(), found.table, found.effect) == (sql, "", None)


@pytest.mark.parametrize(
    "sql", ["SELECT * FROM broken", "INSERT INTO t SELECT * FROM broken", "DELETE FROM broken"]
)
def test_a_table_that_failed_to_load_says_so_to_everybody_anew(sql):
    errors = []
    for _ in range(2):
        with pytest.raises(TableLoadError, match="vt_ack_wait is missing") as failed:
            step(sql)
        errors.append(failed.value)
    assert errors[0] is not errors[1]
