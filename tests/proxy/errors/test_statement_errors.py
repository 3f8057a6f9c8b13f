from streamfrom.proxy.errors import BadQueue, NoSuchQueue, QueueExists
from streamfrom.proxy.errors.statement_errors import (
    BadMessageId,
    BadStreamArgument,
    BadVindexValue,
    MergeTooLarge,
    NotPreparable,
    UnknownDatabase,
)


def test_what_is_refused_says_the_cure_and_shows_what_came_shortened():
    assert "raise merge_memory" in str(MergeTooLarge(1 << 20))
    assert str(NotPreparable("STREAM")).endswith("STREAM; send it as text")
    argument = BadStreamArgument("LIMIT", "a number", "é" * 100)
    assert str(argument) == f"LIMIT must be a number, not '{'?' * 40}'"
    ident = BadMessageId("FLOAT64", b"\xff" + b"1" * 90)
    assert str(ident).endswith(f"not FLOAT64 '\ufffd{'1' * 39}'")


def test_codes_are_those_of_tables():
    assert QueueExists("q").wire_code() == (1050, "42S01")
    assert NoSuchQueue("q").wire_code() == (1051, "42S02")
    assert BadQueue("no").wire_code() == (1210, "HY000")


def test_a_null_that_routes_nowhere_has_the_code_of_a_null_and_others_that_of_a_bad_value():
    assert BadVindexValue("t", "id", None, "h").wire_code() == (1048, "23000")
    assert BadVindexValue("t", "id", "x", "h").wire_code() == (1366, "HY000")
    assert str(UnknownDatabase("x")) == "Unknown database 'x'"
