"""Two shards' definitions of one message table."""

from dataclasses import replace

from streamfrom.engine.messaging.table.message_table import RawColumn, RawIndex
from streamfrom.engine.messaging.table.table_differences import differences
from tests.sim.memory_store import DEFAULT_COMMENT, raw_table


THERE = raw_table("t")


def found(here, there=THERE, **options):
    return differences(here, there, "ks/-80", **options)


def column(raw, name, **changes):
    columns = tuple(
        replace(each, **changes) if each.name == name else each for each in raw.columns
    )
    return replace(raw, columns=columns)


def test_a_table_does_not_differ_from_itself():
    assert found(THERE) == ((), ())


def test_what_two_servers_only_write_in_another_way_is_no_difference():
    here = column(THERE, "time_next", default="'0'", column_type="bigint(20)")
    here = column(here, "time_acked", default="NULL")
    there = column(THERE, "time_next", column_type="bigint")
    assert found(here, there) == ((), ())


def test_columns_that_only_one_has_are_told_from_either_side():
    more = replace(
        THERE, columns=(*THERE.columns, RawColumn("extra", "int", None, nullable=True))
    )
    assert found(THERE, more).columns == ("no column extra, which ks/-80 has",)
    assert found(more, THERE).columns == ("column extra, which ks/-80 has not",)


def test_a_column_of_another_type_default_or_nullability_is_told():
    assert found(
        column(THERE, "id", data_type="varchar", column_type="varchar(9)")
    ).columns == ("column id is varchar(9) not null, on ks/-80 bigint not null",)
    assert found(column(THERE, "priority", default="7")).columns == (
        "column priority is tinyint not null default 7, on ks/-80 tinyint not null default 50",
    )
    assert found(column(THERE, "message", nullable=False)).columns == (
        "column message is varchar not null, on ks/-80 varchar",
    )
    assert found(column(THERE, "id", extra="auto_increment")).columns == (
        "column id is bigint not null auto_increment, on ks/-80 bigint not null",
    )


def test_servers_of_two_kinds_are_compared_by_names_alone():
    here = column(THERE, "message", data_type="longtext")
    assert found(here, same_kind=False) == ((), ())
    assert found(replace(THERE, columns=THERE.columns[:-1]), same_kind=False).columns


def test_settings_that_differ_are_told_one_by_one():
    comment = DEFAULT_COMMENT.replace("vt_ack_wait=30", "vt_ack_wait=5") + ",vt_order=newest"
    assert found(replace(THERE, comment=comment)).others == (
        "vt_ack_wait is 5, on ks/-80 30",
        "vt_order is newest, on ks/-80 not set",
    )
    assert found(replace(THERE, comment=DEFAULT_COMMENT + ",note")).others == (
        "another comment than on ks/-80",
    )


def test_indexes_that_only_one_has_are_told():
    fewer = replace(THERE, indexes=THERE.indexes[:1])
    assert found(fewer).others == (
        "no index on time_acked, priority, time_next, which ks/-80 has",
    )
    more = replace(THERE, indexes=(*THERE.indexes, RawIndex("u", unique=True, columns=("A",))))
    assert found(more).others == ("unique index on a, which ks/-80 has not",)
