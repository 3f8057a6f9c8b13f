import pytest
from hypothesis import given, strategies as st

from streamfrom.proxy.errors import CannotUnpack, OutOfOrder, PacketTooLarge, WireError
from streamfrom.proxy.wire import commands
from streamfrom.proxy.wire.compression import ZLIB, Compression, packer_for, zstd_packer
from streamfrom.proxy.wire.constants import FRAME_BYTES_MAX, PROXY_OFFER, Capability
from streamfrom.proxy.wire.framing import Framer, frame, frames
from streamfrom.proxy.wire.login.auth import Authenticated
from streamfrom.proxy.wire.login.handshake import Greeting, LoginRequest, encode_login
from streamfrom.proxy.wire.server_connection import Closed, CommandReceived, LoginAttempt
from tests.proxy.wire.accounts import NONCE, PromptConnection, authenticator
from tests.proxy.wire.peers import encode_change_user
from tests.proxy.wire.streams import cut, places


PACKERS = [ZLIB, zstd_packer(3)]
ANY_SIZE = 1 << 24

packers = st.sampled_from(PACKERS)


def piece(packed, sequence=0, size=0):
    head = len(packed).to_bytes(3, "little") + bytes((sequence,)) + size.to_bytes(3, "little")
    return head + packed


def packed(packer, data):
    packing = packer.packing()
    return packing.compress(data) + packing.flush()


def unpacked(compression, data, bytes_max=ANY_SIZE):
    compression.feed(data)
    found = []
    while (one := compression.next_piece(bytes_max)) is not None:
        found.append(one)
    return b"".join(found)


@given(packers, st.lists(st.binary(max_size=200) | st.just(b"a" * 5000)), places)
def test_any_cut_of_what_is_packed_is_unpacked(packer, pieces, places):
    sender, receiver = Compression(packer), Compression(packer)
    stream = b"".join(map(sender.pack, pieces))
    found = b"".join(unpacked(receiver, part) for part in cut(stream, places))
    assert found == b"".join(pieces)
    assert receiver.next_sequence == sender.sequence == sum(map(bool, pieces)) % 256
    assert not receiver.has_piece


@given(packers, st.integers(0, (1 << 24) - 1), st.binary(max_size=100))
def test_noise_is_refused_and_nothing_worse(packer, size, noise):
    compression = Compression(packer)
    compression.feed(piece(noise, size=size))
    try:
        found = compression.next_piece(ANY_SIZE)
    except WireError:
        return
    assert found is not None
    assert len(found) == (size or len(noise))


@pytest.mark.parametrize("packer", PACKERS)
def test_more_than_a_piece_holds_is_sent_in_several(packer):
    data = b"ab" * (FRAME_BYTES_MAX // 2) + b"cde"
    sender = Compression(packer)
    sender.sequence = 255
    receiver = Compression(packer)
    receiver.next_sequence = 255
    assert unpacked(receiver, sender.pack(data)) == data
    assert receiver.next_sequence == sender.sequence == 1


@pytest.mark.parametrize("packer", PACKERS)
def test_what_is_not_as_long_as_announced_is_refused(packer):
    short, large = packed(packer, b"x" * 100), bytes(range(256)) * 5000
    for whole in (
        *(piece(short, size=announced) for announced in (1, 99, 101)),
        piece(short + b"y", size=100),
        piece(packed(packer, large)[:-5], size=len(large)),
    ):
        with pytest.raises(CannotUnpack) as caught:
            unpacked(Compression(packer), whole)
        assert caught.value.wire_code() == (1157, "08S01")
        assert str(caught.value) == "Couldn't uncompress communication packet"


@pytest.mark.parametrize("packer", PACKERS)
def test_a_bomb_is_unpacked_no_further_than_announced(packer):
    bomb = packed(packer, bytes(50_000_000))
    with pytest.raises(CannotUnpack):
        list(packer.unpack(bomb, 1000))


@pytest.mark.parametrize("packer", PACKERS)
@given(data=st.binary(min_size=1, max_size=3000), repeats=st.integers(1, 2000))
def test_a_large_piece_comes_in_bites_and_ends_where_it_said(packer, data, repeats):
    whole = data * repeats
    compression = Compression(packer)
    compression.feed(piece(packed(packer, whole), size=len(whole)))
    bites = []
    while (bite := compression.next_piece(ANY_SIZE)) is not None:
        bites.append(bite)
        assert compression.is_mid_piece == (len(b"".join(bites)) < len(whole))
    assert b"".join(bites) == whole
    assert max(map(len, bites)) <= 256 << 10
    assert compression.held_bytes == 0


@pytest.mark.parametrize("packer", PACKERS)
@given(
    sizes=st.lists(st.sampled_from([0, 10, 65_000, 70_000, 300_000]), max_size=5), places=places
)
def test_large_packets_are_packed_on_the_way_and_end_with_their_piece(packer, sizes, places):
    payloads = [bytes((number,)) * size for number, size in enumerate(sizes)]
    stream, _ = frames(payloads, 0)
    sender, receiver = Compression(packer), Compression(packer)
    framer = Framer(1 << 20)
    found = []
    for part in cut(stream, places):
        receiver.feed(sender.pack_whole(part))
        while (bite := receiver.next_piece(ANY_SIZE)) is not None:
            framer.feed(bite)
            while (payload := framer.next_packet()) is not None:
                found.append(payload)
            assert framer.is_empty or receiver.is_mid_piece
    assert found == payloads


@pytest.mark.parametrize("packer", PACKERS)
def test_a_packet_of_several_pieces_goes_on_in_no_more_than_two(packer):
    payload = bytes(FRAME_BYTES_MAX - 1)
    stream = frame(payload, 0) + frame(b"next", 1)
    sender, receiver = Compression(packer), Compression(packer)
    sent = [
        sender.pack_whole(stream[at : at + 300_000]) for at in range(0, len(stream), 300_000)
    ]
    assert unpacked(receiver, b"".join(sent)) == stream
    assert receiver.next_sequence == sender.sequence == 2


def test_a_window_that_needs_too_much_memory_is_refused():
    # A frame that wants a window of 128 MiB, and holds one block of one byte repeated.
    data = bytes.fromhex("28b52ffd 00 88 43 1f 00 00")
    with pytest.raises(CannotUnpack):
        list(zstd_packer(3).unpack(data, 1000))
    small = bytes.fromhex("28b52ffd 00 58 43 1f 00 00")
    assert list(zstd_packer(3).unpack(small, 1000)) == [bytes(1000)]


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (piece(b"", size=101)[:7], PacketTooLarge),
        (piece(b"x" * 101)[:7], PacketTooLarge),
        (piece(b"x", sequence=1), OutOfOrder),
    ],
)
def test_more_than_is_allowed_and_a_wrong_number_are_refused_when_announced(data, error):
    with pytest.raises(error):
        unpacked(Compression(ZLIB), data, 100)


def test_flags_choose_the_algorithm_and_a_level_is_kept_in_bounds():
    assert packer_for(PROXY_OFFER, 3) is None
    assert packer_for(int(Capability.COMPRESS), 3) is ZLIB
    assert packer_for(int(Capability.COMPRESS | Capability.ZSTD_COMPRESSION), 3) is ZLIB
    text = b"".join(b"%d " % (number**2) for number in range(10_000))

    def packed(packer):
        packing = packer.packing()
        return packing.compress(text) + packing.flush()

    levels = [packed(zstd_packer(level)) for level in range(1, 7)]
    assert len(set(levels)) == 6
    for asked, given_ in ((0, 1), (1, 1), (3, 3), (22, 6), (255, 6)):
        packer = packer_for(int(Capability.ZSTD_COMPRESSION), asked)
        assert packed(packer) == levels[given_ - 1]


class Client:
    """A connection of a client that compresses, logged in, and the client's own counting."""

    def __init__(self, **options):
        flags = int(PROXY_OFFER | Capability.COMPRESS)
        self.login = LoginRequest("empty", b"", None, flags, 45, plugin="caching_sha2_password")
        greeting = Greeting("8.0.36", 7, NONCE, flags)
        self.server = PromptConnection(greeting, authenticator("empty"), host="h", **options)
        self.server.receive_data(frame(encode_login(self.login), 1))
        self.server.accept()
        # The OK of the login is the last that is not packed.
        assert self.server.data_to_send().endswith(frame(b"\0\0\0\2\0\0\0", 2))
        self.packing = Compression(ZLIB)

    def send(self, data, sequence=0):
        self.packing.sequence = sequence
        return self.server.receive_data(self.packing.pack(data))

    def sent(self):
        assert self.server.compression is not None
        return self.server.compression.pack(self.server.data_to_send())


def test_the_answer_to_a_command_in_several_pieces_goes_on_counting():
    client = Client()
    packet = commands.query(b"select 1")
    assert client.send(packet[:3]) == []
    assert client.send(packet[3:], 1) == [CommandReceived(b"\x03select 1", 1, 2)]
    assert client.send(packet) == [CommandReceived(b"\x03select 1", 1, 1)]


def test_a_change_of_user_stays_packed():
    client = Client()
    events = client.send(frame(encode_change_user(client.login), 0))
    assert events == [LoginAttempt(client.login, is_change=True)]
    # Asked for a proof, and answered with the one for no password.
    assert client.sent()[3] == 1
    assert client.send(frame(b"", 2), 2) == [Authenticated("empty")]
    client.server.accept()
    assert client.sent()[3] == 3
    assert client.send(commands.query(b"do 1")) == [CommandReceived(b"\x03do 1", 1, 1)]


@pytest.mark.parametrize(
    ("data", "error"),
    [(piece(b"no zlib", size=100), CannotUnpack), (piece(b"", size=1005), PacketTooLarge)],
)
def test_a_refusal_is_numbered_behind_what_is_refused(data, error):
    client = Client(packet_bytes_max=1000)
    (closed,) = client.server.receive_data(data)
    assert isinstance(closed, Closed)
    assert isinstance(closed.error, error)
    assert client.sent()[3] == 1
    assert client.send(commands.query(b"do 1")) == []


def test_little_that_becomes_much_is_unpacked_bit_by_bit():
    client = Client()
    packet = commands.query(b"x" * 700_000)
    stream = b"".join(Compression(ZLIB).pack(packet) for _ in range(5))
    counts = [len(client.server.receive_data(stream))]
    while client.server.holds_back:
        counts.append(len(client.server.receive_data(b"")))
    # A call unpacks 1 MiB and what its last bite has beyond, wherever a packet ends.
    assert counts == [1, 2, 2]
