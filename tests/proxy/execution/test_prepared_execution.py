from types import SimpleNamespace

import pytest

from streamfrom.proxy.backends.backend import Backend
from streamfrom.proxy.backends.statement_ids import StatementIds, StatementKey
from streamfrom.proxy.errors import NoOpenCursor
from streamfrom.proxy.execution.prepared_execution import CursorExecution, Execution
from streamfrom.proxy.wire.attribute_encoding import COUNT_FOLLOWS, Attribute, into_execute
from streamfrom.proxy.wire.binary_parameters import Parameter
from streamfrom.proxy.wire.commands import (
    stmt_fetch,
)
from streamfrom.proxy.wire.constants import FieldType
from streamfrom.proxy.wire.prepare_response import PrepareReader
from tests.proxy.rigs import RecordingLink


KEY = StatementKey(b"SELECT ?", "db", ())


class Connection(Backend):
    """A backend connection that prepares at once, with ids from 1."""

    def __init__(self):
        self.statements = StatementIds()
        self.client = RecordingLink()
        self.link = self.client.link
        self.last_id = 0
        self.takes_attributes = False
        self.owner = None

    async def prepare(self, key):
        answer = await self.prepare_apart(key.text)
        self.statements.put(key, answer.statement_id)
        return answer

    async def prepare_apart(self, sql):
        self.last_id += 1
        answer = PrepareReader()
        answer.statement_id = self.last_id
        return answer


@pytest.fixture
def backend():
    return Connection()


async def test_a_server_of_attributes_gets_the_owners_behind_the_parameters(backend):
    backend.takes_attributes = True
    attribute = Attribute(b"n", Parameter(FieldType.VAR_STRING, unsigned=False, data=b"v"))
    body = b"\0\1\x08\0" + (7).to_bytes(8, "little")
    for make in (lambda: Execution(KEY, body, 1), lambda: CursorExecution(KEY.text, body, 1)):
        execution = make()
        await execution.prepare_on(backend)
        for attributes in ((), (attribute,)):
            backend.owner = SimpleNamespace(attributes=attributes)
            packet = execution.packet_for(backend)
            assert packet is not None
            assert packet[9] & COUNT_FOLLOWS
            assert packet[14:] == into_execute(body, 1, attributes)


async def test_only_the_connection_of_a_cursor_has_its_rows(backend):
    execution = CursorExecution(KEY.text, b"", 0)
    with pytest.raises(NoOpenCursor):
        execution.fetch(7, 10)
    await execution.prepare_on(backend)
    fetch = execution.fetch(7, 10)
    assert fetch.packet_for(backend) == stmt_fetch(1, 10)
    other = Connection()
    assert fetch.packet_for(other) is None
    with pytest.raises(NoOpenCursor, match="7"):
        await fetch.prepare_on(other)
    backend.link.close()
    with pytest.raises(NoOpenCursor):
        execution.fetch(7, 10)
    execution.close()
    assert not backend.client.written
