"""Carries conversations out on SQLite, which understands simple ones as MySQL does, but for hints and locks."""

import re
import sqlite3

from streamfrom.engine.messaging.store.conversation import ServerRefused, StoreAnswer


_FOREIGN = re.compile(rb" FORCE INDEX \(`\w+`\)| FOR UPDATE SKIP LOCKED")
_CHECK_FAILED = 4025


class SqliteClient:
    """A database in memory; what violates a CHECK is refused as MariaDB refuses it."""

    def __init__(self):
        self.connection = sqlite3.connect(":memory:", isolation_level=None)

    def run(self, conversation):
        try:
            query = next(conversation)
            while True:
                try:
                    answer = self._answer(query)
                except sqlite3.IntegrityError as error:
                    query = conversation.throw(ServerRefused(_CHECK_FAILED, str(error)))
                else:
                    query = conversation.send(answer)
        except StopIteration as stop:
            return stop.value

    def _answer(self, query):
        cursor = self.connection.execute(_FOREIGN.sub(b"", query.sql).decode())
        rows = [
            tuple(None if one is None else str(one).encode() for one in row) for row in cursor
        ]
        return StoreAnswer([(row, b"") for row in rows], cursor.rowcount)
