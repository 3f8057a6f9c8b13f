"""The statements that ask for a right, and what GRANT calls it."""

import ast

import pytest

from streamfrom.proxy.rights.questions import (
    acknowledge,
    browse,
    change,
    changes_rights,
    count,
    draw,
    take,
)
from tests.cases import cases
from tests.sim.memory_store import loaded, raw_table
from tests.sqlparse_ext.facts import shape


TABLE = loaded(raw_table("msg"))
ENDS = "UPDATE `msg` SET `time_next` = NULL, `time_acked` = NULL WHERE FALSE"
ALL = "`id`, `priority`, `epoch`, `time_next`, `time_acked`, `message`"


@pytest.mark.parametrize(
    ("right", "read", "written", "grants"),
    [
        (take(TABLE, ("message", "ID")), "SELECT `id`, `message` FROM `msg` LIMIT 0", ENDS,
         "SELECT (`id`, `message`), UPDATE (`time_next`, `time_acked`)"),
        (acknowledge(TABLE), "SELECT `id`, `time_acked` FROM `msg` LIMIT 0", ENDS,
         "SELECT (`id`, `time_acked`), UPDATE (`time_next`, `time_acked`)"),
        (count(TABLE), "SELECT `epoch`, `time_next` FROM `msg` LIMIT 0",
         "UPDATE `msg` SET `epoch` = NULL WHERE FALSE", "SELECT (`epoch`, `time_next`), UPDATE (`epoch`)"),
        (change("msg", removes=False), None, "UPDATE `msg` SET `time_next` = NULL WHERE FALSE", "UPDATE (`time_next`)"),
        (change("msg", removes=True), None, "DELETE FROM `msg` WHERE FALSE", "DELETE"),
        (browse(TABLE), f"SELECT {ALL} FROM `msg` LIMIT 0", None, f"SELECT ({ALL})"),
        (draw("a`b"), "SELECT `id`, `next_id`, `cache` FROM `a``b` LIMIT 0",
         "UPDATE `a``b` SET `next_id` = NULL WHERE FALSE", "SELECT (`id`, `next_id`, `cache`), UPDATE (`next_id`)"),
    ],
)  # fmt: skip
def test_each_act_asks_for_its_columns_alone_and_matches_no_row(right, read, written, grants):
    assert right.statements() == [sql.encode() for sql in (read, written) if sql]
    assert right.grants == grants


def test_names_that_are_no_text_are_asked_for_as_they_are():
    assert draw("\udcff").statements()[1].startswith(b"UPDATE `\xff` SET")


@cases(sql=str, expected=ast.literal_eval)
def test_statements_after_which_rights_are_asked_for_anew(sql, expected):
    assert changes_rights(shape(sql)) == expected
