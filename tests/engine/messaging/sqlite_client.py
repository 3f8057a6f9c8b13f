"""Carries conversations out on SQLite, which understands simple ones as MySQL does, but for hints and locks."""

import re
import sqlite3

from streamfrom.engine.messaging.store.conversation import ServerRefused, StoreAnswer
from tests.engine.messaging.conversations import carry_out


_FOREIGN = re.compile(rb" FORCE INDEX \(`\w+`\)| FOR UPDATE SKIP LOCKED")
_CHECK_FAILED = 4025


class SqliteClient:
    """A database in memory; what violates a CHECK is refused as MariaDB refuses it."""

    def __init__(self):
        self.connection = sqlite3.connect(":memory:", isolation_level=None)

    def run(self, conversation):
        return carry_out(conversation, self._answer)

    def _answer(self, query):
        try:
            cursor = self.connection.execute(_FOREIGN.sub(b"", query.sql).decode())
        except sqlite3.IntegrityError as error:
            raise ServerRefused(_CHECK_FAILED, str(error)) from None
        rows = [
            tuple(None if one is None else str(one).encode() for one in row) for row in cursor
        ]
        return StoreAnswer([(row, b"") for row in rows], cursor.rowcount)
