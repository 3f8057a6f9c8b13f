"""Which way a claim goes; what each of them sends is in the tests of these."""

import pytest

from streamfrom.engine.messaging.claims.ordered_claim import Claim
from streamfrom.engine.messaging.table.store_job import At
from tests.sim.memory_store import DEFAULT_COMMENT, loaded, raw_table


LAZY, STRICT = ",vt_lease=lazy", ",vt_order=strict"


@pytest.mark.parametrize(
    ("settings", "is_elected", "begins"),
    [
        (LAZY, True, b"SELECT IFNULL(time_next, 0), `id`"),  # a read alone
        (LAZY, False, b"SELECT IFNULL(epoch, 0), IFNULL(time_next, 0)"),
        (",vt_lease=written", True, b"SELECT IFNULL(epoch, 0), IFNULL(time_next, 0)"),
        (STRICT, True, b"SELECT `id`, IFNULL(time_next, 0), ''"),  # one key for all
        (STRICT, False, b"SELECT `id`, IFNULL(time_next, 0), ''"),
    ],
)
def test_without_an_election_rows_are_won_by_a_write(settings, is_elected, begins):
    table = loaded(raw_table("msg", DEFAULT_COMMENT + settings))
    job = Claim(1, "-", (b"1",), ("id",))
    assert next(job.talk(table, At("-", 1, is_elected))).sql.startswith(begins)
