from streamfrom.proxy.errors.statement_errors import (
    BadMessageId,
    BadStreamArgument,
    DistinctTooLarge,
    MergeTooLarge,
    NotPreparable,
)


def test_what_is_refused_says_the_cure_and_shows_what_came_shortened():
    assert "raise merge_memory" in str(MergeTooLarge(1 << 20))
    assert "raise merge_memory" in str(DistinctTooLarge(1 << 20))
    assert str(NotPreparable("STREAM")).endswith("STREAM; send it as text")
    argument = BadStreamArgument("LIMIT", "a number", "é" * 100)
    assert str(argument) == f"LIMIT must be a number, not '{'?' * 40}'"
    ident = BadMessageId("FLOAT64", b"\xff" + b"1" * 90)
    assert str(ident).endswith(f"not FLOAT64 '\ufffd{'1' * 39}'")
