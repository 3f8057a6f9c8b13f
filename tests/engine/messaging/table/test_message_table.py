import re
from dataclasses import replace

import pytest

from streamfrom.engine.errors import TableLoadError, UnknownColumn
from streamfrom.engine.messaging.table.message_table import (
    RawColumn,
    RawIndex,
    RawTable,
    load,
)
from tests.cases import cases
from tests.sim.memory_store import DEFAULT_COMMENT, loaded, raw_table


FIRST = RawTable(
    name="my_message",
    comment=DEFAULT_COMMENT,
    columns=tuple(
        RawColumn(name, "varchar" if name == "message" else "bigint", None, nullable=True)
        for name in (
            "time_scheduled", "id", "time_next", "epoch", "time_created", "time_acked", "message",
        )
    ),
    indexes=(
        RawIndex("PRIMARY", unique=True, columns=("time_scheduled", "id")),
        RawIndex("id_idx", unique=True, columns=("id",)),
        RawIndex("next_idx", unique=False, columns=("time_next", "epoch")),
    ),
)  # fmt: skip


def fault(raw) -> str:
    error = load("ks", raw)
    assert isinstance(error, TableLoadError)
    return str(error)


def with_columns(*names, comment=DEFAULT_COMMENT):
    columns = {column.name.lower(): column for column in raw_table("t").columns}
    made = (
        replace(
            columns.get(name.lower(), RawColumn(name, "int", None, nullable=True)), name=name
        )
        for name in names
    )
    return replace(raw_table("t", comment), columns=tuple(made))


def with_comment(*more):
    return raw_table("t", ",".join([DEFAULT_COMMENT, *more]))


def with_column(name, data_type="bigint", column_type="", *, raw=None, **changes):
    raw = raw or raw_table("t")
    changes |= {"data_type": data_type, "column_type": column_type}
    columns = (replace(one, **changes) if one.name == name else one for one in raw.columns)
    return replace(raw, columns=tuple(columns))


def without_nulls(raw):
    return with_column("epoch", raw=raw, nullable=False)


def without(name, raw):
    return with_columns(*(one.name for one in raw.columns if one.name != name))


def test_the_recommended_table_is_loaded():
    table = loaded(raw_table("t"))
    assert (table.keyspace, table.name, table.id_column) == ("ks", "t", "id")
    assert table.streamed == ("id", "message")
    assert table.columns == ("id", "priority", "epoch", "time_next", "time_acked", "message")
    assert (table.default_priority, table.default_time_next_ns) == (50, 0)
    assert (table.id_index, table.poll_index) == ("PRIMARY", None)
    assert table.has_priority
    assert not table.first_layout
    assert table.advice == ()


def test_all_columns_but_the_four_hidden_ones_are_streamed_and_the_id_goes_first():
    raw = with_columns("b", "Time_Next", "ID", "PRIORITY", "epoch", "a", "time_acked")
    assert loaded(raw).streamed == ("ID", "b", "a")


def test_invisible_columns_are_not_streamed():
    raw = with_columns("id", "priority", "epoch", "time_next", "time_acked", "a", "b")
    hidden = replace(raw.columns[5], extra="INVISIBLE")
    raw = replace(raw, columns=(*raw.columns[:5], hidden, raw.columns[6]))
    assert loaded(raw).streamed == ("id", "b")


def test_message_cols_choose_what_is_streamed_hidden_columns_too():
    assert loaded(with_comment("vt_message_cols=id")).streamed == ("id",)
    assert loaded(with_comment("vt_message_cols=id|message")).streamed == ("id", "message")
    assert loaded(with_comment("vt_message_cols=ID|epoch")).streamed == ("id", "epoch")


STRICT = with_comment("vt_order=strict")
UNDELAYED = with_comment("vt_delayed=off")
GROUPED = f"{DEFAULT_COMMENT},vt_group=batch,vt_after=finishes"


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (with_comment("vt_message_cols=message"), "vt_message_cols must begin with id: t"),
        (with_comment("vt_message_cols=message|id"), "vt_message_cols must begin with id: t"),
        (with_comment("vt_message_cols=nope|id"), "nope missing from message table: t"),
        *(
            (without(name, raw_table("t")), f"{name} missing from message table: t")
            for name in ("id", "priority", "time_next", "epoch", "time_acked")
        ),
        # One of the first layout has it all.
        (without("time_created", FIRST), "priority missing from message table: t"),
        # A fault of the comment goes before one of the columns.
        (
            with_columns("message", comment="vitess_message"),
            "attribute vt_ack_wait not specified for message table",
        ),
        (with_column("time_scheduled", "datetime", raw=FIRST), "time_scheduled must be BIGINT"),
        (with_column("time_created", "datetime", raw=FIRST), "time_created must be BIGINT"),
        (
            with_column("time_acked", nullable=False),
            "time_acked must allow NULL, which is what a message has that is not acknowledged: t",
        ),
        (with_column("epoch", "date"), "epoch must be an integer, not DATE"),
        (with_column("priority", "datetime"), "priority must be an integer"),
        (with_column("time_next", extra="VIRTUAL GENERATED"), "time_next must not be a generated column"),
        (with_column("time_next", extra="STORED GENERATED"), "time_next must not be a generated column"),
        (with_column("time_next", default="(now())", raw=UNDELAYED), "time_next must have a number or NULL as default"),
        (raw_table("t", GROUPED, texts=("batch",)), "vt_after names no column of the table: 'finishes'"),
        (with_comment("vt_key=x"), "vt_key must be a column of the table, not 'x'"),
        (with_column("epoch", raw=STRICT, nullable=True), "epoch must be NOT NULL where messages wait"),
        (replace(FIRST, comment=STRICT.comment), "need a table with the column priority"),
        (with_comment("vt_max_attempts=1", "vt_dead_letter=T"), "vt_dead_letter must be another table"),
        (raw_table("t", id_type="double"), "id must be of a type whose values are found again, not DOUBLE"),
    ],
)  # fmt: skip
def test_a_table_that_cannot_be_a_queue_is_a_fault(raw, told):
    assert re.match(
        rf"message table '{raw.name}' failed to load: .*{re.escape(told)}", fault(raw)
    )


@pytest.mark.parametrize("name", ["time_next", "time_acked"])
@cases(data_type=str, column_type=str)
def test_a_time_column_that_no_moment_fits_into_is_a_fault(name, data_type, column_type):
    assert fault(with_column(name, data_type, column_type)) == (
        f"message table 't' failed to load: {name} must be BIGINT, for nanoseconds since 1970,"
        f" not {(column_type or data_type).upper()}: t"
    )


@pytest.mark.parametrize("default", ["0", None, "NULL"])
def test_without_delays_the_default_of_time_next_is_known(default):
    raw = with_column("time_next", default=default, raw=UNDELAYED)
    assert loaded(raw).facts.refuses_delays
    assert not loaded(replace(raw, comment=DEFAULT_COMMENT)).facts.refuses_delays


NOT_UNIQUE = (
    RawIndex("PRIMARY", unique=True, columns=("id", "tenant")),
    *raw_table("t").indexes[1:],
)


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (with_column("time_next", nullable=False), r"an ack fails that .* value; ALTER TABLE `t` MODIFY time_next"),
        (with_column("epoch", "tinyint", "tinyint(4)"), r"epoch is TINYINT\(4\)"),
        (with_column("priority", "varchar", "varchar(9)"), r"priority is VARCHAR\(9\): as texts, 10 comes before 9"),
        (with_column("epoch", "varchar", "varchar(9)"), r"epoch is VARCHAR\(9\): as texts, 10 comes before 9"),
        (replace(raw_table("t"), indexes=NOT_UNIQUE), "no unique index on id"),
    ],
)  # fmt: skip
def test_what_works_less_well_is_advice(raw, told):
    (line,) = loaded(raw).advice
    assert re.search(told, line)


def test_the_first_layout_is_loaded():
    table = loaded(FIRST)
    assert table.first_layout
    assert not table.has_priority
    assert table.streamed == ("id", "time_scheduled", "message")
    assert (table.id_index, table.poll_index) == ("id_idx", "next_idx")
    assert table.purge_by_schedule
    assert not table.null_lane
    assert table.advice == ()
    assert table.facts.first_layout


def test_missing_indexes_are_advised():
    assert loaded(replace(raw_table("t"), indexes=())).advice == (
        "no unique index on id: ids must be unique; ALTER TABLE `t` ADD UNIQUE INDEX id_idx (id)",
        "no index on time_acked, priority, time_next: polls and the purge read the whole table;"
        " ALTER TABLE `t` ADD INDEX poller_idx (time_acked, priority, time_next)",
    )
    assert len(loaded(replace(FIRST, indexes=())).advice) == 3


def test_the_facts_say_what_statements_are_read_with():
    raw = raw_table("t")
    auto = replace(raw.columns[0], name="Id", extra="auto_increment")
    facts = loaded(replace(raw, columns=(auto, *raw.columns[1:]))).facts
    assert (facts.name, facts.id_column, facts.id_auto_increment) == ("t", "id", True)
    assert (facts.default_priority, facts.default_time_next_ns) == (50, 0)
    assert "message" in facts.columns


@pytest.mark.parametrize(
    ("default", "value"), [("7", 7), ("'7'", 7), (None, 0), ("NULL", 0), ("-3", -3)]
)
def test_defaults_are_read_as_either_server_shows_them(default, value):
    raw = raw_table("t")
    priority = replace(raw.columns[1], default=default)
    raw = replace(raw, columns=(raw.columns[0], priority, *raw.columns[2:]))
    assert loaded(raw).default_priority == value


@pytest.mark.parametrize(
    ("data_type", "is_number"),
    [("bigint", True), ("decimal", True), ("varchar", False), ("binary", False), ("datetime", False)],
)  # fmt: skip
def test_only_numbers_are_literals_as_they_are(data_type, is_number):
    table = loaded(raw_table("t", id_type=data_type))
    assert table.has_number_ids is is_number
    assert table.id_literal(b"42") == (b"42" if is_number else b"'42'")


def test_a_projection_is_spelled_as_the_table_spells_it():
    table = loaded(raw_table("t"))
    assert table.project(None) == table.streamed
    assert table.project(["MESSAGE", "epoch"]) == ("message", "epoch")
    with pytest.raises(UnknownColumn, match="Unknown column 'nope' in 'field list'"):
        table.project(["id", "nope"])


@cases(data_type=str, column_type=str)
def test_whatever_a_moment_fits_into_goes_on_working(data_type, column_type):
    table = loaded(with_column("time_next", data_type, column_type))
    assert (table.advice != ()) is (data_type not in ("bigint", "decimal"))


@pytest.mark.parametrize(
    ("data_type", "column_type"), [("double", ""), ("float", ""), ("decimal", "decimal(30,6)")]
)
def test_numbers_with_a_fraction_are_not_read_as_moments_or_counts(data_type, column_type):
    for name in ("time_next", "epoch", "priority"):
        assert f"{name} must be " in fault(with_column(name, data_type, column_type))
    # What only the purge compares may be one.
    assert loaded(with_column("time_acked", data_type, column_type)).name == "t"


def test_all_faults_are_told_those_of_the_comment_first():
    raw = with_column("time_acked", "datetime", nullable=False)
    error = load("ks", replace(raw, comment="vitess_message,vt_ack_wait=30"))
    assert isinstance(error, TableLoadError)
    assert error.reason == "attribute vt_purge_after not specified for message table"
    assert [reason.split()[0] for reason in error.others] == [
        "attribute", "attribute", "attribute", "time_acked", "time_acked",
    ]  # fmt: skip


def test_a_limit_that_shards_cannot_share_is_an_error_that_names_it():
    raw = with_comment("vt_max_in_flight=2")
    assert not isinstance(load("ks", raw, 2), TableLoadError)
    assert "vt_max_in_flight must be at least 3" in str(load("ks", raw, 3))


def test_groups_are_columns_of_the_table_with_an_index():
    comment = f"{DEFAULT_COMMENT},vt_group=BATCH,vt_after=finishes"
    raw = raw_table("msg", comment, texts=("Batch", "Finishes"))
    table = loaded(raw)
    assert (table.groups, table.group_index) == (("Batch", "Finishes"), None)
    assert table.time_index == "poller_idx"
    assert table.facts.decisive == {"time_acked", "time_next", "priority", "batch", "finishes"}
    (advice,) = table.advice
    assert advice == (
        "no index on Batch, time_acked: each look at a group reads all of it, or the whole table;"
        " ALTER TABLE `msg` ADD INDEX group_idx (`Batch`, time_acked)"
    )
    index = RawIndex("group_idx", unique=False, columns=("batch", "time_acked"))
    table = loaded(replace(raw, indexes=(*raw.indexes, index)))
    assert (table.advice, table.group_index) == ((), "group_idx")


OF_KEYS = [
    (
        ("vt_key=Message",),
        ("time_acked", "message", "priority", "time_next"),
        "a poll for a key reads all messages that wait; ALTER TABLE `t` ADD INDEX key_idx",
        (None, "mine"),
    ),
    (
        ("vt_key=Message", "vt_max_per_key=2"),
        ("message", "time_acked", "epoch", "priority", "time_next"),
        "each claim reads all messages of a key; ALTER TABLE `t` ADD INDEX order_idx",
        ("mine", "mine"),
    ),
    (
        ("vt_order=strict",),
        ("time_acked", "epoch", "priority", "time_next"),
        "each claim reads all messages of a key; ALTER TABLE `t` ADD INDEX order_idx",
        ("mine", "mine"),
    ),
]


@pytest.mark.parametrize(("settings", "columns", "consequence", "found"), OF_KEYS)
def test_keys_and_orders_have_an_index_and_any_will_do_that_begins_so(
    settings, columns, consequence, found
):
    raw = without_nulls(with_comment(*settings))
    names = ", ".join(columns)
    assert loaded(raw).advice == (f"no index on {names}: {consequence} ({names})",)
    mine = RawIndex("mine", unique=False, columns=(*map(str.capitalize, columns), "id"))
    table = loaded(replace(raw, indexes=(*raw.indexes, mine)))
    assert (table.order_index, table.key_index, table.advice) == (*found, ())
