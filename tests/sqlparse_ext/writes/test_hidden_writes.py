import ast

from streamfrom.sqlparse_ext.writes.hidden_writes import HiddenWrites, cascading
from tests.cases import cases
from tests.sqlparse_ext.facts import statement


SHOP = HiddenWrites(
    ("shop_db", "shop"), ("Outbox", "seen"), ("my_message",), ("enqueue", "tools")
)


def hides(sql: bytes, known: HiddenWrites = SHOP) -> bool:
    return known.by(statement(sql).shape)


@cases(sql=str.encode, hidden=str)
def test_a_statement_may_write_to_tables_that_it_does_not_name(sql, hidden):
    assert hides(sql) is bool(hidden)


@cases(sql=str.encode, is_hidden=ast.literal_eval)
def test_every_write_may_fire_a_trigger_where_triggers_cannot_be_seen(sql, is_hidden):
    assert hides(sql, HiddenWrites(hides_triggers=True)) is is_hidden


def test_cascades_are_followed_to_what_is_of_interest():
    parents = {
        "message": {"job"},
        "job": {"customer"},
        "other": {"customer2"},
        "customer": {"job"},
    }
    assert cascading(parents, {"message"}) == {"job", "customer"}
    assert cascading(parents, {"nothing"}) == set()
