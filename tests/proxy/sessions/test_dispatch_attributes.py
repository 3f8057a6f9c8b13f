import pytest

from streamfrom.proxy.backends.session_variables import Settings
from streamfrom.proxy.errors import MalformedPacket
from streamfrom.proxy.execution.session_state import SessionState
from streamfrom.proxy.sessions.dispatch import take_attributes
from streamfrom.proxy.sql.prepared_statements import PreparedStatement, PreparedStatements
from streamfrom.proxy.wire.attribute_encoding import COUNT_FOLLOWS, Attribute, into_execute
from streamfrom.proxy.wire.binary_parameters import Parameter
from streamfrom.proxy.wire.commands import stmt_execute
from streamfrom.proxy.wire.constants import FieldType
from streamfrom.sqlparse_ext.cache import StatementCache
from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE


RED = (Attribute(b"colour", Parameter(FieldType.STRING, unsigned=False, data=b"red")),)
BODY = b"\0\1\x08\0" + (7).to_bytes(8, "little")


@pytest.fixture
def state():
    return SessionState(0, Settings())


@pytest.fixture
def taken(state):
    table = PreparedStatements()
    table.begin()
    table.add(PreparedStatement(StatementCache().get(b"SELECT ?", DEFAULT_MODE), None))
    return lambda payload: take_attributes(payload, state, table)


def test_an_execution_is_split_by_what_the_statement_takes_if_it_is_known(state, taken):
    known, unknown = (
        stmt_execute(number, COUNT_FOLLOWS, into_execute(BODY, 1, RED))[4:] for number in (1, 9)
    )
    assert taken(known) == stmt_execute(1, 0, BODY)[4:]
    assert state.attributes == RED
    assert taken(unknown) == unknown
    assert state.attributes == ()


@pytest.mark.parametrize("payload", [b"\x0e", b"", b"\x02plain", b"\x16SELECT 1"])
def test_no_other_command_has_any_and_what_makes_no_sense_is_refused(state, taken, payload):
    state.attributes = RED
    assert taken(payload) == payload
    assert state.attributes == ()
    with pytest.raises(MalformedPacket, match=r"^Malformed communication packet\.$"):
        taken(b"\x03\x05\x01")
