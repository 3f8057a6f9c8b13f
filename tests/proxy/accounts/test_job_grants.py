import pytest

from streamfrom.engine.messaging.table.message_table import RawColumn
from streamfrom.proxy.accounts.job_grants import Grantee, Purpose, grants, operator_grants
from tests.sim.memory_store import loaded, raw_table


APP = Grantee("it's `me", "10.%")
PLACE = "`shop`.`msg` TO `it's ``me`@`10.%`;"


def printed(job, raw):
    table = loaded(raw, "ks")
    return [*grants(job, table, raw.columns, "shop", APP)]


def test_each_job_has_the_rights_on_the_columns_that_it_works_with():
    assert printed(Purpose.READER, raw_table("msg")) == [f"GRANT SELECT ON {PLACE}"]
    raw = raw_table("msg")
    generated = RawColumn("shown", "varchar", None, nullable=True, extra="VIRTUAL GENERATED")
    error = RawColumn("last_error", "varchar", None, nullable=True)
    table = loaded(raw, "ks")
    columns = (*raw.columns, generated, error)
    (line,) = grants(Purpose.PRODUCER, table, columns, "shop", APP)
    own = [c.name for c in raw.columns if c.name not in ("epoch", "time_acked")]
    assert line == f"GRANT INSERT ({', '.join(f'`{name}`' for name in own)}) ON {PLACE}"
    assert [*operator_grants("msg", None, "shop", APP)] == [
        f"GRANT SELECT, UPDATE, DELETE, CREATE, ALTER, DROP ON {PLACE}"
    ]
    assert [*operator_grants("msg", "dead", "shop", APP)] == [
        f"GRANT SELECT, UPDATE, DELETE, CREATE, ALTER, DROP, INSERT ON {PLACE}",
        f"GRANT SELECT, DELETE, CREATE, ALTER, DROP ON {PLACE.replace('msg', 'dead')}",
    ]


@pytest.mark.parametrize("job", Purpose)
def test_no_name_ends_its_quotes(job):
    raw = raw_table("a`; DROP TABLE b; --")
    for line in printed(job, raw):
        assert "`shop`.`a``; DROP TABLE b; --` TO " in line
