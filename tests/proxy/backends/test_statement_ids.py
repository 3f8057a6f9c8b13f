import ast

from streamfrom.proxy.backends.statement_ids import KEPT_BYTES_MAX, StatementIds, StatementKey
from streamfrom.proxy.wire.binary_parameters import kinds_of
from streamfrom.proxy.wire.constants import FieldType
from tests.cases import cases


def key(text: str, database: str | None = "db", mode: str | None = None) -> StatementKey:
    return StatementKey(text.encode(), database, (mode,))


def test_a_statement_is_its_text_its_database_and_how_it_was_read():
    ids = StatementIds()
    ids.put(key("a"), 1)
    assert ids.get(key("a")) == 1
    assert ids.get(key("b")) is None
    assert ids.get(key("a", "other")) is None
    assert ids.get(key("a", mode="ANSI_QUOTES")) is None


def test_large_texts_make_room_for_the_newest_alone():
    ids = StatementIds()
    half = KEPT_BYTES_MAX // 2
    for number, letter in enumerate("abc"):
        ids.put(key(letter * half), number)
    assert ids.take_stale() == [0]
    ids.put(key("d" * 5 * half), 3)
    assert (len(ids), ids.take_stale()) == (1, [1, 2])
    ids.put(key("a"), 4)
    assert (len(ids), ids.take_stale()) == (1, [3])
    ids.release()
    ids.put(key("b" * 2 * half), 5)
    assert len(ids) == 1


def test_what_makes_room_is_replaced_or_dropped_is_to_be_closed_and_a_reset_closes_all():
    ids = StatementIds()
    assert not ids.release()
    ids.put(key("a"), 1)
    ids.put(key("b"), 2)
    assert ids.release()
    assert ids.get(key("a")) is None
    assert ids.take_stale() == [1, 2]
    assert not ids.release()
    ids.put(key("a"), 1)
    ids.put(key("a"), 2)
    assert ids.get(key("a")) == 2
    assert ids.take_stale() == [1]
    for _ in range(2):
        ids.drop(key("a"))
    assert ids.get(key("a")) is None
    assert ids.take_stale() == [2]
    ids.put(key("a"), 3)
    ids.put(key("b"), 4)
    ids.drop(key("a"))
    ids.clear()
    assert (len(ids), ids.take_stale()) == (0, [])


BOUND = {
    "NULL": (b"\1", FieldType.NULL),
    "typed NULL": (b"\1", FieldType.VAR_STRING),
    "int": (b"\0", FieldType.TINY),
    "bigint": (b"\0", FieldType.LONGLONG),
    "text": (b"\0", FieldType.VAR_STRING),
    "bytes": (b"\0", FieldType.BLOB),
    "double": (b"\0", FieldType.DOUBLE),
    "decimal": (b"\0", FieldType.NEWDECIMAL),
    "date": (b"\0", FieldType.DATE),
    "datetime": (b"\0", FieldType.DATETIME),
    "timestamp": (b"\0", FieldType.TIMESTAMP),
    "time": (b"\0", FieldType.TIME),
}


def bound(name: str) -> bytes:
    bitmap, kind = BOUND[name]
    return kinds_of(bitmap + b"\1" + bytes((kind, 0)), 1)


@cases(before=str, then=str, fits=ast.literal_eval)
def test_a_statement_is_prepared_again_for_what_mysql_would_convert(before, then, fits):
    ids = StatementIds()
    ids.put(key("a"), 1)
    for name in before.split():
        assert ids.get(key("a"), bound(name)) == 1
    assert ids.get(key("a"), bound(then)) == (1 if fits else None)
    assert ids.take_stale() == ([] if fits else [1])


def test_each_parameter_has_a_kind_of_its_own():
    sent = bytes((FieldType.LONG, 0, FieldType.STRING, 0, FieldType.LONG, 0))
    number, text, null = kinds_of(b"\4\1" + sent, 3)
    assert number > text > null
    assert kinds_of(b"", 0) == b""
