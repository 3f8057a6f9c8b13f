"""A line of SHOW PROCESSLIST, and who asks for it, as messages between members. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from streamfrom.proxy.fleet import members_pb2 as pb
from streamfrom.proxy.fleet.fields_codec import FieldsCodec
from streamfrom.proxy.local_statements.show_processlist import Process
from streamfrom.proxy.sessions.services import Asker


# Of the text of a statement so much travels: ten thousand sessions may each run one of 64 MB.
INFO_BYTES_MAX: Final = 64 << 10

ASKERS: Final = FieldsCodec(Asker, pb.Asker)
_PROCESSES: Final = FieldsCodec(Process, pb.Session)


def encode_process(process: Process) -> pb.Session:
    """Return the message of a line."""
    info = process.info
    cut = None if info is None else bytes(info[:INFO_BYTES_MAX])
    return _PROCESSES.encode(replace(process, info=cut))


decode_process: Final = _PROCESSES.decode
