import time
from dataclasses import replace

import pytest
import structlog

from streamfrom.engine.messaging.table.message_ids import EPOCH_NS, first_id
from streamfrom.engine.messaging.upkeep.partitions import SPANS
from streamfrom.proxy.commands import check as module
from streamfrom.proxy.commands.check import TIMES, check
from streamfrom.proxy.config.file import KeyspaceConfig, TlsSettings, TransactionMode
from streamfrom.proxy.wire.constants import FieldType
from tests.proxy.certificates import write_certificate
from tests.proxy.fake_answers import Error, Rows
from tests.proxy.fake_server import MARIADB
from tests.proxy.rigs import add_decisions, add_message_table, config_of, shard_config
from tests.sim.memory_store import DEFAULT_COMMENT


@pytest.fixture
def report(capsys):
    """Run the check and return its exit code and its lines, without the summary at their end."""

    async def report(config):
        with structlog.testing.capture_logs():
            code = await check(config)
        *lines, summary = capsys.readouterr().out.splitlines()
        assert summary.startswith("summary  ")
        return code, lines

    return report


def times(winter: int = 1767225600, summer: int = 1782864000, ahead_s: float = 0) -> Rows:
    """Return what a server in UTC says of TIMES."""
    row = (winter, summer, "zone", time.time() + ahead_s)
    return Rows(
        ("winter", "summer", "zone", "now"), (tuple(str(each).encode() for each in row),)
    )


@pytest.fixture(autouse=True)
def roomy(server, other_server):
    """Both servers allow more connections than any test here asks for."""
    for each in (server, other_server):
        each.on("@@max_connections", Rows((str(each.port), "1", "d", "1000")))
        each.on(TIMES, times())
        each.on("FROM information_schema.processlist", Rows(("state", "time")))


@pytest.mark.parametrize(
    ("refusal", "fix"),
    [
        (Error(1045, "Access denied for user 'x'@'h' (using password: YES)"), "check user and password"),
        (Error(1044, "Access denied for user 'x'@'h' to database 'plain'"), "the login is good"),
        (Error(1049, "Unknown database 'plain'"), "the login is good"),
        (Error(3118, "Access denied for user 'x'@'h'. Account is locked."), "ALTER USER … ACCOUNT UNLOCK"),
        (Error(3159, "Connections using insecure transport are prohibited while --require_secure_transport=ON."), "add ?ssl_mode=required"),
    ],
)  # fmt: skip
async def test_a_login_that_is_refused_has_the_address_and_the_likely_cause(
    server, report, refusal, fix
):
    server.refusal = refusal
    code, (_, line) = await report(config_of(server))
    assert code == 1
    assert f"127.0.0.1:{server.port}" in line
    assert f": {refusal.message}; {fix}" in line


@pytest.mark.parametrize(
    ("version", "is_too_old"),
    [("5.7.44-log", True), ("8.0.11", False), ("10.5.29-MariaDB", True), ("10.6.0-MariaDB", False)],
)  # fmt: skip
async def test_a_server_without_skip_locked_is_an_error_with_the_first_that_has_it(
    server, report, version, is_too_old
):
    server.version = version
    code, lines = await report(config_of(server))
    told = "; use MySQL 8.4 or newer, or MariaDB 10.6 or newer" in "".join(lines)
    assert (code, told) == (int(is_too_old), is_too_old)


async def test_a_vschema_that_cannot_be_read_is_a_fault_of_its_keyspace(server, report):
    config = config_of(server)
    broken = KeyspaceConfig("broken", '{"sharded": 5}', config.keyspaces[0].shards)
    config = type(config)(config.server, (), (broken, *config.keyspaces))
    code, lines = await report(config)
    assert code == 1
    assert lines[1].startswith("error    broken: vschema: ")
    assert any(line.startswith("ok       plain/-") for line in lines)


async def test_a_key_of_a_vschema_that_means_nothing_is_a_warning(server, report, tmp_path):
    config = config_of(server)
    own = replace(config.keyspaces[0], vschema_text='{"tablez": {}}', vschema_path=tmp_path)
    code, lines = await report(replace(config, keyspaces=(own,)))
    assert code == 0
    assert (
        f"warning  plain: vschema {tmp_path}: tablez: unknown key; did you mean tables?"
        in lines
    )


TEXT, NUMBER = FieldType.VAR_STRING, FieldType.LONGLONG
DENIED = Error(1142, "command denied to user 'u'", "42000")
DAY = SPANS["DAY"]
PARTITIONED = (
    (b"p20260101", b"RANGE", b"`id`", b"%d" % first_id(EPOCH_NS + DAY.length_ns)),
    (b"p20260102", b"RANGE", b"`id`", b"%d" % first_id(EPOCH_NS + 2 * DAY.length_ns)),
    (b"prest", b"RANGE", b"`id`", b"MAXVALUE"),
)
PARTITION_PROBE = module.PARTITION_PROBE.format(table="`msg`")
GRAVE = {"comment": f"{DEFAULT_COMMENT},vt_max_attempts=3,vt_dead_letter=grave"}
TWOPC = TransactionMode.TWOPC


def partitions(unacked):
    """Return the answers of a server whose table has partitions of a day, with so many rows unacked."""
    counts = Rows(tuple("abc"), ((b"7", unacked, b"0"),), types=(NUMBER,) * 3)
    return {
        "information_schema.partitions": Rows(tuple("abcd"), PARTITIONED, types=(TEXT,) * 4),
        "PARTITION (`prest`)": counts,
    }


def dead_letters(*row):
    """Return the answer of a server about the table of the dead letters."""
    return {
        "table_name = 'grave'": Rows(("column_name", "table_comment"), (row,) if row else ())
    }


def foreign_keys(native):
    return {
        "innodb_native_foreign_keys": Rows(
            ("a", "b"), ((b"innodb_native_foreign_keys", native),)
        ),
        "referential_constraints": Rows(("table_name",), ((b"child",),)),
    }


@pytest.mark.parametrize(
    ("table", "answers", "says"),
    [
        ({}, {"information_schema.tables": Error(1227, "Access denied; you need PROCESS")}, ["error    plain/-: Access denied; you need PROCESS"]),
        ({}, {module.PROBES[1].format(table="`msg`"): Error(1665, "BINLOG_FORMAT = STATEMENT")},
         ["error    plain/-.msg: BINLOG_FORMAT = STATEMENT; SET GLOBAL binlog_format = 'ROW' there"]),
        *(({}, {probe.format(table="`msg`"): DENIED}, ["error    plain/-.msg: command denied to user 'u'"]) for probe in module.PROBES),
        ({"comment": f"{DEFAULT_COMMENT},vt_color=blue", "indexes": ()}, {}, ["vt_color", "ADD INDEX poller_idx"]),
        ({"engine": "Aria"}, {}, ["error    plain/-.msg: its engine Aria has no transactions", "; run: ALTER TABLE `msg` ENGINE = InnoDB"]),
        # partitions
        ({"options": "partitioned"}, partitions(b"3") | {PARTITION_PROBE: Error(1507, "Error in list of partitions")},
         ["warning  plain/-.msg: partition p20260101 is held back: 3 messages not acknowledged", "partition prest is held back: 7 messages",
          "long transaction is open: ALTER TABLE `msg` REORGANIZE PARTITION `prest` INTO ("]),
        ({"options": "partitioned"}, partitions(b"0") | {PARTITION_PROBE: DENIED},
         ["error    plain/-.msg: its partitions can be neither made nor dropped: command denied to user 'u'; grant ALTER, CREATE, DROP and LOCK"]),
        ({"options": "partitioned"}, {"information_schema.partitions": Rows(tuple("abcd"))}, ["msg: partitioned otherwise than by PARTITION BY"]),
        ({"options": "partitioned"}, {"information_schema.partitions": DENIED}, ["error    plain/-.msg: partitions: command denied"]),
        # dead letters
        (GRAVE, dead_letters(), ["error    plain/-.msg: vt_dead_letter: there is no table grave"]),
        (GRAVE, dead_letters(b"dead_time", b"vt_dead_letters_of=msg"), ["error    plain/-.msg: vt_dead_letter: grave has no column of a"]),
        (GRAVE, dead_letters(b"id", b"vt_dead_letters_of=another"), ["error    plain/-.msg: ", "the comment of grave does not consent to it: ALTER QUEUE msg SET"]),
        (GRAVE, {"table_name = 'grave'": DENIED}, ["error    plain/-.msg: vt_dead_letter: command denied to user 'u'"]),
        # the server
        ({}, {"FROM information_schema.processlist": Rows(("state", "time"), ((b"Commit", b"42"),))}, ["error    plain/-: a commit has waited for 42 s (Commit); make room"]),
        ({}, foreign_keys(b"OFF"), ["warning  plain/-.child: ", "innodb_native_foreign_keys = ON"]),
        ({}, {"user_variables_by_thread": DENIED}, ["info ", "GRANT SELECT ON performance_schema.user_variables_by_thread"]),
        ({}, {"SHOW GRANTS": Rows(("grants",), ((b"GRANT SELECT ON `db`.* TO `root`@`%`",),))}, ["cannot see triggers", "GRANT TRIGGER ON"]),
        ({}, {"table_comment, engine": Rows(tuple("abc"), ((b"odd", b"vitess_mesage,vt_ack_wait=30", b"InnoDB"), (b"msg", b"", b"InnoDB")), types=(TEXT,) * 3)},
         ["warning  plain/-.odd: an ordinary table, though its comment looks like a message table's: 'vitess_mesage,vt_ack_wait=30'; write"]),
    ],
)  # fmt: skip
async def test_what_is_wrong_is_a_finding(server, report, table, answers, says):
    add_message_table(server, **table)
    for text, answer in answers.items():
        server.on(text, answer)
    code, lines = await report(config_of(server))
    assert [part for part in says if not any(part in line for line in lines)] == []
    assert code == says[0].startswith("error")


@pytest.mark.parametrize(
    ("version", "answers", "word"),
    [
        ("8.4.3", foreign_keys(b"ON"), "child"),
        (MARIADB, {"user_variables_by_thread": DENIED}, "user_var"),
    ],
)
async def test_what_does_no_harm_is_no_finding(server, report, version, answers, word):
    server.version = version
    for text, answer in answers.items():
        server.on(text, answer)
    assert word not in str(await report(config_of(server)))


@pytest.mark.parametrize(
    "says",
    [
        "error    commerce/-80.unknown: not in the vschema of sharded keyspace commerce; add it there, with its column_vindexes",
        "warning  commerce/-80.named: its primary vindex is not on id",
    ],
)
async def test_a_table_that_is_not_routed_by_its_id_is_a_finding(
    server, other_server, report, says
):
    name = says.partition(":")[0].rpartition(".")[2]
    for each in (server, other_server):
        add_message_table(each, name=name)
    code, lines = await report(config_of(server, other_server))
    assert code == says.startswith("error")
    assert any(line.startswith(says) for line in lines)


async def test_commits_in_two_phases_are_looked_at_where_they_are_asked_for(server, report):
    add_decisions(server, "a" * 16)
    code, lines = await report(config_of(server, transaction_mode=TWOPC))
    assert code == 0
    assert "ok       plain/-: table streamfrom.decisions, for commits in two phases" in lines
    _, lines = await report(config_of(server))
    assert "decisions" not in str(lines)


@pytest.mark.parametrize(
    ("text", "answer", "level", "start", "end"),
    [
        ("SELECT branches FROM", Error(1146, "doesn't exist"), "warning", "no table streamfrom.decisions with this shard yet", ""),
        ("SELECT branches", DENIED, "error", "commits in two phases: command denied to user 'u'", "'u'"),
        ("INSERT INTO streamfrom", DENIED, "error", "commits in two phases: command denied to user 'u'", "'u'"),
        ("DELETE FROM s", DENIED, "error", "commits in two phases: command denied to user 'u'", "'u'"),
        ("XA RECOVER", Error(1401, "XAER_RMERR: Fatal error"), "error", "", "; run: GRANT XA_RECOVER_ADMIN ON *.* TO the account root"),
    ],
)  # fmt: skip
async def test_what_commits_in_two_phases_lack_is_told(
    server, report, text, answer, level, start, end
):
    add_decisions(server, "a" * 16)
    server.on(text, answer)
    code, lines = await report(config_of(server, transaction_mode=TWOPC))
    assert code == (level == "error")
    (line,) = (line for line in lines if line.startswith(level))
    assert line.startswith(f"{level:8} plain/-: {start}")
    assert line.endswith(end)
    assert not any(text.startswith("CREATE") for text in server.controlled)


async def test_a_sequence_that_nobody_finds_is_a_fault_of_the_table_that_wants_it(
    server, report
):
    config = config_of(server)
    table = '{"auto_increment": {"column": "id", "sequence": "nowhere.seq"}}'
    shards = config.keyspaces[0].shards
    keyspace = KeyspaceConfig("plain", f'{{"tables": {{"t": {table}}}}}', shards)
    code, lines = await report(type(config)(config.server, (), (keyspace,)))
    assert code == 1
    assert lines[1].startswith("error    plain.t: cannot resolve sequence nowhere.seq: ")


async def test_a_replica_that_cannot_be_read_from_is_a_warning(server, other_server, report):
    config = config_of(server)
    (shard,) = config.keyspaces[0].shards
    shard = replace(shard, replicas=(shard_config(other_server).primary,))
    config = type(config)(config.server, (), (KeyspaceConfig("plain", None, (shard,)),))
    other_server.stop()
    code, lines = await report(config)
    assert code == 0
    assert lines[-1].startswith("warning  plain/-: replica: mysql://root@127.0.0.1:")
    assert lines[-1].count(f"127.0.0.1:{other_server.port}") == 1


async def test_every_reason_why_a_table_does_not_load_is_told_with_the_keys_that_are_unknown(
    server, report
):
    add_message_table(server, comment="vitess_message,vt_ack_wiat=30,vt_purge_after=0")
    code, lines = await report(config_of(server))
    assert code == 1
    about = [line for line in lines if ".msg: " in line]
    assert about[0] == (
        "error    plain/-.msg: message table 'msg' failed to load:"
        " attribute vt_ack_wait not specified for message table"
    )
    assert [line.split()[0] for line in about] == ["error"] * 5 + ["warning"]
    assert about[-1] == (
        "warning  plain/-.msg: unknown key 'vt_ack_wiat' in the comment is ignored;"
        " did you mean vt_ack_wait?"
    )


async def test_shards_of_different_servers_are_a_warning(server, other_server, report):
    other_server.version = MARIADB
    code, lines = await report(config_of(server, other_server))
    assert code == 0
    (line,) = (line for line in lines if line.startswith("warning"))
    assert line.startswith(
        f"warning  commerce: its shards are of different servers (-80 8.4.3, 80- {MARIADB})"
    )


@pytest.mark.parametrize(
    ("other", "text"),
    [
        ({"winter": 1767243600, "summer": 1782878400}, "commerce: its shards have different time zones"),
        ({"summer": 1782860400}, "commerce: its shards have different time zones"),  # they differ in summer alone
        ({"ahead_s": 3600}, "commerce/80-: its clock is 3600 s ahead of this machine's"),
        ({"ahead_s": -60}, "commerce/80-: its clock is 60 s behind this machine's"),
    ],
)  # fmt: skip
async def test_a_time_zone_or_a_clock_that_differs_is_a_warning(
    server, other_server, report, other, text
):
    other_server.on(TIMES, times(**other))
    code, lines = await report(config_of(server, other_server))
    assert code == 0
    (line,) = (line for line in lines if line.startswith("warning"))
    assert line.startswith(f"warning  {text}")


async def test_a_server_whose_time_zone_is_not_known_is_compared_with_none(
    server, other_server, report
):
    other_server.on(TIMES, Error(1317, "Query execution was interrupted", "70100"))
    code, lines = await report(config_of(server, other_server))
    assert code == 1
    (line,) = (line for line in lines if not line.startswith("ok"))
    assert line.startswith("error    commerce/80-: ")


def with_tls(config, cert, key):
    return type(config)(
        replace(config.server, tls=TlsSettings(cert, key, require=False)), (), config.keyspaces
    )


async def test_what_the_start_refuses_of_tls_is_an_error(server, report, tmp_path):
    cert, key = write_certificate(tmp_path)
    config = with_tls(config_of(server), cert, key)
    tls = replace(config.server.tls, client_ca=key)
    code, lines = await report(replace(config, server=replace(config.server, tls=tls)))
    assert code == 1
    assert lines[1].startswith("error    server.tls.client_ca: expected certificates of auth")


async def test_a_certificate_with_its_key_is_looked_at(server, report, tmp_path):
    cert, key = write_certificate(tmp_path)
    code, lines = await report(with_tls(config_of(server), cert, key))
    assert code == 0
    # It is valid for a day, which is soon.
    assert lines[1].startswith(f"warning  server.tls.cert: {cert} expires on ")
