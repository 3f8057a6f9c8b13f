import numpy as np
import pytest
from hypothesis import given, strategies as st

from streamfrom.engine.sharding.vindex import make_vindex
from streamfrom.spark.vindex_hash_des import encrypt


NUMBERS = st.integers(0, 2**64 - 1)


@given(st.lists(NUMBERS, max_size=20))
def test_it_is_the_proxys_vindex_hash(numbers):
    vindex = make_vindex("hash", {})
    expected = [int.from_bytes(vindex.map(number) or b"", "big") for number in numbers]
    assert encrypt(np.array(numbers, np.uint64)).tolist() == expected


@pytest.mark.parametrize("count", [0, 1, 8191, 8192, 8193, 20_000])
def test_chunks_leave_no_seam(count):
    numbers = np.arange(count, dtype=np.uint64)
    assert np.array_equal(encrypt(numbers), encrypt(numbers[::-1])[::-1])
    assert len(np.unique(encrypt(numbers))) == count
