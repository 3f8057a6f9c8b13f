"""An ack that is answered before it is written, as `vt_ack = early` asks: which one may be, and what the client is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamfrom.proxy.execution.diagnostics_queries import diagnostics_of_several
from streamfrom.sqlparse_ext.writes.early_ack import early_moment


if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.execution.executor import Executor
    from streamfrom.proxy.execution.reply import Reply
    from streamfrom.proxy.execution.session_state import SessionState
    from streamfrom.proxy.sql.statement_compiler import CompiledStatement
    from streamfrom.sqlparse_ext.statements import Value


def early_ack(
    step: CompiledStatement, shard: ShardRuntime, executor: Executor
) -> tuple[Sequence[Value], int] | None:
    """Return the ids and ``time_acked`` of an ack that may be answered early; None for any other statement."""
    effect = step.effect
    if effect is None or effect.ids is None or not executor.commits_at_once(shard):
        return None
    acked_ns = step.acked_ns
    if acked_ns is None:
        acked_ns = early_moment(step.statement, effect)
    return None if acked_ns is None else (effect.ids, acked_ns)


def answer_early(reply: Reply, state: SessionState, rows: int) -> None:
    """Tell the client that *rows* messages are acknowledged, as the server would."""
    diagnostics = diagnostics_of_several()
    diagnostics.row_count = rows
    state.answered_at, state.diagnostics = None, diagnostics
    info = b"Rows matched: %d  Changed: %d  Warnings: 0" % (rows, rows)
    reply.ok(affected_rows=rows, info=info)
