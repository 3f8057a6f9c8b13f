"""Two shards' definitions of one message table."""

from dataclasses import replace

import pytest

from streamfrom.engine.messaging.table.message_table import RawColumn, RawIndex
from streamfrom.engine.messaging.table.table_differences import differences
from tests.sim.memory_store import DEFAULT_COMMENT, raw_table


THERE = raw_table("t")


def found(here, there=THERE, **options):
    return differences(here, there, "ks/-80", **options)


def column(raw, name, **changes):
    columns = (replace(one, **changes) if one.name == name else one for one in raw.columns)
    return replace(raw, columns=tuple(columns))


MORE = replace(THERE, columns=(*THERE.columns, RawColumn("extra", "int", None, nullable=True)))
UNIQUE = RawIndex("u", unique=True, columns=("A",))
COMMENT = DEFAULT_COMMENT.replace("vt_ack_wait=30", "vt_ack_wait=5") + ",vt_order=newest"


@pytest.mark.parametrize(
    ("here", "told"),
    [
        (MORE, "column extra, which ks/-80 has not"),
        (column(THERE, "id", data_type="varchar", column_type="varchar(9)"), "column id is varchar(9) not null, on ks/-80 bigint not null"),
        (column(THERE, "priority", default="7"), "column priority is tinyint not null default 7, on ks/-80 tinyint not null default 50"),
        (column(THERE, "message", nullable=False), "column message is varchar not null, on ks/-80 varchar"),
        (column(THERE, "id", extra="auto_increment"), "column id is bigint not null auto_increment, on ks/-80 bigint not null"),
    ],
)  # fmt: skip
def test_columns_that_differ_are_told(here, told):
    assert found(here) == ((told,), ())


@pytest.mark.parametrize(
    ("here", "told"),
    [
        (replace(THERE, comment=COMMENT), ("vt_ack_wait is 5, on ks/-80 30", "vt_order is newest, on ks/-80 not set")),
        (replace(THERE, comment=DEFAULT_COMMENT + ",note"), ("another comment than on ks/-80",)),
        (replace(THERE, indexes=THERE.indexes[:1]), ("no index on time_acked, priority, time_next, which ks/-80 has",)),
        (replace(THERE, indexes=(*THERE.indexes, UNIQUE)), ("unique index on a, which ks/-80 has not",)),
    ],
)  # fmt: skip
def test_settings_and_indexes_that_differ_are_told_one_by_one(here, told):
    assert found(here) == ((), told)


def test_a_column_that_only_the_other_one_has_is_told():
    assert found(THERE, MORE).columns == ("no column extra, which ks/-80 has",)


def test_what_two_servers_only_write_in_another_way_is_no_difference():
    here = column(THERE, "time_next", default="'0'", column_type="bigint(20)")
    here = column(here, "time_acked", default="NULL")
    there = column(THERE, "time_next", column_type="bigint")
    assert found(here, there) == found(THERE) == ((), ())


def test_servers_of_two_kinds_are_compared_by_names_alone():
    here = column(THERE, "message", data_type="longtext")
    assert found(here, same_kind=False) == ((), ())
    assert found(replace(THERE, columns=THERE.columns[:-1]), same_kind=False).columns
