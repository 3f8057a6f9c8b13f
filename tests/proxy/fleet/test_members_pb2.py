from tests.proxy.generated import assert_generated


def test_generated_code_is_that_of_the_proto(tmp_path):
    assert_generated("fleet/members.proto", tmp_path)
