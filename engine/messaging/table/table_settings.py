"""The settings of a message table: its comment marks the table, and the comment's keys say how it behaves.

    vitess_message,vt_ack_wait=30,vt_purge_after=86400,vt_batch_size=10,
    vt_cache_size=10000,vt_poller_interval=30

The grammar is Vitess's (split at ``,``, then at ``=``; a piece without exactly one ``=`` is no
setting; the last of two wins), with three improvements: blanks around keys and values do not
count, a value that cannot be used is an error that names its key, and unknown ``vt_`` keys are
reported.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from streamfrom.engine.errors import EngineError
from streamfrom.engine.messaging.table.message import AUTO
from streamfrom.engine.messaging.table.setting_keys import KEYS


MARK = "vitess_message"
SEQUENCE_MARK = "vitess_sequence"
# In the comment of any table: the queues whose dead letters it takes.
CONSENT = "vt_dead_letters_of"
COUNT_MAX = 2**31 - 1
# Rates are counted in millionths of a message a second.
RATE_UNIT = 10**6
RELEASE_AFTER_NS = 5 * 10**9
LEASE_DELAY_NS = 10**9
WAIT_MAX_NS = 100 * 365 * 86_400 * 10**9  # 100 years; time_next + this fits a signed BIGINT

_Value = TypeVar("_Value")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
# A client writes limits too, and int() refuses what is thousands of digits long.
_LIMIT_LENGTH_MAX = 100
_COUNT = re.compile(r"[+-]?\d+", re.ASCII)
_SWITCHES = {"on": True, "1": True, "true": True, "off": False, "0": False, "false": False}
_SHARD_BY = re.compile(r"(\w+) ?\( ?`?([^`()]+?)`? ?\)", re.ASCII)
_ORDERS = ("oldest", "newest", "strict")
_LEASES = {"lazy": True, "written": False}
_LEASE_DEFAULT = "lazy"
_ACKS = {"committed": False, "early": True}
# What a key was called, and is called now.
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
    """Return whether *comment* may be meant to mark a message table, and does not.

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

    Faults are looked for in the original's order: the required keys, then the bounds of the
    backoff.
    """
    settings = settings_of(comment)
    # Ignored, one of them would let messages pass each other that have to go in order.
    faults = [f"{key} is called {FORMER[key]} now" for key in settings if key in FORMER]

    def take(read: Callable[[dict[str, str], str], int], key: str) -> int:
        return _taken(read, settings, key, faults) or 0

    ack_wait_ns = take(_duration_ns, "vt_ack_wait")
    purge_after_ns = take(_duration_ns, "vt_purge_after")
    batch_size = take(_count, "vt_batch_size")
    cache_size = take(_count, "vt_cache_size")
    poller_interval_ns = take(_duration_ns, "vt_poller_interval")
    min_backoff_ns, max_backoff_ns = ack_wait_ns, 0
    if settings.get("vt_min_backoff"):
        min_backoff_ns = take(_duration_ns, "vt_min_backoff")
    if settings.get("vt_max_backoff"):
        max_backoff_ns = take(_duration_ns, "vt_max_backoff")
    max_attempts = 0
    if settings.get("vt_max_attempts"):
        max_attempts = take(_limit, "vt_max_attempts")
    dead_letter = settings.get("vt_dead_letter") or None
    if dead_letter is not None and "." in dead_letter:
        faults.append(
            f"vt_dead_letter must be a table of the same keyspace, without its name, not '{dead_letter}'"
        )
    prefetch = AUTO
    if settings.get("vt_prefetch"):
        prefetch = take(_prefetch, "vt_prefetch")
    release_after_ns: int | None = RELEASE_AFTER_NS
    if settings.get("vt_release_after") == "never":
        release_after_ns = None
    elif settings.get("vt_release_after"):
        release_after_ns = take(_duration_or_never_ns, "vt_release_after")
    max_in_flight = None
    if settings.get("vt_max_in_flight"):
        max_in_flight = _taken(_count, settings, "vt_max_in_flight", faults)
    max_rate = None
    if settings.get("vt_max_rate"):
        max_rate = _taken(_rate, settings, "vt_max_rate", faults)
    lease_delay_ns = _lease_delay_ns(settings, ack_wait_ns, faults)
    acks_early = _acks_early(settings, faults)
    paused = bool(settings.get("vt_paused") and take(_switch, "vt_paused"))
    delayed = True
    if settings.get("vt_delayed"):
        delayed = bool(_taken(_switch, settings, "vt_delayed", faults))
    auto_id = bool(settings.get("vt_auto_id") and take(_switch, "vt_auto_id"))
    shard_by = None
    if settings.get("vt_shard_by"):
        shard_by = _taken(_vindex_and_column, settings, "vt_shard_by", faults)
    groups = _groups(settings, faults)
    order = settings.get("vt_order") or "oldest"
    if order not in _ORDERS:
        faults.append(f"vt_order must be 'oldest', 'newest' or 'strict', not '{order}'")
    key, in_order = _key_and_limit(settings, faults)
    fair = _fair(settings, faults)
    if faults:
        raise CommentError.of(faults)
    advice: list[str] = []
    if max_backoff_ns and min_backoff_ns > max_backoff_ns:
        name = "vt_min_backoff" if settings.get("vt_min_backoff") else "vt_ack_wait"
        advice.append(
            f"{name} {settings[name]} is more than vt_max_backoff {settings['vt_max_backoff']}:"
            " every wait is about the maximum"
        )
    if cache_size < batch_size:
        advice.append(
            f"vt_cache_size {cache_size} is less than vt_batch_size {batch_size}: no batch is"
            f" larger than {cache_size}"
        )
    if dead_letter is not None and not max_attempts:
        advice.append("vt_dead_letter without vt_max_attempts: no message ever goes there")
    if settings.get("vt_lease_delay") and not lease_delay_ns:
        advice.append("vt_lease_delay without vt_lease = lazy: every lease is written at once")
    if paused:
        advice.append("vt_paused is on: no message is sent")
    columns = settings.get("vt_message_cols")
    return Properties(
        ack_wait_ns=ack_wait_ns,
        purge_after_ns=purge_after_ns,
        batch_size=batch_size,
        cache_size=cache_size,
        poller_interval_ns=poller_interval_ns,
        min_backoff_ns=min_backoff_ns,
        max_backoff_ns=max_backoff_ns,
        max_attempts=max_attempts,
        max_in_flight=max_in_flight,
        max_rate=max_rate,
        dead_letter=dead_letter,
        message_cols=tuple(name.strip() for name in columns.split("|")) if columns else None,
        prefetch=prefetch,
        release_after_ns=release_after_ns,
        lease_delay_ns=lease_delay_ns,
        acks_early=acks_early,
        paused=paused,
        delayed=delayed,
        groups=groups,
        auto_id=auto_id,
        shard_by=shard_by,
        newest=order == "newest",
        key=key,
        in_order=in_order,
        fair=fair,
        warnings=(*advice, *unread_keys(comment)),
    )


def _groups(settings: dict[str, str], faults: list[str]) -> tuple[str, str] | None:
    group, after = settings.get("vt_group"), settings.get("vt_after")
    if not (group or after):
        return None
    if not (group and after):
        named, missing = ("vt_group", "vt_after") if group else ("vt_after", "vt_group")
        faults.append(f"{named} needs {missing}: groups are two columns")
        return None
    if group.lower() == after.lower():
        faults.append(f"vt_group and vt_after must be two columns, not both '{group}'")
        return None
    return group, after


def _key_and_limit(
    settings: dict[str, str], faults: list[str]
) -> tuple[str | None, int | None]:
    """Return the column of the keys, and how many messages of one may have started."""
    key, limit = settings.get("vt_key") or None, None
    if settings.get("vt_max_per_key"):
        limit = _taken(_count, settings, "vt_max_per_key", faults)
        if key is None:
            faults.append(
                "vt_max_per_key needs vt_key, the column that messages of a kind share"
            )
    order = settings.get("vt_order")
    if order == "strict" and key is not None:
        faults.append(
            "vt_order = strict cannot be with vt_key: all messages of a shard go one by one"
        )
    if order == "newest" and limit is not None:
        faults.append(
            "vt_order = newest cannot be with vt_max_per_key: a key goes oldest first"
        )
    return (None, 1) if order == "strict" else (key, limit)


def _fair(settings: dict[str, str], faults: list[str]) -> bool:
    if not settings.get("vt_fair") or not _taken(_switch, settings, "vt_fair", faults):
        return False
    if not settings.get("vt_key"):
        faults.append("vt_fair needs vt_key, the column that messages of a kind share")
    if (order := settings.get("vt_order")) in {"newest", "strict"}:
        faults.append(f"vt_order = {order} cannot be with vt_fair: keys take turns")
    return True


def _lease_delay_ns(settings: dict[str, str], ack_wait_ns: int, faults: list[str]) -> int:
    """Return how long leases are in memory alone; 0 for not at all."""
    # A limit is exact for a new dispatcher if the rows show it what is in flight.
    default = "written" if settings.get("vt_max_in_flight") else _LEASE_DEFAULT
    kind = settings.get("vt_lease") or default
    if kind not in _LEASES:
        faults.append(f"vt_lease must be 'lazy' or 'written', not '{kind}'")
    delay_ns = min(LEASE_DELAY_NS, max(1, ack_wait_ns // 2))
    if settings.get("vt_lease_delay"):
        given_ns = _taken(_duration_ns, settings, "vt_lease_delay", faults)
        if given_ns is not None and 0 < ack_wait_ns < 2 * given_ns:
            faults.append(
                f"vt_lease_delay must be at most half of vt_ack_wait, not '{settings['vt_lease_delay']}'"
            )
        delay_ns = given_ns or delay_ns
    return delay_ns if _LEASES.get(kind) else 0


def _acks_early(settings: dict[str, str], faults: list[str]) -> bool:
    kind = settings.get("vt_ack") or "committed"
    if kind not in _ACKS:
        faults.append(f"vt_ack must be 'committed' or 'early', not '{kind}'")
    elif kind == "early" and (
        settings.get("vt_order") == "strict" or settings.get("vt_max_per_key")
    ):
        faults.append(
            "vt_ack must be 'committed' with vt_order = strict or vt_max_per_key, not 'early':"
            " a message holds back others until its row shows that it was acknowledged"
        )
    return _ACKS.get(kind, False)


def _taken(
    read: Callable[[dict[str, str], str], _Value],
    settings: dict[str, str],
    key: str,
    faults: list[str],
) -> _Value | None:
    try:
        return read(settings, key)
    except CommentError as error:
        faults.append(str(error))
        return None


def settings_of(comment: str) -> dict[str, str]:
    """Return the keys and values in *comment*, known or not."""
    pieces = (piece.split("=") for piece in comment.split(","))
    return {piece[0].strip(): piece[1].strip() for piece in pieces if len(piece) == 2}


def _required(settings: dict[str, str], key: str) -> str:
    value = settings.get(key)
    if not value:
        raise CommentError(f"attribute {key} not specified for message table")
    return value


def _duration_or_never_ns(settings: dict[str, str], key: str) -> int:
    return _duration_ns(settings, key, " or 'never'")


def _duration_ns(settings: dict[str, str], key: str, others: str = "") -> int:
    text = _required(settings, key)
    if _NUMBER.fullmatch(text):
        # Bounded before the product, so that 1e300 is a hundred years and not an overflow.
        duration_ns = round(min(float(text), float(WAIT_MAX_NS // 10**9)) * 1e9)
        if duration_ns > 0:
            return duration_ns
    raise CommentError(
        f"{key} must be a number of seconds greater than 0{others}, not '{text}'"
    )


def _count(settings: dict[str, str], key: str) -> int:
    text = _required(settings, key)
    count = read_limit(text)
    if not count:
        raise CommentError(f"{key} must be a whole number greater than 0, not '{text}'")
    return count


def _rate(settings: dict[str, str], key: str) -> int:
    text = settings[key]
    if _NUMBER.fullmatch(text):
        rate = round(min(float(text), float(COUNT_MAX)) * RATE_UNIT)
        if rate > 0:
            return rate
    raise CommentError(
        f"{key} must be a number of messages a second greater than 0, not '{text}'"
    )


def read_prefetch(text: str) -> int | None:
    """Return the prefetch that *text* writes: AUTO, or a number as of `read_limit`; None for anything else."""
    return AUTO if text.lower() == "auto" else read_limit(text)


def read_limit(text: str) -> int | None:
    """Return the number that *text* writes, 0 standing for no limit; None for anything else."""
    if len(text) <= _LIMIT_LENGTH_MAX and _COUNT.fullmatch(text) and int(text) >= 0:
        return min(int(text), COUNT_MAX)
    return None


def _read_switch(text: str) -> bool | None:
    return _SWITCHES.get(text.lower())


def _read_shard_by(text: str) -> tuple[str, str] | None:
    found = _SHARD_BY.fullmatch(text)
    return None if found is None else (found[1], found[2])


def _reader(
    read: Callable[[str], _Value | None], what: str
) -> Callable[[dict[str, str], str], _Value]:
    """Return what reads the value of a key by *read*, which returns None for a text that is not *what*."""

    def value_of(settings: dict[str, str], key: str) -> _Value:
        value = read(settings[key])
        if value is None:
            raise CommentError(f"{key} must be {what}, not '{settings[key]}'")
        return value

    return value_of


_limit = _reader(read_limit, "a whole number, 0 for no limit")
_prefetch = _reader(read_prefetch, "'auto' or a whole number, 0 for no limit")
_switch = _reader(_read_switch, "'on' or 'off'")
_vindex_and_column = _reader(_read_shard_by, "a vindex and its column, as in hash(id)")


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
    """Return why `vt_max_in_flight` cannot be one of *shards* shards, None if it can."""
    limit = properties.max_in_flight
    if limit is None or limit >= shards:
        return None
    return (
        f"vt_max_in_flight must be at least {shards}, not '{limit}': each of the {shards} shards has"
        " its own share, and one without any would send nothing"
    )
