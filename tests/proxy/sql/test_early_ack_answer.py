"""What the client of an ack is told that was not sent to a server for it."""

from types import SimpleNamespace
from typing import Any

from streamfrom.proxy.sql.early_ack_answer import answer_early


async def test_the_answer_is_that_of_a_server_and_so_are_row_count_and_warnings_after_it():
    told: list[dict[str, Any]] = []
    reply: Any = SimpleNamespace(ok=lambda **ok: told.append(ok))
    state: Any = SimpleNamespace(answered_at=object(), diagnostics=None)
    answer_early(reply, state, 2)
    assert told == [{"affected_rows": 2, "info": b"Rows matched: 2  Changed: 2  Warnings: 0"}]
    assert (state.answered_at, state.diagnostics.row_count) == (None, 2)
