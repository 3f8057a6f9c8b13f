"""Short ways to plan a SELECT and to play the shards that answer it."""

from streamfrom.proxy.merge.comparison import ColumnKey, Comparison
from streamfrom.proxy.merge.shard_texts import Texts
from streamfrom.proxy.wire.constants import BINARY_CHARSET, FieldType
from streamfrom.proxy.wire.resultset import (
    ColumnDefinition,
    column_definition,
    parse_text_row,
    text_row,
)
from streamfrom.sqlparse_ext.selects.inner_selects import read_derived
from streamfrom.sqlparse_ext.selects.select_reader import read_select
from tests.sqlparse_ext.facts import statement


def texts(sql):
    found = statement(sql)
    template = found.shape.template
    select = read_select(template, found.shape.tables) or read_derived(template)
    assert select is not None
    return Texts(found, select)


def number(name, decimals=0, kind=FieldType.NEWDECIMAL):
    return ColumnDefinition(
        name, org_name=name, type=kind, decimals=decimals, charset=BINARY_CHARSET
    )


def planned(plan, columns=(), table=(), strings=()):
    """Describe and resolve *plan*: every expression is a number, unless *strings* names it."""
    plan.describe(columns, frozenset(table))
    keys = [
        ColumnKey(Comparison.STRING, b"0020")
        if text.decode() in strings
        else ColumnKey(Comparison.NUMBER)
        for text, _ in plan.expressions
    ]
    plan.resolve(keys, [number(text.decode()) for text, _ in plan.expressions])
    return plan


def answer(merge, *shards):
    """Feed each shard's rows, values as text, and return the client's rows."""
    for index, rows in enumerate(shards):
        merge.feed(index, [text_row([_bytes(value) for value in row]) for row in rows])
        merge.end(index)
    found = []
    while not merge.is_complete:
        found += merge.next_rows()
        assert merge.has_more or merge.is_complete, "it would wait for news that never come"
    return [tuple(_text(value) for value in parse_text_row(row)) for row in found]


def definitions(*columns):
    return [column_definition(column) for column in columns]


def _bytes(value):
    return None if value is None else str(value).encode()


def _text(value):
    return None if value is None else value.decode()
