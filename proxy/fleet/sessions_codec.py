"""A line of SHOW PROCESSLIST, and who asks for it, as messages between members. Pure."""

from __future__ import annotations

from typing import Final

from streamfrom.proxy.fleet import members_pb2 as pb
from streamfrom.proxy.local_statements.show_processlist import Process
from streamfrom.proxy.sessions.asker import Asker


# Of the text of a statement so much travels: ten thousand sessions may each run one of 64 MB.
INFO_BYTES_MAX: Final = 64 << 10


def encode_process(process: Process) -> pb.Session:
    """Return the message of a line."""
    info = process.info
    return pb.Session(
        connection_id=process.connection_id,
        user=process.user,
        host=process.host,
        target=process.target,
        command=process.command,
        time_s=process.time_s,
        state=process.state,
        info=None if info is None else bytes(info[:INFO_BYTES_MAX]),
    )


def decode_process(session: pb.Session) -> Process:
    """Return the line of a message."""
    return Process(
        connection_id=session.connection_id,
        user=session.user,
        host=session.host,
        target=session.target if session.HasField("target") else None,
        command=session.command,
        time_s=session.time_s,
        state=session.state,
        info=session.info if session.HasField("info") else None,
    )


def encode_asker(asker: Asker) -> pb.Asker:
    """Return the message of who asks."""
    return pb.Asker(user=asker.user, is_admin=asker.is_admin)


def decode_asker(asker: pb.Asker) -> Asker:
    """Return who asks."""
    return Asker(asker.user, asker.is_admin)
