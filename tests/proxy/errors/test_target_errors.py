import pytest

from streamfrom.proxy.errors.target_errors import BadVindexValue, ReplicaTarget, UnknownDatabase


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (UnknownDatabase("x"), "Unknown database 'x'"),
        (ReplicaTarget("INSERT"), "VT09002: INSERT statement with a replica target"),
    ],
)
def test_sentences_are_those_of_mysql_and_vitess(error, sentence):
    assert str(error) == sentence


def test_a_null_that_routes_nowhere_has_the_code_of_a_null_and_others_that_of_a_bad_value():
    assert BadVindexValue("t", "id", None, "h").wire_code() == (1048, "23000")
    assert BadVindexValue("t", "id", "x", "h").wire_code() == (1366, "HY000")
