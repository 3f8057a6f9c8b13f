"""The settings of a message table: its comment marks the table, and the comment's keys set its behaviour.

    vitess_message,vt_ack_wait=30,vt_purge_after=86400,vt_batch_size=10,
    vt_cache_size=10000,vt_poller_interval=30

The grammar is Vitess's (split at ``,``, then at ``=``; a piece without exactly one ``=`` is no
setting; the last of two wins), with three improvements: blanks around keys and values do not
count, an unusable value is an error that names its key, and unknown ``vt_`` keys are
reported.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from streamfrom.engine.errors import EngineError
from streamfrom.engine.messaging.table.message import AUTO
from streamfrom.engine.messaging.table.setting_keys import KEYS
from streamfrom.engine.sharding.sequence_tables import MARK as SEQUENCE_MARK


MARK = "vitess_message"
# In the comment of any table: the queues whose dead letters it takes.
CONSENT = "vt_dead_letters_of"
COUNT_MAX = 2**31 - 1
# Rates are counted in millionths of a message a second.
RATE_UNIT = 10**6
RELEASE_AFTER_NS = 5 * 10**9
LEASE_DELAY_NS = 10**9
WAIT_MAX_NS = 100 * 365 * 86_400 * 10**9  # 100 years; time_next + this fits a signed BIGINT

_Value = TypeVar("_Value")
_Default = TypeVar("_Default")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
# Clients write limits too, and int() refuses texts of thousands of digits.
_LIMIT_LENGTH_MAX = 100
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_SWITCHES = {"on": True, "1": True, "true": True, "off": False, "0": False, "false": False}
_VINDEX = re.compile(r"(\w+) ?\( ?`?([^`()]+?)`? ?\)", re.ASCII)
# Former names of keys.
FORMER = {"vt_key_in_flight": "vt_max_per_key"}


class CommentError(EngineError):
    """A definition that is marked as a message table but cannot be used; the text is the reason.

    others: the further reasons.
    """

    others: tuple[str, ...] = ()

    @classmethod
    def of(cls, reasons: list[str]) -> CommentError:
        """Return the error for one or more *reasons*."""
        error = cls(reasons[0])
        error.others = tuple(reasons[1:])
        return error


@dataclass(frozen=True, slots=True)
class Properties:
    """The settings of one message table, as `KEYS` describes them. Zero and None stand for no limit.

    max_rate: in millionths of a message a second.
    prefetch: 0 for no limit, AUTO for a window that follows its acks.
    release_after_ns: None for not before the leases end.
    lease_delay_ns: 0 if every lease is written before the message is delivered.
    groups: the columns of `vt_group` and `vt_after`.
    shard_by: the vindex and the column.
    newest: as in Vitess: the latest ``time_next`` first, never-sent rows last.
    in_order: how many messages of a key may have started and be unacked (`engine.messaging.order.key_order`).
        In strict order, with key None, all messages of a shard have the same key.
    warnings: sentences for `streamfrom check`.
    """

    ack_wait_ns: int
    purge_after_ns: int
    batch_size: int
    cache_size: int
    poller_interval_ns: int
    min_backoff_ns: int
    max_backoff_ns: int = 0
    max_attempts: int = 0
    max_in_flight: int | None = None
    max_rate: int | None = None
    dead_letter: str | None = None
    message_cols: tuple[str, ...] | None = None
    prefetch: int = AUTO
    release_after_ns: int | None = RELEASE_AFTER_NS
    lease_delay_ns: int = 0
    acks_early: bool = False
    paused: bool = False
    delayed: bool = True
    groups: tuple[str, str] | None = None
    auto_id: bool = False
    shard_by: tuple[str, str] | None = None
    newest: bool = False
    key: str | None = None
    in_order: int | None = None
    fair: bool = False
    warnings: tuple[str, ...] = ()


def is_message_table(comment: str) -> bool:
    """Return whether *comment* marks a message table; the sequence mark goes before."""
    return SEQUENCE_MARK not in comment and MARK in comment


def is_nearly_marked(comment: str) -> bool:
    """Return whether *comment* seems meant to mark a message table, but does not.

    It has a key of ours or a word close to the mark.
    """
    if is_message_table(comment) or SEQUENCE_MARK in comment:
        return False
    words = re.findall(r"[a-z_]+", comment.lower())
    return bool(
        (KEYS.keys() - {CONSENT}).intersection(words)
        or difflib.get_close_matches(MARK, words, cutoff=0.85)
    )


def parse_comment(comment: str) -> Properties:
    """Return the settings in *comment*, or raise CommentError with the first fault, and the others.

    Faults are found in the original's order: the required keys, then the bounds of the
    backoff.
    """
    reader = _CommentReader(settings := settings_of(comment))
    required, take = reader.required, reader.take
    ack_wait_ns = required("vt_ack_wait", _SECONDS)
    given = Properties(
        ack_wait_ns=ack_wait_ns,
        purge_after_ns=required("vt_purge_after", _SECONDS),
        batch_size=required("vt_batch_size", _COUNT),
        cache_size=required("vt_cache_size", _COUNT),
        poller_interval_ns=required("vt_poller_interval", _SECONDS),
        min_backoff_ns=take("vt_min_backoff", _SECONDS, ack_wait_ns),
        max_backoff_ns=take("vt_max_backoff", _SECONDS, 0),
        max_attempts=take("vt_max_attempts", _LIMIT, 0),
        dead_letter=take("vt_dead_letter", _TABLE, None),
        prefetch=take("vt_prefetch", _PREFETCH, AUTO),
        release_after_ns=None
        if settings.get("vt_release_after") == "never"
        else take("vt_release_after", _SECONDS_OR_NEVER, RELEASE_AFTER_NS),
        max_in_flight=take("vt_max_in_flight", _COUNT, None),
        max_rate=take("vt_max_rate", _RATE, None),
        lease_delay_ns=_lease_delay_ns(reader, ack_wait_ns),
        acks_early=_acks_early(reader),
        paused=take("vt_paused", _SWITCH, default=False),
        delayed=take("vt_delayed", _SWITCH, default=True),
        auto_id=take("vt_auto_id", _SWITCH, default=False),
        shard_by=take("vt_shard_by", _VINDEX_AND_COLUMN, None),
        groups=_groups(reader),
        newest=take("vt_order", _ORDER, "oldest") == "newest",
        key=None if settings.get("vt_order") == "strict" else settings.get("vt_key") or None,
        in_order=_in_order(reader),
        fair=_fair(reader),
        message_cols=take("vt_message_cols", _COLUMNS, None),
    )
    if reader.faults:
        raise CommentError.of(reader.faults)
    advice: list[str] = []
    if given.max_backoff_ns and given.min_backoff_ns > given.max_backoff_ns:
        name = "vt_min_backoff" if settings.get("vt_min_backoff") else "vt_ack_wait"
        advice.append(
            f"{name} {settings[name]} is more than vt_max_backoff {settings['vt_max_backoff']}:"
            " every wait is about the maximum"
        )
    if given.cache_size < given.batch_size:
        advice.append(
            f"vt_cache_size {given.cache_size} is less than vt_batch_size {given.batch_size}: no batch is"
            f" larger than {given.cache_size}"
        )
    if given.dead_letter is not None and not given.max_attempts:
        advice.append("vt_dead_letter without vt_max_attempts: no message ever goes there")
    if settings.get("vt_lease_delay") and not given.lease_delay_ns:
        advice.append("vt_lease_delay without vt_lease = lazy: every lease is written at once")
    if given.paused:
        advice.append("vt_paused is on: no message is sent")
    return replace(given, warnings=(*advice, *unread_keys(comment)))


@dataclass(frozen=True, slots=True)
class _ValueKind(Generic[_Value]):
    """*what* names the expected values; *read* returns None for anything else."""

    read: Callable[[str], _Value | None]
    what: str


class _CommentReader:
    """The settings of a comment, and the faults found in them so far."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.settings = settings
        # Ignoring one of them would let messages overtake each other that must stay in order.
        self.faults = [
            f"{key} is called {FORMER[key]} now" for key in settings if key in FORMER
        ]

    def required(self, key: str, kind: _ValueKind[int]) -> int:
        """Return the value of *key*, or 0 with a fault."""
        if not self.settings.get(key):
            self.faults.append(f"attribute {key} not specified for message table")
        return self.take(key, kind, 0)

    def take(self, key: str, kind: _ValueKind[_Value], default: _Default) -> _Value | _Default:
        """Return the value of *key*, or *default* if it has none or, with a fault, not one of *kind*."""
        if not (text := self.settings.get(key)):
            return default
        value = kind.read(text)
        if value is None:
            self.faults.append(f"{key} must be {kind.what}, not '{text}'")
            return default
        return value


def _groups(reader: _CommentReader) -> tuple[str, str] | None:
    group, after = reader.settings.get("vt_group"), reader.settings.get("vt_after")
    if not (group or after):
        return None
    if not (group and after):
        named, missing = ("vt_group", "vt_after") if group else ("vt_after", "vt_group")
        reader.faults.append(f"{named} needs {missing}: groups are two columns")
        return None
    if group.lower() == after.lower():
        reader.faults.append(f"vt_group and vt_after must be two columns, not both '{group}'")
        return None
    return group, after


def _in_order(reader: _CommentReader) -> int | None:
    """Return how many messages of a key may have started."""
    key, order = reader.settings.get("vt_key"), reader.settings.get("vt_order")
    limit = reader.take("vt_max_per_key", _COUNT, None)
    if reader.settings.get("vt_max_per_key") and not key:
        reader.faults.append(
            "vt_max_per_key needs vt_key, the column that messages of a kind share"
        )
    if order == "strict" and key:
        reader.faults.append(
            "vt_order = strict cannot be with vt_key: all messages of a shard go one by one"
        )
    if order == "newest" and limit is not None:
        reader.faults.append(
            "vt_order = newest cannot be with vt_max_per_key: a key goes oldest first"
        )
    return 1 if order == "strict" else limit


def _fair(reader: _CommentReader) -> bool:
    if not reader.take("vt_fair", _SWITCH, default=False):
        return False
    if not reader.settings.get("vt_key"):
        reader.faults.append("vt_fair needs vt_key, the column that messages of a kind share")
    if (order := reader.settings.get("vt_order")) in {"newest", "strict"}:
        reader.faults.append(f"vt_order = {order} cannot be with vt_fair: keys take turns")
    return True


def _lease_delay_ns(reader: _CommentReader, ack_wait_ns: int) -> int:
    """Return how long leases exist only in memory; 0 for never."""
    # A limit is exact for a new dispatcher only if the rows show which messages are in flight.
    is_limited = bool(reader.settings.get("vt_max_in_flight"))
    is_lazy = reader.take("vt_lease", _LEASE, default=not is_limited)
    delay_ns = reader.take("vt_lease_delay", _SECONDS, None)
    if delay_ns is not None and 0 < ack_wait_ns < 2 * delay_ns:
        given = reader.settings["vt_lease_delay"]
        reader.faults.append(
            f"vt_lease_delay must be at most half of vt_ack_wait, not '{given}'"
        )
    return (delay_ns or min(LEASE_DELAY_NS, max(1, ack_wait_ns // 2))) if is_lazy else 0


def _acks_early(reader: _CommentReader) -> bool:
    is_early = reader.take("vt_ack", _ACK, default=False)
    if is_early and (
        reader.settings.get("vt_order") == "strict" or reader.settings.get("vt_max_per_key")
    ):
        reader.faults.append(
            "vt_ack must be 'committed' with vt_order = strict or vt_max_per_key, not 'early':"
            " a message holds back others until its row shows that it was acknowledged"
        )
    return is_early


def settings_of(comment: str) -> dict[str, str]:
    """Return the keys and values in *comment*, known or not."""
    pieces = (piece.split("=") for piece in comment.split(","))
    return {piece[0].strip(): piece[1].strip() for piece in pieces if len(piece) == 2}


def read_prefetch(text: str) -> int | None:
    """Return the prefetch in *text*: AUTO, or a number as `read_limit` reads it; None for anything else."""
    return AUTO if text.lower() == "auto" else read_limit(text)


def read_limit(text: str) -> int | None:
    """Return the number in *text*, 0 standing for no limit; None for anything else."""
    if len(text) <= _LIMIT_LENGTH_MAX and _WHOLE.fullmatch(text) and int(text) >= 0:
        return min(int(text), COUNT_MAX)
    return None


def _seconds_ns(text: str) -> int | None:
    return _scaled(text, WAIT_MAX_NS // 10**9, 10**9)


def _rate(text: str) -> int | None:
    return _scaled(text, COUNT_MAX, RATE_UNIT)


def _scaled(text: str, most: int, unit: int) -> int | None:
    """Return the number above 0 in *text*, in *unit*-ths; at most *most*, so that 1e300 is no overflow."""
    if _NUMBER.fullmatch(text) and (scaled := round(min(float(text), float(most)) * unit)) > 0:
        return scaled
    return None


def _vindex_and_column(text: str) -> tuple[str, str] | None:
    found = _VINDEX.fullmatch(text)
    return None if found is None else (found[1], found[2])


_SECONDS = _ValueKind(_seconds_ns, "a number of seconds greater than 0")
_SECONDS_OR_NEVER = _ValueKind(_seconds_ns, f"{_SECONDS.what} or 'never'")
_COUNT = _ValueKind(lambda text: read_limit(text) or None, "a whole number greater than 0")
_RATE = _ValueKind(_rate, "a number of messages a second greater than 0")
_LIMIT = _ValueKind(read_limit, "a whole number, 0 for no limit")
_PREFETCH = _ValueKind(read_prefetch, "'auto' or a whole number, 0 for no limit")
_SWITCH = _ValueKind(lambda text: _SWITCHES.get(text.lower()), "'on' or 'off'")
_LEASE = _ValueKind({"lazy": True, "written": False}.get, "'lazy' or 'written'")
_ACK = _ValueKind({"committed": False, "early": True}.get, "'committed' or 'early'")
_ORDER = _ValueKind(
    {name: name for name in ("oldest", "newest", "strict")}.get,
    "'oldest', 'newest' or 'strict'",
)
_TABLE = _ValueKind(
    lambda text: None if "." in text else text, "a table of the same keyspace, without its name"
)
_COLUMNS = _ValueKind(lambda text: tuple(name.strip() for name in text.split("|")), "columns")
_VINDEX_AND_COLUMN = _ValueKind(_vindex_and_column, "a vindex and its column, as in hash(id)")


def unread_keys(comment: str) -> tuple[str, ...]:
    """Return a sentence for each key in *comment* that has no effect."""
    settings = settings_of(comment)
    unknown = [
        f"unknown key '{key}' in the comment is ignored{_hint(key)}"
        for key in settings
        if key.startswith("vt_") and key not in KEYS
    ]
    names = [piece.split("=")[0].strip() for piece in comment.split(",")]
    unread = [
        f"'{name}' in the comment has no single value and is ignored"
        for name in dict.fromkeys(names)
        if name.startswith("vt_") and not settings.get(name)
    ]
    return tuple(unknown + unread)


def _hint(key: str) -> str:
    near = difflib.get_close_matches(key, KEYS, n=1, cutoff=0.75)
    return f"; did you mean {near[0]}?" if near else ""


def in_flight_fault(properties: Properties, shards: int) -> str | None:
    """Return why `vt_max_in_flight` cannot be divided among *shards* shards, None if it can."""
    limit = properties.max_in_flight
    if limit is None or limit >= shards:
        return None
    return (
        f"vt_max_in_flight must be at least {shards}, not '{limit}': each of the {shards} shards has"
        " its own share, and one without any would send nothing"
    )
