"""Where packets begin in what was received, many found at a time: pure.

Each packet says how long it is, so each begins where the one before it ends, and to follow them in Python takes 0.1 µs for each. Here places
are guessed all over the bytes, and numpy follows the packets from all guesses at once, which takes a third of that. A chain that begins
where a packet begins and arrives at the next guess proves it, so nothing that is returned rests on a guess.
Format: the MySQL client protocol, "Protocol::Packet": three bytes of length, one that counts packets, the payload.
"""

import struct
from array import array
from typing import TYPE_CHECKING, Final

import numpy as np


if TYPE_CHECKING:
    from numpy.typing import NDArray

    Places = NDArray[np.int64]

HEADER_BYTES: Final = 4
LONGEST_BYTES: Final = 0xFFFFFF  # a payload of this length goes on in the next packet
_LENGTH: Final = struct.Struct("<I").unpack_from
# Where there is less, what numpy takes for a call counts.
_FEW_BYTES: Final = 1 << 16
# Packets from one guess to the next, about: few make more guesses, many make longer chains.
_CHAIN: Final = 32
# Looking whether all chains have arrived costs as much as following them a step.
_LOOK_STEPS: Final = 4
_MARGIN: Final = 1.25  # how much longer than the first ones others may be, and still be found
_HOPS: Final = 2  # packets that must follow a place before it is taken for a beginning


def packet_starts(data: "NDArray[np.uint8]", begin: int) -> "tuple[Places, int]":
    """Return the beginnings of the whole packets from *begin* on, and the place behind the last of them."""
    if len(data) - begin < _FEW_BYTES:
        return one_by_one(data, begin, len(data))
    first, place = one_by_one(data, begin, _CHAIN)
    if len(first) < _CHAIN:
        return first, place
    seeds = np.append(place, _guesses(data, place, np.diff(first)))
    some, place = _followed(data, seeds)
    rest, place = one_by_one(data, place, len(data))
    return np.concatenate((first, some, rest)), place


def one_by_one(data: "NDArray[np.uint8]", begin: int, most: int) -> "tuple[Places, int]":
    """Return the beginnings of at most so many packets, each found by the length of the one before, and the place behind."""
    buffer, place, before = data.data, begin, begin
    found = array("q")
    note = found.append
    last = len(data) - HEADER_BYTES  # where a header may begin
    while place <= last and len(found) < most:
        note(place)
        before, place = (
            place,
            place + HEADER_BYTES + (_LENGTH(buffer, place)[0] & LONGEST_BYTES),
        )
    if place > len(data):
        # Of the newest only a part has come.
        found.pop()
        place = before
    return np.array(found, np.int64), place


def _guesses(data: "NDArray[np.uint8]", begin: int, sizes: "Places") -> "Places":
    """Return places behind *begin*, in order, at which packets begin whose sequence numbers go on.

    sizes: the sizes of some packets with their headers; the others are about as long, so the third byte
        of their lengths is 0.
    """
    stride, window = _CHAIN * int(sizes.mean()), int(sizes.max() * _MARGIN)
    count = (len(data) - begin - window - HEADER_BYTES) // stride
    if count < 1 or window > stride:
        return np.empty(0, np.int64)
    # In each window, a stride behind the one before, a packet begins unless it is longer.
    thirds = np.ndarray(
        (count, window), np.uint8, data, begin + stride + 2 - window, (stride, 1)
    )
    which, offset = np.nonzero(thirds == 0)
    first = place = begin + stride - window + which * stride + offset
    # A guess stands if the packets behind it are shorter than 64 KB and their sequence numbers count up.
    for _ in range(_HOPS):
        following = place + HEADER_BYTES + data.take(place)
        following += data.take(place + 1).astype(np.int64) << 8
        inside = following < len(data) - HEADER_BYTES
        first, which, place, following = (
            some[inside] for some in (first, which, place, following)
        )
        counted = data.take(following + 3) == data.take(place + 3) + np.uint8(1)
        counted &= data.take(following + 2) == 0
        first, which, place = (some[counted] for some in (first, which, following))
    return first[np.append(True, which[1:] != which[:-1])] if len(first) else first


def _followed(data: "NDArray[np.uint8]", seeds: "Places") -> "tuple[Places, int]":
    """Return where packets begin from the first of *seeds* on, and where the next one does: at the last, or before a wrong one."""
    if len(seeds) < _HOPS:
        return seeds[:0], int(seeds[0])
    lengths = np.ndarray((len(data) - 3,), "<u4", data, 0, (1,))
    stops = seeds[1:]
    steps = [seeds[:-1]]
    has_arrived = False
    while not has_arrived:
        for _ in range(_LOOK_STEPS):
            ends = _end(lengths, steps[-1])
            # Who has arrived waits there for the others.
            steps.append(np.minimum(ends, stops))
        has_arrived = bool((steps[-1] == stops).all())
    chains = np.stack(steps, axis=1)
    on_the_way = chains < stops[:, None]
    last = chains[np.arange(len(chains)), on_the_way.sum(axis=1) - 1]
    wrong = np.flatnonzero(_end(lengths, last) != stops)
    right = int(wrong[0]) if len(wrong) else len(chains)
    return chains[:right][on_the_way[:right]], int(seeds[right])


def _end(lengths: "NDArray[np.uint32]", places: "Places") -> "Places":
    ends: Places = places + (lengths[places] & LONGEST_BYTES) + HEADER_BYTES
    return ends
