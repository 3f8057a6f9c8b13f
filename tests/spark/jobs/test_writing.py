"""What is sent to the server, and what its answers are counted as; the writing itself is the jobs' test."""

from decimal import Decimal

import pymysql
import pytest
from pymysql.constants import FIELD_TYPE

from streamfrom.spark.errors import JobError
from streamfrom.spark.jobs.writing import INSERT_BYTES, INSERT_ROWS, batches, insert


class Connection:
    """Answers each statement with the next of *answers*: rows changed, rows found or an error."""

    description = (("id", FIELD_TYPE.VAR_STRING),)

    def __init__(self, *answers):
        self.answers, self.statements, self.found = list(answers), [], []

    def cursor(self):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def execute(self, statement, values=None):
        self.statements.append(statement)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        self.found = answer
        return answer

    def fetchall(self):
        return self.found


def test_a_statement_takes_so_many_rows_or_bytes_and_a_row_of_any_size():
    assert [len(some) for some in batches([(1,)] * (2 * INSERT_ROWS + 1))] == [
        INSERT_ROWS
    ] * 2 + [1]
    large = [("x" * INSERT_BYTES,), (b"y",), ("z" * (INSERT_BYTES - 1),)]
    assert [len(some) for some in batches(large)] == [1, 2]
    assert list(batches([])) == []


def test_rows_that_are_there_already_are_counted_and_not_changed():
    connection = Connection(1, [("7",), ("8",)])
    assert insert(connection, "t", ["id", "body"], [(7, "a"), (8, "b")]) == 1
    assert connection.statements[0] == (
        "INSERT INTO `t` (`id`, `body`) VALUES (%s, %s), (%s, %s)"
        " ON DUPLICATE KEY UPDATE epoch = epoch"
    )


def test_a_message_that_another_unique_key_keeps_out_is_not_passed_over():
    with pytest.raises(JobError, match="1 of 2 messages were left out of t"):
        insert(Connection(1, [("7",)], []), "t", ["id"], [(7,), (8,)])


def test_rows_with_one_id_are_one_message():
    rows = [(7, "a"), (7, "a"), (8, "b")]
    assert insert(Connection(2, [("7",), ("8",)]), "t", ["id", "body"], rows) == 2


def test_ids_that_the_table_takes_for_one_are_not_passed_over():
    with pytest.raises(JobError, match=r"message 'K' was left out of t, .* its id for 'k'"):
        insert(Connection(0, [("k",)], [("k",)]), "t", ["id"], [("K",)])
    assert insert(Connection(0, [("k",)], [("k",)]), "t", ["id"], [("k ",)]) == 0


def test_an_id_that_a_server_writes_in_another_way_is_looked_for_by_itself():
    connection = Connection(0, [("1.50",)], [("1.50",)])
    connection.description = (("id", FIELD_TYPE.NEWDECIMAL),)
    assert insert(connection, "t", ["id"], [(Decimal("1.5"),)]) == 0


def test_a_lost_lock_is_tried_again_and_other_errors_are_not():
    deadlock = pymysql.err.OperationalError(1213, "Deadlock found")
    assert insert(Connection(deadlock, deadlock, 1), "t", ["id"], [(7,)]) == 1
    with pytest.raises(pymysql.err.OperationalError):
        insert(Connection(*[deadlock] * 9), "t", ["id"], [(7,)])
    gone = Connection(pymysql.err.OperationalError(2013, "Lost connection"))
    with pytest.raises(pymysql.err.OperationalError):
        insert(gone, "t", ["id"], [(7,)])
    assert len(gone.statements) == 1
