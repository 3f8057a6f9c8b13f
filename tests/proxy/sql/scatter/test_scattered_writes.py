import pytest

from streamfrom.proxy.errors import BackendError
from streamfrom.proxy.sql.scatter.scattered_writes import MergedOk, run_everywhere, write_parts
from streamfrom.proxy.wire.commands import query
from streamfrom.proxy.wire.resultset import Ok as OkPacket, parse_text_row
from tests.proxy.fake_answers import Error, Ok, Rows
from tests.proxy.rigs import said
from tests.sqlparse_ext.facts import shape, statement


LOW, HIGH = "INSERT INTO t (id) VALUES (1)", "INSERT INTO t (id) VALUES (9)"
SHAPE = shape(LOW)
KEPT_BYTES = 1000
READ_ONLY = Error(1290, "running with the --read-only option")


@pytest.fixture
def session(both):
    return both


async def write(session):
    """Run a write that has a part on each shard."""
    parts = list(zip(session.shards, (query(LOW.encode()), query(HIGH.encode())), strict=True))
    return await write_parts(session.executor, session.state, "db", parts, SHAPE, KEPT_BYTES)


def ok(affected=0, insert_id=0, warnings=0, info=b""):
    return OkPacket(affected, insert_id, 2, warnings, info)


def test_counts_warnings_and_infos_are_summed_and_the_first_generated_id_counts():
    merged = MergedOk((ok(2, 0, 1), ok(3, 7, 2), ok(1, 9)))
    assert (merged.affected_rows, merged.last_insert_id, merged.warnings) == (6, 7, 3)
    assert MergedOk((ok(warnings=40_000), ok(warnings=40_000))).warnings == 0xFFFF
    first = ok(info=b"Records: 2  Duplicates: 0  Warnings: 1")
    second = ok(info=b"Records: 10  Duplicates: 1  Warnings: 0")
    assert MergedOk((first, second)).info == b"Records: 12  Duplicates: 1  Warnings: 1"
    assert MergedOk((first, ok())).info == b""
    # One row alone has no info of its own.
    assert MergedOk((ok(1), ok(2, warnings=1)), is_insert=True).info == (
        b"Records: 2  Duplicates: 1  Warnings: 1"
    )
    assert MergedOk(()).info == b""


DDL = "ALTER TABLE t ADD COLUMN b INT"


async def everywhere(session, sql=DDL):
    return await run_everywhere(
        session.executor, session.state, "db", session.shards, statement(sql)
    )


async def test_ddl_waits_for_a_shard_that_refuses_it_undone(server, other_server, session):
    other_server.once(DDL, READ_ONLY)
    assert len((await everywhere(session)).answers) == 2
    assert [said(each).count(DDL) for each in (server, other_server)] == [1, 2]


def warned(*messages):
    return Rows(
        ("Level", "Code", "Message"), tuple((b"Note", b"1050", text) for text in messages)
    )


async def test_what_every_shard_warns_of_is_one_warning(server, other_server, session):
    own = b"own", b"own"
    for each, messages in (server, (b"exists",)), (other_server, (b"exists", *own)):
        info = b"Records: 0  Duplicates: 0  Warnings: %d" % len(messages)
        each.once(DDL, Ok(warnings=len(messages), info=info))
        each.on("SHOW WARNINGS", warned(*messages))
    merged = await everywhere(session)
    assert (merged.warnings, merged.info) == (3, b"Records: 0  Duplicates: 0  Warnings: 3")
    told = [parse_text_row(row, 3)[2] for row in session.state.diagnostics.rows]
    assert told == [b"exists", *own]


async def test_the_warnings_before_a_refusal_are_left(server, other_server, session):
    server.once(DDL, Ok(warnings=1))
    other_server.once(DDL, Error(1060, "Duplicate column name 'b'", "42S21"))
    server.on("SHOW WARNINGS", warned(b"exists"))
    other_server.on("SHOW WARNINGS", warned(b"Duplicate column name 'b'"))
    with pytest.raises(BackendError):
        await everywhere(session)
    assert len(session.state.diagnostics.rows) == 2
    assert session.state.answered_at is None
