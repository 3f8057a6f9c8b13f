from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE, SqlMode


def test_modes_are_read_from_the_variable():
    assert SqlMode.parse("") is DEFAULT_MODE
    assert SqlMode.parse("STRICT_TRANS_TABLES,ANSI_QUOTES, pipes_as_concat") == (
        SqlMode.ANSI_QUOTES | SqlMode.PIPES_AS_CONCAT
    )
