import pytest
from hypothesis import given, strategies as st

from streamfrom.proxy.twophase.xid import FORMAT_ID, GlobalId, Xid, recovered


WHOLE = GlobalId("0123456789abcdef", "f" * 32)
XID = WHOLE.branch("fedcba9876543210")
TEXT = f"{WHOLE}{XID.branch}"


def test_a_branch_is_named_after_its_transaction_and_its_shard():
    name = f"'streamfrom:0123456789abcdef:{'f' * 32}','fedcba9876543210',{FORMAT_ID}"
    assert str(XID) == name
    assert XID.sql("START").decode() == f"XA START {name}"


@pytest.mark.parametrize("data", [TEXT, TEXT.encode(), bytearray(TEXT.encode())])
def test_a_row_of_xa_recover_gives_the_branch_again_from_either_server(data):
    assert recovered((FORMAT_ID, len(str(WHOLE)), 16, data)) == XID


@pytest.mark.parametrize(
    "row",
    [
        (1, 60, 16, TEXT),
        (FORMAT_ID, 59, 16, TEXT),
        (FORMAT_ID, 60, 15, TEXT),
        (FORMAT_ID, 61, 15, TEXT),
        (FORMAT_ID, 60, 0, str(WHOLE)),
        (FORMAT_ID, 2, 2, b"g\xffb\xfe"),
        (FORMAT_ID, 60, 16, TEXT.upper()),
        (FORMAT_ID, 60, 16, "Streamfrom" + TEXT[10:]),
    ],
)
def test_what_is_not_ours_is_nobodys(row):
    assert recovered(row) is None


@given(st.integers(0, 70), st.integers(0, 70), st.binary(max_size=140))
def test_no_name_of_others_breaks_it(whole_bytes, branch_bytes, data):
    found = recovered((FORMAT_ID, whole_bytes, branch_bytes, data))
    assert found is None or isinstance(found, Xid)


def test_the_text_of_a_transaction_gives_it_again():
    assert GlobalId.parse(str(WHOLE)) == WHOLE
    assert GlobalId.parse(str(WHOLE) + "0") is None
