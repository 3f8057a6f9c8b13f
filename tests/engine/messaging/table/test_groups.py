import ast

from streamfrom.engine.messaging.table.backoff import DICE_BITS, PARKED_NS, spread, wait_range
from streamfrom.engine.messaging.table.groups import HELD_NS, column_faults, placement_fault
from streamfrom.engine.messaging.table.table_settings import parse_comment
from tests.cases import cases
from tests.sim.memory_store import DEFAULT_COMMENT


BEGIN_OF_2050_NS = 80 * 31_556_952 * 10**9
COLUMNS = {"id": True, "batch": False, "finishes": False, "tenant": True}


def test_what_is_held_is_due_after_every_wait_and_before_what_is_parked():
    longest = parse_comment(DEFAULT_COMMENT.replace("vt_ack_wait=30", "vt_ack_wait=1e300"))
    waits_ns = [spread(wait_range(longest, epoch), 2**DICE_BITS - 1) for epoch in (0, 1, 99)]
    assert BEGIN_OF_2050_NS + max(waits_ns) < HELD_NS < PARKED_NS


def test_two_columns_of_one_type_are_groups_however_they_are_spelled():
    assert column_faults(None, COLUMNS) == []
    assert column_faults(("Batch", "FINISHES"), COLUMNS) == []


@cases(groups=ast.literal_eval, faults=ast.literal_eval)
def test_other_columns_are_faults(groups, faults):
    assert column_faults(groups, COLUMNS) == faults


@cases(placed_by=ast.literal_eval, shards=int, apart=str)
def test_rows_that_belong_together_but_are_placed_apart_are_a_fault(placed_by, shards, apart):
    fault = placement_fault(("batch", "Finishes"), placed_by, shards)
    assert (fault is None) is (apart is None)
    assert f"placed by {apart}, so" in (fault or "placed by None, so")
