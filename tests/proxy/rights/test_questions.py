"""The statements that ask for a right, and what GRANT calls it."""

import ast

import pytest

from streamfrom.proxy.rights.questions import (
    REFUSALS,
    acknowledge,
    browse,
    change,
    changes_rights,
    count,
    draw,
    take,
)
from streamfrom.sqlparse_ext.cache import StatementCache
from tests.cases import cases
from tests.sim.memory_store import loaded, raw_table


TABLE = loaded(raw_table("msg"))
STATUS = b"`priority`, `epoch`, `time_next`, `time_acked`"


@pytest.mark.parametrize(
    ("right", "statements", "grants"),
    [
        (
            take(TABLE, ("message", "ID")),
            [
                b"SELECT `id`, `message` FROM `msg` LIMIT 0",
                b"UPDATE `msg` SET `time_next` = NULL, `time_acked` = NULL WHERE FALSE",
            ],
            "SELECT (`id`, `message`), UPDATE (`time_next`, `time_acked`)",
        ),
        (
            acknowledge(TABLE),
            [
                b"SELECT `id`, `time_acked` FROM `msg` LIMIT 0",
                b"UPDATE `msg` SET `time_next` = NULL, `time_acked` = NULL WHERE FALSE",
            ],
            "SELECT (`id`, `time_acked`), UPDATE (`time_next`, `time_acked`)",
        ),
        (
            count(TABLE),
            [
                b"SELECT `epoch`, `time_next` FROM `msg` LIMIT 0",
                b"UPDATE `msg` SET `epoch` = NULL WHERE FALSE",
            ],
            "SELECT (`epoch`, `time_next`), UPDATE (`epoch`)",
        ),
        (
            change("msg", removes=False),
            [b"UPDATE `msg` SET `time_next` = NULL WHERE FALSE"],
            "UPDATE (`time_next`)",
        ),
        (change("msg", removes=True), [b"DELETE FROM `msg` WHERE FALSE"], "DELETE"),
        (
            browse(TABLE),
            [b"SELECT `id`, " + STATUS + b", `message` FROM `msg` LIMIT 0"],
            "SELECT (`id`, `priority`, `epoch`, `time_next`, `time_acked`, `message`)",
        ),
        (
            draw("a`b"),
            [
                b"SELECT `id`, `next_id`, `cache` FROM `a``b` LIMIT 0",
                b"UPDATE `a``b` SET `next_id` = NULL WHERE FALSE",
            ],
            "SELECT (`id`, `next_id`, `cache`), UPDATE (`next_id`)",
        ),
    ],
)
def test_each_act_asks_for_its_columns_alone_and_matches_no_row(right, statements, grants):
    assert right.statements() == statements
    assert right.grants == grants


def test_names_that_are_no_text_are_asked_for_as_they_are():
    assert draw("\udcff").statements()[1].startswith(b"UPDATE `\xff` SET")


def test_a_server_that_is_read_only_full_or_locked_refuses_nobody():
    assert frozenset({1044, 1045, 1049, 1142, 1143}) == REFUSALS


@cases(sql=str, expected=ast.literal_eval)
def test_statements_after_which_rights_are_asked_for_anew(sql, expected):
    assert changes_rights(StatementCache().get(sql.encode()).shape) == expected
