import pytest

from streamfrom.proxy.merge.comparison import ColumnKey, Comparison
from streamfrom.proxy.merge.group_concat import GroupConcat, Listed, separator_of
from streamfrom.sqlparse_ext.errors import Unsupported
from tests.cases import cases
from tests.proxy.merge.answers import texts


NUMBER = ColumnKey(Comparison.NUMBER).decoder()


def concatenation(*, separator=b",", distinct=False, bytes_max=100):
    return GroupConcat(0, [NUMBER], separator, distinct=distinct, bytes_max=bytes_max)


def run(found, *rows):
    for value, count, order in rows:
        found.add([value, b"%d" % len(value or b""), b"%d" % count, order], is_new=True)
    return found.finish()


def call(sql):
    found = texts(f"SELECT {sql} FROM t")
    expression = found.select.items[0].expression
    assert expression is not None
    assert expression.call is not None
    return expression.call, found


def test_values_come_in_their_order_as_often_as_there_are_rows():
    found = concatenation(separator=b"; ")
    assert run(found, (b"x", 2, b"1"), (None, 3, b"2"), (b"y", 1, b"3")) == b"x; x; y"
    assert run(found, (None, 1, b"1")) is None
    assert run(found) is None


def test_equal_rows_of_several_shards_stand_side_by_side():
    assert run(concatenation(), (b"x", 1, b"1"), (b"x", 2, b"1")) == b"x,x,x"
    assert run(concatenation(distinct=True), (b"x", 1, b"1"), (b"x", 2, b"1")) == b"x"


def test_other_bytes_in_the_same_place_are_in_no_order():
    with pytest.raises(Unsupported, match="whose order is not determined"):
        run(concatenation(), (b"x", 1, b"1"), (b"X", 1, b"1"))


@pytest.mark.parametrize("down", [False, True])
def test_a_null_in_the_order_has_no_place(down):
    decoder = ColumnKey(Comparison.NUMBER).decoder(descending=down)
    found = GroupConcat(0, [decoder], b",", distinct=False, bytes_max=100)
    assert run(found, (b"x", 2, None), (b"x", 1, b"3")) == b"x,x,x"
    assert run(found, (b"x", 2, b"1"), (b"y", 1, b"3")) == b"x,x,y"
    with pytest.raises(Unsupported, match="whose order is not determined"):
        run(found, (b"x", 2, None), (b"y", 1, b"3"))
    with pytest.raises(Unsupported, match="whose order is not determined"):
        run(found, (b"x", 2, b"1"), (b"y", 1, b"3"), (b"y", 1, None))


def test_a_text_that_a_server_would_cut_is_refused():
    assert run(concatenation(bytes_max=5), (b"xx", 2, b"1")) == b"xx,xx"
    with pytest.raises(Unsupported, match="longer than group_concat_max_len"):
        run(concatenation(bytes_max=4), (b"xx", 2, b"1"))


@cases(sql=str, separator=str.encode)
def test_a_separator_is_a_comma_or_what_is_given(sql, separator):
    assert separator_of(*call(sql)) == separator


def test_a_separator_that_may_be_other_bytes_is_refused():
    with pytest.raises(Unsupported, match="such a SEPARATOR"):
        separator_of(*call("GROUP_CONCAT(a ORDER BY a SEPARATOR 'ä')"))


@cases(sql=str, sentence=str)
def test_an_order_that_is_not_told_or_cannot_be_followed_is_refused(sql, sentence):
    with pytest.raises(Unsupported) as refused:
        Listed(*call(sql))
    assert sentence in str(refused.value)
