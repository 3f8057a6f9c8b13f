from streamfrom.proxy.merge.row_count import CountedQuery
from streamfrom.proxy.merge.row_merge import RowsQuery
from tests.proxy.merge.answers import definitions, number, planned, texts


def test_nothing_is_told_before_all_is_known_and_then_once():
    plan = planned(CountedQuery(RowsQuery(texts("SELECT a FROM t LIMIT 3"))), [number("a")])
    merge = plan.merger(2, [number("a")])
    merge.feed(0, [b"\x011"])
    assert merge.next_rows() == []
    assert not merge.is_complete
    merge.end(0)
    merge.end(1)
    assert merge.next_rows() == [b"\x011"]
    assert merge.is_complete
    assert merge.next_rows() == []


def test_the_definitions_are_those_of_the_count():
    plan = CountedQuery(RowsQuery(texts("SELECT a FROM t LIMIT 3")))
    told = definitions(number("COUNT(*)"))
    assert plan.definitions(told, definitions(number("a"))) == told
