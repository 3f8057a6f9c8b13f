"""VEXPLAIN: the plan of a statement, which is compiled and routed as if it ran, or what each shard was sent for it, as in Vitess.

For VEXPLAIN QUERIES the statement runs. Its own rows and OK are dropped as they come. The proxy's own questions are not
listed: BEGIN and COMMIT, savepoints, column definitions, warnings.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, cast

from streamfrom.proxy.execution.reply import Reply
from streamfrom.proxy.local_statements.vexplain import (
    COLUMNS,
    QUERIES_COLUMNS,
    check_form,
    explain_filled,
    explain_plan,
    explain_stream,
)
from streamfrom.proxy.sql.insert_columns import with_named_columns
from streamfrom.proxy.wire.constants import HEADER_BYTES, Command
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.reading.parser import explained_text
from streamfrom.sqlparse_ext.statements import Kind, Statement
from streamfrom.sqlparse_ext.text.chunks import LARGE_TEXT_BYTES


if TYPE_CHECKING:
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.execution.session_state import SessionState
    from streamfrom.proxy.net import Link
    from streamfrom.proxy.sql.session_context import SessionContext
    from streamfrom.proxy.wire.response import PassThrough, Resequencer
    from streamfrom.proxy.wire.resultset import Table


_LISTED_BYTES_MAX: Final = 8 << 20


async def explanation(context: SessionContext, statement: Statement) -> Table:
    """Return the answer to a *statement* that `is_vexplain`. Raises what the statement in it would before it is sent."""
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
    place = await with_named_columns(context, await read(size, target.resolve, inner))
    view = place.view
    auto = compiler.sequence_of(view, place.statement.shape)
    if auto is not None:
        gaps = await read(size, compiler.gaps, view, place.statement, auto.column)
        if len(gaps):
            plan = explain_filled(place.statement, view.keyspace, auto.sequence, len(gaps))
            return COLUMNS, [(plan,)]
    step, route = await read(size, compiler.routed, view, place.statement)
    return COLUMNS, [(explain_plan(step.statement, view.keyspace, view.shards, route),)]


async def queries_sent(
    context: SessionContext,
    statement: Statement,
    run_one: Callable[[Statement, Reply], Awaitable[bool]],
) -> Table:
    """Run the statement in a VEXPLAIN QUERIES by *run_one*, and return the answer. Raises as that, and Unsupported."""
    check_form(statement.shape)
    compiler, connections = context.compiler, context.connections
    if len(statement.sql) > LARGE_TEXT_BYTES:
        raise Unsupported(f"VEXPLAIN QUERIES of a text of more than {LARGE_TEXT_BYTES} bytes")
    text = explained_text(statement)
    assert text is not None
    inner = compiler.target.parse(text)
    compiler.check(inner)
    if inner.shape.kind is Kind.STREAM:
        raise Unsupported(
            "VEXPLAIN QUERIES of a STREAM, which has no end; VEXPLAIN PLAN shows where it runs"
        )
    reply = _DiscardedReply(context.state)
    sent: list[tuple[ShardRuntime, bytes]] = []
    connections.sent = sent
    try:
        if not await run_one(inner, reply):
            assert reply.last.error is not None, "a shard has answered with an error"
            raise reply.last.error.exception()
    finally:
        connections.sent = None
    if sum(len(packet) for _, packet in sent) > _LISTED_BYTES_MAX:
        raise Unsupported(
            f"listing more than {_LISTED_BYTES_MAX} bytes of queries; the statement has run"
        )
    # Behind the header stand the code of the command and the text.
    texts = [
        (shard, packet[HEADER_BYTES + 1 :])
        for shard, packet in sent
        if packet[HEADER_BYTES] == Command.QUERY
    ]
    return QUERIES_COLUMNS, [
        (b"%d" % number, shard.keyspace.encode(), shard.name.encode(), text)
        for number, (shard, text) in enumerate(texts)
    ]


class _Nowhere:
    """A link in place of the client's, which takes everything at once and drops it."""

    blocked = False

    def write(self, _data: bytes) -> None:
        """Drop *data*."""

    def close(self) -> None:
        """Do nothing: the client's own link stays open."""


class _DiscardedReply(Reply):
    """An answer that is not read.

    Attributes:
        last: the reader of the last answer of a shard.
    """

    __slots__ = ("last",)

    def __init__(self, state: SessionState) -> None:
        super().__init__(cast("Link", _Nowhere()), state, 1)
        self.last: PassThrough | Resequencer

    def scanner(self, **options: Any) -> PassThrough | Resequencer:
        """Return a reader as any reply does, and remember it."""
        self.last = super().scanner(**options)
        return self.last
