"""What a shard is asked before a SELECT is merged; the shard is played here."""

from typing import Any

import pytest

from streamfrom.proxy.backends.answer_readers import BufferedAnswer
from streamfrom.proxy.errors import BackendError
from streamfrom.proxy.merge.row_merge import RowsQuery
from streamfrom.proxy.merge.shard_texts import Texts
from streamfrom.proxy.sql.scatter import merge_metadata as module
from streamfrom.proxy.wire.constants import BINARY_CHARSET, Capability, FieldType, Status
from streamfrom.proxy.wire.framing import frame
from streamfrom.proxy.wire.response import RowCollector
from streamfrom.proxy.wire.resultset import ColumnDefinition, err_packet
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.selects.select_reader import read_select
from tests.proxy.wire.peers import text_resultset
from tests.sqlparse_ext.facts import statement


CAPABILITIES = int(Capability.PROTOCOL_41 | Capability.DEPRECATE_EOF)
INT = ColumnDefinition("a", org_name="a", type=FieldType.LONGLONG, charset=BINARY_CHARSET)
TEXT = ColumnDefinition("s", org_name="s", type=FieldType.VAR_STRING, charset=45)
REFUSAL = frame(err_packet(1054, "42S22", "Unknown column", CAPABILITIES), 1)


def rows(columns, *found):
    return text_resultset(
        columns, found, capabilities=CAPABILITIES, status=Status.AUTOCOMMIT, warnings=0
    )


class Shard:
    """A connection whose server says what *says* returns of a question."""

    def __init__(self, says):
        self.trips: list[list[bytes]] = []
        self._says = says

    async def answers(self, packets):
        questions = [packet[5:] for packet in packets]
        self.trips.append(questions)
        found = []
        for question in questions:
            collector = RowCollector()
            found.append(BufferedAnswer(collector, collector.feed(self._says(question))))
        return found


async def asked(sql, says):
    """Return the shard, and what `ask_first` makes of *sql*."""
    shard, found = Shard(says), statement(sql)
    select = read_select(found.shape.template)
    assert select is not None
    texts = Texts(found, select)
    ask_first: Any = module.ask_first
    return shard, await ask_first(shard, texts, RowsQuery(texts, exact=False), found, None)


async def test_what_an_order_compares_is_asked_in_one_more_trip():
    def says(question):
        return (
            rows([INT, INT], [b"utf8mb4_bin", b"PAD SPACE"])
            if b"COLLATION" in question
            else rows([TEXT])
        )

    shard, (sql, _) = await asked("SELECT s FROM t ORDER BY s", says)
    assert len(shard.trips) == 2
    assert b"ORDER BY" in sql


async def test_the_servers_words_about_a_wrong_statement_are_raised():
    with pytest.raises(BackendError, match="Unknown column"):
        await asked("SELECT nope FROM t ORDER BY 1", lambda _: REFUSAL)


async def test_an_order_that_no_shard_can_tell_of_is_refused():
    def says(question):
        return REFUSAL if question.startswith(b"SELECT b FROM") else rows([INT])

    with pytest.raises(
        Unsupported, match="over several shards: a shard cannot sort or group by it"
    ):
        await asked("SELECT a FROM t ORDER BY b", says)
