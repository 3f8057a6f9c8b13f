"""VEXPLAIN PLAN: a statement is compiled and routed as if it ran, and its plan is the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from streamfrom.proxy.local_statements.vexplain import (
    COLUMNS,
    check_form,
    explain_filled,
    explain_plan,
    explain_stream,
)
from streamfrom.sqlparse_ext.reading.parser import explained_text


if TYPE_CHECKING:
    from streamfrom.proxy.sql.insert_columns import InsertColumns
    from streamfrom.proxy.sql.session_context import SessionContext
    from streamfrom.proxy.wire.resultset import ColumnDefinition
    from streamfrom.sqlparse_ext.statements import Statement


async def explanation(
    context: SessionContext, naming: InsertColumns, statement: Statement
) -> tuple[Sequence[ColumnDefinition], list[tuple[bytes | None, ...]]]:
    """Return the answer to a *statement* that `is_vexplain`.

    Raises what the statement in it would raise before it is sent anywhere.
    """
    check_form(statement.shape)
    compiler, target = context.compiler, context.compiler.target
    read, size = context.large_texts.read, len(statement.sql)
    text = await read(size, explained_text, statement)
    assert text is not None
    inner = await read(size, target.parse, text)
    compiler.check(inner)
    if inner.shape.stream is not None:
        view, table = target.stream_source(inner.shape.stream.table)
        table.project(inner.shape.stream.columns)
        return COLUMNS, [(explain_stream(view.keyspace, view.shards, table.name),)]
    place = await naming.named(await read(size, target.resolve, inner))
    view = place.view
    auto = compiler.sequence_of(view, place.statement.shape)
    if auto is not None:
        gaps = await read(size, compiler.gaps, view, place.statement, auto.column)
        if len(gaps):
            plan = explain_filled(place.statement, view.keyspace, auto.sequence, len(gaps))
            return COLUMNS, [(plan,)]
    step, route = await read(size, compiler.routed, view, place.statement)
    return COLUMNS, [(explain_plan(step.statement, view.keyspace, view.shards, route),)]
