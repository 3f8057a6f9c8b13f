"""Carries conversations out on a real server."""

from __future__ import annotations

from dataclasses import replace

from streamfrom.engine.messaging.store.conversation import StoreAnswer
from tests.engine.messaging.conversations import carry_out


class Client:
    """One connection that carries conversations out, giving values as the protocol's bytes."""

    def __init__(self, connection):
        self.connection = connection
        connection.decoders = {}
        self.sent: list[bytes] = []

    def execute(self, sql, values=0):
        self.sent.append(sql)
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            found = cursor.fetchall()
            if values is None:
                return StoreAnswer([(tuple(row), b"") for row in found], cursor.rowcount)
            rows = [(tuple(row[:values]), b"|".join(row[values:])) for row in found]
            return StoreAnswer(rows, cursor.rowcount)

    def run(self, conversation):
        return carry_out(conversation, self._answer)

    def _answer(self, query):
        ahead = tuple(self.execute(one.sql, one.values) for one in query.ahead)
        answer = replace(self.execute(query.sql, query.values), ahead=ahead)
        if query.commits:
            self.execute(b"COMMIT")
        return answer

    def rows(self, sql):
        return [row for row, _ in self.execute(sql, 99).rows]
