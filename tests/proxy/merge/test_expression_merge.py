import pytest

from streamfrom.proxy.errors import MergeTooLarge
from streamfrom.proxy.merge import expression_merge
from streamfrom.proxy.merge.aggregate_expressions import Computed
from streamfrom.proxy.merge.group_query import GroupsQuery
from streamfrom.proxy.wire.constants import FieldType
from streamfrom.proxy.wire.resultset import ColumnDefinition, parse_text_row, text_row
from streamfrom.sqlparse_ext.errors import Unsupported
from tests.proxy.merge.answers import number, planned, texts


INT = FieldType.LONGLONG


def merge(sql, *, memory_bytes=1 << 20, shown=None, width=3):
    """Return what a statement asks, and its merge; columns are *shown*, else decimals."""
    columns = [shown or number("x", 4)] * width
    plan = planned(GroupsQuery(texts(sql), memory_bytes), columns, ("a", "b"))
    plan.computation.type_of = lambda place: number("x", 4)
    return plan, plan.merger(1, [number("c", kind=INT)] * 9)


def feed(found, rows):
    found.feed(0, [text_row([str(value).encode() for value in row]) for row in rows])
    found.end(0)
    assert found.next_rows() == []
    assert found.is_complete


def answers(plan, found, compute):
    """Play the shard: *compute* gets a group's values; return the rows for the client."""
    rows = []
    for batch in found.computed.batches():
        groups = [parse_text_row(kept.row) for kept in batch]
        plan.computation.answer = lambda *_, groups=groups: [compute(group) for group in groups]
        rows += found.computed.answer(batch, [], [])
    rows += [row for bite in found.computed.rest() for row in bite]
    return [tuple((value or b"NULL").decode() for value in parse_text_row(row)) for row in rows]


def negated(place, of):
    return lambda values: {place: Computed(b"-" + values[of])}


def test_an_order_by_what_is_computed_comes_last():
    plan, found = merge(
        "SELECT a, -COUNT(*) x FROM t GROUP BY a ORDER BY x, a DESC LIMIT 2", width=2
    )
    feed(found, [(3, 3, 7), (2, 2, 7), (1, 1, 5)])
    assert answers(plan, found, negated(1, 2)) == [("3", "-7"), ("2", "-7")]


def test_having_looks_at_what_is_computed_and_stops_at_the_limit(monkeypatch):
    monkeypatch.setattr(expression_merge, "_BATCH_GROUPS", 2)
    plan, found = merge("SELECT a FROM t GROUP BY a HAVING -COUNT(*) < -5 LIMIT 1", width=1)
    feed(found, [(n, n, n) for n in range(4, 12)])
    seen = []

    def compute(values):
        seen.append(values[0])
        return {2: Computed(b"-" + values[1])}

    assert answers(plan, found, compute) == [("6",)]
    assert seen == [b"4", b"5", b"6", b"7"]


def test_a_condition_so_near_to_an_average_is_refused():
    plan, found = merge("SELECT a FROM t GROUP BY a HAVING AVG(b) * 2 > 3", width=1)
    feed(found, [(1, 1, 3, 2)])
    with pytest.raises(Unsupported, match="so near to the number"):
        answers(plan, found, lambda values: {2: Computed(b"3.0000", is_cut=True)})
    plan, found = merge("SELECT a FROM t GROUP BY a HAVING AVG(b) * 2 > 3", width=1)
    feed(found, [(1, 1, 3, 2)])
    assert answers(plan, found, lambda values: {2: Computed(b"3.0002", is_cut=True)}) == [
        ("1",)
    ]


def test_more_groups_than_there_may_be_are_an_error():
    _, found = merge("SELECT a, -COUNT(*) FROM t GROUP BY a", memory_bytes=900, width=2)
    found.feed(0, [text_row([b"%d" % n] * 3) for n in range(9)])
    with pytest.raises(MergeTooLarge):
        found.next_rows()


@pytest.mark.parametrize("items", ["a, CONCAT(COUNT(*)) x", "CONCAT(COUNT(*)) x, a"])
def test_strings_are_not_sorted_by_their_bytes(items):
    with pytest.raises(
        Unsupported, match="over several shards: ORDER BY a string made of aggregates"
    ):
        merge(
            f"SELECT {items} FROM t GROUP BY a ORDER BY x",
            shown=ColumnDefinition("x", type=FieldType.VAR_STRING),
            width=2,
        )


def test_a_count_of_groups_computes_nothing():
    query = GroupsQuery(
        texts("SELECT a, COUNT(*) / 2 FROM t GROUP BY a"), 1 << 20, is_counted=True
    )
    plan = planned(query, [number("x")] * 2, ("a",))
    assert plan.computation is None
    query = GroupsQuery(
        texts("SELECT a FROM t GROUP BY a HAVING COUNT(*) / 2 > 1"), 1 << 20, is_counted=True
    )
    with pytest.raises(Unsupported, match="counting what HAVING"):
        planned(query, [number("x")], ("a",))
