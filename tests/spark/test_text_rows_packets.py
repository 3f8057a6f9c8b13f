"""Whatever packets hold, each is found where the one before it ends, wherever places seem to be beginnings."""

import random
from itertools import accumulate

import numpy as np
from hypothesis import given, strategies as st

from streamfrom.spark import text_rows
from streamfrom.spark.text_rows import packet_starts
from tests.spark.test_text_rows import packets as sent


def starts_of(payloads):
    sizes = (text_rows.HEADER_BYTES + len(payload) for payload in payloads)
    *found, end = accumulate(sizes, initial=0)
    return found, end


def found(data, begin=0):
    starts, place = packet_starts(np.frombuffer(data, np.uint8), begin)
    return starts.tolist(), place


def drawn(seed, kind, count, longest):
    dice = random.Random(seed)
    if kind == "text":
        return [b"x" * dice.randint(longest // 2, longest) for _ in range(count)]
    if kind == "zeros":
        return [bytes(dice.randint(0, longest)) for _ in range(count)]
    if kind == "bytes":
        return [dice.randbytes(dice.randint(0, longest)) for _ in range(count)]
    if kind == "packets":  # what a row holds looks like rows
        return [sent([b"y" * 9] * (longest // 13), place) for place in range(count)]
    return [b"z" * (longest if place % 500 else 60 * longest) for place in range(count)]


@given(
    st.integers(),
    st.sampled_from(["text", "zeros", "bytes", "packets", "now and then long"]),
    st.integers(0, 4000),
    st.sampled_from([3, 100, 400]),
    st.integers(0, 255),
    st.integers(0, 500),
)
def test_packets_are_found_and_the_last_one_if_it_is_whole(
    seed, kind, count, longest, first, missing
):
    payloads = drawn(seed, kind, count, longest)
    data = sent(payloads, first)
    data = data[: max(0, len(data) - missing)]
    starts, place = starts_of(payloads)
    whole = [start for start in [*starts, place] if start <= len(data)]
    assert found(data) == (whole[:-1], whole[-1])


def test_what_lies_before_the_first_packet_does_not_matter():
    data = sent([b"q" * 90] * 3000)
    starts, place = starts_of([b"q" * 90] * 3000)
    assert found(b"?" * 77 + data, 77) == ([77 + start for start in starts], 77 + place)


def test_a_wrong_guess_is_found_out(monkeypatch):
    data = sent([b"q" * 90] * 3000)
    starts, place = starts_of([b"q" * 90] * 3000)
    wrong = np.array([9400, 18_800 + 5, 28_200])
    monkeypatch.setattr(text_rows, "_guesses", lambda *_: wrong)
    assert found(data) == (starts, place)


def test_rows_alike_are_not_followed_one_by_one(monkeypatch):
    data = sent([b"q" * 90] * 3000)
    walked = []
    one_by_one = text_rows.one_by_one

    def counted(*given):
        some = one_by_one(*given)
        walked.append(len(some[0]))
        return some

    monkeypatch.setattr(text_rows, "one_by_one", counted)
    assert len(found(data)[0]) == 3000
    assert sum(walked) < 200
