import json
from dataclasses import replace

import pytest
import structlog

from streamfrom.engine.messaging.table.message_ids import EPOCH_NS, first_id
from streamfrom.engine.messaging.upkeep.partitions import SPANS
from streamfrom.proxy.commands import check as module
from streamfrom.proxy.commands.check import check
from streamfrom.proxy.config.file import KeyspaceConfig, TlsSettings, TransactionMode
from streamfrom.proxy.config.toml_values import Secret
from streamfrom.proxy.wire.constants import FieldType
from tests.proxy.certificates import write_certificate
from tests.proxy.fake_answers import Error, Rows
from tests.proxy.fake_server import MARIADB, PASSWORD
from tests.proxy.rigs import (
    add_decisions,
    add_message_table,
    add_tables,
    config_of,
    shard_config,
)
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


@pytest.fixture(autouse=True)
def roomy(server, other_server):
    """Both servers allow more connections than any test here asks for."""
    for each in (server, other_server):
        each.on("@@max_connections", Rows((str(each.port), "1", "d", "1000")))


async def test_a_sound_configuration_is_all_ok(server, other_server, report):
    for each in (server, other_server):
        add_message_table(each)
    code, lines = await report(config_of(server, other_server))
    assert code == 0
    assert lines[0] == "ok       config: 2 keyspaces, root from this machine only"
    assert f"ok       plain/-: mysql://root@127.0.0.1:{server.port}/db: 8.4.3" in lines
    assert "ok       plain/-.msg: message table, streams id, message" in lines
    assert "ok       commerce/80-.msg: message table, streams id, message" in lines
    assert all(line.startswith("ok ") for line in lines)


async def test_a_keyspace_of_the_name_of_the_proxys_own_schema_is_a_warning(server, report):
    config = config_of(server)
    own = replace(config.keyspaces[0], name="streamfrom")
    code, lines = await report(replace(config, keyspaces=(own,)))
    assert code == 0
    (line,) = (line for line in lines if line.startswith("warning  streamfrom:"))
    assert "streamfrom.queues" in line


async def test_nothing_is_changed_by_looking(server, report):
    add_message_table(server)
    await report(config_of(server))
    writes = [text for text in server.controlled if text.startswith(("UPDATE", "DELETE"))]
    assert writes
    assert all(text.endswith("WHERE 1 = 0") for text in writes)


async def test_a_server_that_is_down_is_a_fault_and_no_secret_is_told(server, report):
    config = config_of(server)
    shard = shard_config(server, user="app", password=Secret(PASSWORD))
    config = type(config)(config.server, (), (KeyspaceConfig("plain", None, (shard,)),))
    server.stop()
    code, lines = await report(config)
    assert code == 1
    assert lines[1].startswith(f"error    plain/-: mysql://app@127.0.0.1:{server.port}/db: ")
    assert lines[1].count("mysql://") == 1
    assert PASSWORD not in str(lines)


async def test_a_read_only_server_is_a_fault(server, report):
    server.read_only = True
    code, lines = await report(config_of(server))
    assert code == 1
    assert lines[1].endswith("the server is read-only")


async def test_a_vschema_that_cannot_be_read_is_a_fault_of_its_keyspace(server, report):
    config = config_of(server)
    broken = KeyspaceConfig("broken", '{"sharded": 5}', config.keyspaces[0].shards)
    config = type(config)(config.server, (), (broken, *config.keyspaces))
    code, lines = await report(config)
    assert code == 1
    assert lines[1].startswith("error    broken: vschema: ")
    assert any(line.startswith("ok       plain/-") for line in lines)


async def test_tables_that_cannot_be_listed_are_a_fault(server, report):
    server.on("information_schema.tables", Error(1227, "Access denied; you need PROCESS"))
    code, lines = await report(config_of(server))
    assert code == 1
    assert "you need PROCESS" in lines[-2]


async def test_a_message_table_that_does_not_load_is_a_fault(server, report):
    add_message_table(server, comment="vitess_message,vt_ack_wait=0")
    code, lines = await report(config_of(server))
    assert code == 1
    error = next(line for line in lines if line.startswith("error"))
    assert error.startswith("error    plain/-.msg: message table 'msg' failed to load: ")
    assert "vt_ack_wait" in error


@pytest.mark.parametrize("probe", module.PROBES)
async def test_a_privilege_that_delivery_needs_and_lacks_is_a_fault(server, report, probe):
    add_message_table(server)
    server.on(probe.format(table="`msg`"), Error(1142, "command denied to user", "42000"))
    code, lines = await report(config_of(server))
    assert code == 1
    assert lines[-2] == "error    plain/-.msg: command denied to user"


async def test_an_account_that_cannot_see_triggers_is_told_the_grant(server, report):
    server.version = "9.7.0"
    server.on("SHOW GRANTS", Rows(("grants",), ((b"GRANT SELECT ON `db`.* TO `root`@`%`",),)))
    code, lines = await report(config_of(server))
    assert code == 0
    assert any("cannot see triggers" in line for line in lines)
    assert any("GRANT TRIGGER ON" in line for line in lines)


async def test_an_account_that_cannot_list_user_variables_is_named_on_mysql(server, report):
    server.on("user_variables_by_thread", Error(1142, "SELECT command denied", "42000"))
    code, lines = await report(config_of(server))
    assert code == 0
    (line,) = (line for line in lines if line.startswith("info"))
    assert "GRANT SELECT ON performance_schema.user_variables_by_thread" in line
    server.version = MARIADB
    assert not [line for line in (await report(config_of(server)))[1] if "user_var" in line]


async def test_unknown_keys_and_missing_indexes_are_warnings(server, report):
    add_message_table(
        server,
        comment="vitess_message,vt_ack_wait=30,vt_purge_after=3600,vt_batch_size=10,"
        "vt_cache_size=100,vt_poller_interval=30,vt_color=blue",
        indexes=(),
    )
    code, lines = await report(config_of(server))
    assert code == 0
    warnings = [line for line in lines if line.startswith("warning")]
    assert any("vt_color" in line for line in warnings)
    assert any("ADD INDEX poller_idx" in line for line in warnings)


DAY = SPANS["DAY"]
PROBE = module.PARTITION_PROBE.format(table="`msg`")
PARTITIONED = (
    (b"p20260101", b"RANGE", b"`id`", b"%d" % first_id(EPOCH_NS + DAY.length_ns)),
    (b"p20260102", b"RANGE", b"`id`", b"%d" % first_id(EPOCH_NS + 2 * DAY.length_ns)),
    (b"prest", b"RANGE", b"`id`", b"MAXVALUE"),
)


async def test_what_holds_partitions_back_is_a_warning(server, report):
    add_message_table(server, options="partitioned")
    text = (FieldType.VAR_STRING,)
    server.on("information_schema.partitions", Rows(tuple("abcd"), PARTITIONED, types=text * 4))
    counts = Rows(tuple("abc"), ((b"7", b"3", b"0"),), types=(FieldType.LONGLONG,) * 3)
    server.on("PARTITION (`prest`)", counts)
    server.on(PROBE, Error(1507, "Error in list of partitions to DROP"))
    code, lines = await report(config_of(server))
    assert code == 0
    assert (
        "warning  plain/-.msg: partition p20260101 is held back: 3 messages not acknowledged"
        in lines
    )
    (line,) = (line for line in lines if "partition prest is held back: 7 messages" in line)
    assert (
        "long transaction is open: ALTER TABLE `msg` REORGANIZE PARTITION `prest` INTO ("
        in line
    )


async def test_a_privilege_that_partitions_need_and_lack_is_a_fault(server, report):
    add_message_table(server, options="partitioned")
    text = (FieldType.VAR_STRING,)
    server.on("information_schema.partitions", Rows(tuple("abcd"), PARTITIONED, types=text * 4))
    counts = Rows(tuple("abc"), ((b"0", b"0", b"0"),), types=(FieldType.LONGLONG,) * 3)
    server.on("PARTITION (`prest`)", counts)
    server.on(PROBE, Error(1142, "DROP command denied", "42000"))
    code, lines = await report(config_of(server))
    assert code == 1
    assert (
        "error    plain/-.msg: its partitions can be neither made nor dropped: DROP command denied;"
        " grant ALTER, CREATE, DROP and LOCK TABLES on it in addition to what delivery needs"
    ) in lines


async def test_partitions_that_nobody_keeps_are_a_warning(server, report):
    add_message_table(server, options="partitioned")
    server.on("information_schema.partitions", Rows(tuple("abcd")))
    code, lines = await report(config_of(server))
    assert code == 0
    assert any("msg: partitioned otherwise than by PARTITION BY" in line for line in lines)


async def test_partitions_that_cannot_be_read_are_a_fault(server, report):
    add_message_table(server, options="partitioned")
    server.on("information_schema.partitions", Error(1142, "denied"))
    code, lines = await report(config_of(server))
    assert code == 1
    assert "error    plain/-.msg: partitions: denied" in lines


async def test_a_table_that_routing_does_not_know_is_a_fault(server, other_server, report):
    for each in (server, other_server):
        add_message_table(each, name="unknown")
    code, lines = await report(config_of(server, other_server))
    assert code == 1
    assert (
        "error    commerce/-80.unknown: not in the vschema of sharded keyspace commerce"
        in lines
    )


async def test_a_table_sharded_by_something_else_than_its_id_is_a_warning(
    server, other_server, report
):
    for each in (server, other_server):
        add_message_table(each, name="named")
    code, lines = await report(config_of(server, other_server))
    assert code == 0
    assert any(
        line.startswith("warning  commerce/-80.named: its primary vindex is not on id")
        for line in lines
    )


# --- transaction_mode = "twopc" ------------------------------------------------------------


def two_phases(server):
    return config_of(server, transaction_mode=TransactionMode.TWOPC)


async def test_commits_in_two_phases_are_looked_at_where_they_are_asked_for(server, report):
    add_decisions(server, "a" * 16)
    code, lines = await report(two_phases(server))
    assert code == 0
    assert "ok       plain/-: table streamfrom.decisions, for commits in two phases" in lines
    _, lines = await report(config_of(server))
    assert "decisions" not in str(lines)


async def test_a_table_of_decisions_that_is_missing_is_told_with_how_to_make_it(server, report):
    server.on("SELECT branches FROM streamfrom.decisions", Error(1146, "doesn't exist"))
    code, lines = await report(two_phases(server))
    assert code == 0
    (line,) = (line for line in lines if line.startswith("warning"))
    assert "no table streamfrom.decisions with this shard yet" in line
    assert "else run: CREATE DATABASE IF NOT EXISTS streamfrom; CREATE TABLE" in line
    assert not any(text.startswith("CREATE") for text in server.controlled)


@pytest.mark.parametrize("verb", ["SELECT branches", "INSERT INTO streamfrom", "DELETE FROM s"])
async def test_a_privilege_that_decisions_lack_is_a_fault(server, report, verb):
    add_decisions(server, "a" * 16)
    server.on(verb, Error(1142, "command denied to user 'u'", "42000"))
    code, lines = await report(two_phases(server))
    assert code == 1
    assert "error    plain/-: commits in two phases: command denied to user 'u'" in lines


async def test_a_server_that_does_not_show_what_is_prepared_is_a_fault(server, report):
    add_decisions(server, "a" * 16)
    server.on("XA RECOVER", Error(1401, "XAER_RMERR: Fatal error occurred"))
    code, lines = await report(two_phases(server))
    assert code == 1
    (line,) = (line for line in lines if line.startswith("error"))
    assert line.endswith("; run: GRANT XA_RECOVER_ADMIN ON *.* TO the account root")


@pytest.mark.parametrize(
    ("native", "warned"), [((), False), (("ON",), False), (("OFF",), True)]
)
async def test_foreign_keys_that_depend_on_the_connection_are_a_warning(
    server, report, native, warned
):
    values = tuple((b"innodb_native_foreign_keys", value.encode()) for value in native)
    server.on("innodb_native_foreign_keys", Rows(("Variable_name", "Value"), values))
    server.on("referential_constraints", Rows(("table_name",), ((b"child",),)))
    code, lines = await report(config_of(server))
    assert code == 0
    found = [line for line in lines if line.startswith("warning") and "plain/-.child" in line]
    assert len(found) == warned
    assert all("innodb_native_foreign_keys = ON" in line for line in found)


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
    assert lines[-1].startswith("warning  plain/-: replica mysql://root@127.0.0.1:")


# --- message tables -------------------------------------------------------------------------


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


async def test_a_comment_that_is_nearly_the_mark_is_a_warning(server, report):
    add_tables(
        server, ("odd", "vitess_mesage,vt_ack_wait=30", "InnoDB"), ("t", "tea", "MyISAM")
    )
    code, lines = await report(config_of(server))
    assert code == 0
    (line,) = (line for line in lines if line.startswith("warning"))
    assert line == (
        "warning  plain/-.odd: an ordinary table, though its comment looks like a message table's:"
        " 'vitess_mesage,vt_ack_wait=30'; write vitess_message in its COMMENT if it is to be one"
    )


@pytest.mark.parametrize("engine", ["MyISAM", "Aria", "MEMORY"])
async def test_a_message_table_without_row_locks_is_a_fault(server, report, engine):
    add_message_table(server, engine=engine)
    code, lines = await report(config_of(server))
    assert code == 1
    (line,) = (line for line in lines if line.startswith("error"))
    assert line.startswith(f"error    plain/-.msg: its engine {engine} has no transactions")
    assert line.endswith("; run: ALTER TABLE `msg` ENGINE = InnoDB")


async def test_dead_letters_without_a_table_are_a_fault(server, report):
    comment = f"{DEFAULT_COMMENT},vt_max_attempts=3,vt_dead_letter=grave"
    add_message_table(server, comment=comment)
    server.on("table_name = 'grave'", Rows(("column_name", "table_comment")))
    code, lines = await report(config_of(server))
    assert code == 1
    (line,) = (line for line in lines if line.startswith("error"))
    assert line.startswith("error    plain/-.msg: vt_dead_letter: there is no table grave")


async def test_dead_letters_that_nothing_is_kept_of_are_a_fault(server, report):
    comment = f"{DEFAULT_COMMENT},vt_max_attempts=3,vt_dead_letter=grave"
    add_message_table(server, comment=comment)
    rows = ((b"dead_time", b"vt_dead_letters_of=msg"),)
    server.on("table_name = 'grave'", Rows(("column_name", "table_comment"), rows))
    code, lines = await report(config_of(server))
    assert code == 1
    (line,) = (line for line in lines if line.startswith("error"))
    assert line.startswith("error    plain/-.msg: vt_dead_letter: grave has no column of a")


async def test_dead_letters_without_the_consent_of_their_table_are_a_fault(server, report):
    comment = f"{DEFAULT_COMMENT},vt_max_attempts=3,vt_dead_letter=grave"
    add_message_table(server, comment=comment)
    rows = ((b"id", b"vt_dead_letters_of=another"),)
    server.on("table_name = 'grave'", Rows(("column_name", "table_comment"), rows))
    code, lines = await report(config_of(server))
    assert code == 1
    (line,) = (line for line in lines if line.startswith("error"))
    assert "the comment of grave does not consent to it: ALTER QUEUE msg SET" in line


async def test_dead_letters_that_may_not_be_looked_at_are_a_fault(server, report):
    comment = f"{DEFAULT_COMMENT},vt_max_attempts=3,vt_dead_letter=grave"
    add_message_table(server, comment=comment)
    server.on("table_name = 'grave'", Error(1142, "command denied to user", "42000"))
    code, lines = await report(config_of(server))
    assert code == 1
    assert "error    plain/-.msg: vt_dead_letter: command denied to user" in lines


async def test_shards_of_different_servers_are_a_warning(server, other_server, report):
    other_server.version = MARIADB
    code, lines = await report(config_of(server, other_server))
    assert code == 0
    (line,) = (line for line in lines if line.startswith("warning"))
    assert line.startswith(
        f"warning  commerce: its shards are of different servers (-80 8.4.3, 80- {MARIADB})"
    )


async def test_a_table_on_one_shard_alone_is_a_fault_of_the_others(
    server, other_server, report
):
    add_message_table(server)
    code, lines = await report(config_of(server, other_server))
    assert code == 1
    assert "error    commerce/80-.msg: no such table, which commerce/-80 has" in lines


async def test_a_table_without_the_mark_on_one_shard_is_a_fault(server, other_server, report):
    add_message_table(server)
    add_tables(other_server, ("msg", "", "InnoDB"))
    code, lines = await report(config_of(server, other_server))
    assert code == 1
    assert "error    commerce/80-.msg: no message table, which it is on commerce/-80" in lines


async def test_settings_that_differ_between_shards_are_a_warning(server, other_server, report):
    add_message_table(server)
    add_message_table(
        other_server,
        comment="vitess_message,vt_ack_wait=5,vt_purge_after=3600,"
        "vt_batch_size=10,vt_cache_size=100,vt_poller_interval=30",
    )
    code, lines = await report(config_of(server, other_server))
    assert code == 0
    assert "warning  commerce/80-.msg: vt_ack_wait is 5, on commerce/-80 30" in lines


# --- the certificate ------------------------------------------------------------------------


def with_tls(config, cert, key):
    return type(config)(
        replace(config.server, tls=TlsSettings(cert, key, require=False)), (), config.keyspaces
    )


async def test_a_certificate_with_its_key_is_looked_at(server, report, tmp_path):
    cert, key = write_certificate(tmp_path)
    code, lines = await report(with_tls(config_of(server), cert, key))
    assert code == 0
    # It is valid for a day, which is soon.
    assert lines[1].startswith(f"warning  server.tls.cert: {cert} expires on ")


async def test_a_key_that_is_not_the_certificates_is_a_fault_with_both_paths(
    server, report, tmp_path
):
    cert, _ = write_certificate(tmp_path)
    code, lines = await report(with_tls(config_of(server), cert, cert))
    assert code == 1
    assert lines[1] == (f"error    server.tls.key: {cert} holds no private key in PEM ({cert})")


async def test_a_file_that_is_no_certificate_is_a_fault(server, report, tmp_path):
    _, key = write_certificate(tmp_path)
    code, lines = await report(with_tls(config_of(server), key, key))
    assert code == 1
    assert lines[1] == f"error    server.tls.cert: {key} holds no certificate in PEM"


# --- as JSON --------------------------------------------------------------------------------


async def test_the_report_as_one_document(server, capsys):
    add_message_table(server, comment="vitess_message,vt_ack_wait=0")
    with structlog.testing.capture_logs():
        assert await check(config_of(server), as_json=True) == 1
    document = json.loads(capsys.readouterr().out)
    assert document.keys() == {"findings", "summary"}
    assert all(
        finding.keys() == {"level", "place", "text", "fix"} for finding in document["findings"]
    )
    assert document["findings"][0] == {
        "level": "ok",
        "place": "config",
        "text": "1 keyspace, root from this machine only",
        "fix": None,
    }
    assert document["summary"] == {"ok": 3, "info": 0, "warning": 0, "error": 5}
