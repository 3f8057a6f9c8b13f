from streamfrom.proxy.errors.statement_errors import BadVindexValue, UnknownDatabase


def test_a_null_that_routes_nowhere_has_the_code_of_a_null_and_others_that_of_a_bad_value():
    assert BadVindexValue("t", "id", None, "h").wire_code() == (1048, "23000")
    assert BadVindexValue("t", "id", "x", "h").wire_code() == (1366, "HY000")
    assert str(UnknownDatabase("x")) == "Unknown database 'x'"
