"""An ack that is answered before it is written, as `vt_ack = early` asks: what the client is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamfrom.proxy.execution.diagnostics_queries import diagnostics_of_several


if TYPE_CHECKING:
    from streamfrom.proxy.execution.reply import Reply
    from streamfrom.proxy.execution.session_state import SessionState


def answer_early(reply: Reply, state: SessionState, rows: int) -> None:
    """Tell the client that *rows* messages are acknowledged, as the server would."""
    diagnostics = diagnostics_of_several()
    diagnostics.row_count = rows
    state.answered_at, state.diagnostics = None, diagnostics
    info = b"Rows matched: %d  Changed: %d  Warnings: 0" % (rows, rows)
    reply.ok(affected_rows=rows, info=info)
