from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ToDispatcher(_message.Message):
    __slots__ = ("open_stream", "rows_taken", "close_stream", "forget_stream", "wait_over", "news", "dispatching", "definitions_changed", "show_leases", "ack_early", "share_given", "progressed_elsewhere", "more")
    OPEN_STREAM_FIELD_NUMBER: _ClassVar[int]
    ROWS_TAKEN_FIELD_NUMBER: _ClassVar[int]
    CLOSE_STREAM_FIELD_NUMBER: _ClassVar[int]
    FORGET_STREAM_FIELD_NUMBER: _ClassVar[int]
    WAIT_OVER_FIELD_NUMBER: _ClassVar[int]
    NEWS_FIELD_NUMBER: _ClassVar[int]
    DISPATCHING_FIELD_NUMBER: _ClassVar[int]
    DEFINITIONS_CHANGED_FIELD_NUMBER: _ClassVar[int]
    SHOW_LEASES_FIELD_NUMBER: _ClassVar[int]
    ACK_EARLY_FIELD_NUMBER: _ClassVar[int]
    SHARE_GIVEN_FIELD_NUMBER: _ClassVar[int]
    PROGRESSED_ELSEWHERE_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    open_stream: OpenStream
    rows_taken: RowsTaken
    close_stream: CloseStream
    forget_stream: ForgetStream
    wait_over: WaitOver
    news: News
    dispatching: Dispatching
    definitions_changed: DefinitionsChanged
    show_leases: ShowLeases
    ack_early: AckEarly
    share_given: ShareGiven
    progressed_elsewhere: ProgressedElsewhere
    more: _containers.RepeatedCompositeFieldContainer[ToDispatcher]
    def __init__(self, open_stream: _Optional[_Union[OpenStream, _Mapping]] = ..., rows_taken: _Optional[_Union[RowsTaken, _Mapping]] = ..., close_stream: _Optional[_Union[CloseStream, _Mapping]] = ..., forget_stream: _Optional[_Union[ForgetStream, _Mapping]] = ..., wait_over: _Optional[_Union[WaitOver, _Mapping]] = ..., news: _Optional[_Union[News, _Mapping]] = ..., dispatching: _Optional[_Union[Dispatching, _Mapping]] = ..., definitions_changed: _Optional[_Union[DefinitionsChanged, _Mapping]] = ..., show_leases: _Optional[_Union[ShowLeases, _Mapping]] = ..., ack_early: _Optional[_Union[AckEarly, _Mapping]] = ..., share_given: _Optional[_Union[ShareGiven, _Mapping]] = ..., progressed_elsewhere: _Optional[_Union[ProgressedElsewhere, _Mapping]] = ..., more: _Optional[_Iterable[_Union[ToDispatcher, _Mapping]]] = ...) -> None: ...

class FromDispatcher(_message.Message):
    __slots__ = ("rows_sent", "stream_ended", "finish", "request_done", "keeps_share", "want_share", "report_progress", "more")
    ROWS_SENT_FIELD_NUMBER: _ClassVar[int]
    STREAM_ENDED_FIELD_NUMBER: _ClassVar[int]
    FINISH_FIELD_NUMBER: _ClassVar[int]
    REQUEST_DONE_FIELD_NUMBER: _ClassVar[int]
    KEEPS_SHARE_FIELD_NUMBER: _ClassVar[int]
    WANT_SHARE_FIELD_NUMBER: _ClassVar[int]
    REPORT_PROGRESS_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    rows_sent: RowsSent
    stream_ended: StreamEnded
    finish: Finish
    request_done: RequestDone
    keeps_share: KeepsShare
    want_share: WantShare
    report_progress: ReportProgress
    more: _containers.RepeatedCompositeFieldContainer[FromDispatcher]
    def __init__(self, rows_sent: _Optional[_Union[RowsSent, _Mapping]] = ..., stream_ended: _Optional[_Union[StreamEnded, _Mapping]] = ..., finish: _Optional[_Union[Finish, _Mapping]] = ..., request_done: _Optional[_Union[RequestDone, _Mapping]] = ..., keeps_share: _Optional[_Union[KeepsShare, _Mapping]] = ..., want_share: _Optional[_Union[WantShare, _Mapping]] = ..., report_progress: _Optional[_Union[ReportProgress, _Mapping]] = ..., more: _Optional[_Iterable[_Union[FromDispatcher, _Mapping]]] = ...) -> None: ...

class OpenStream(_message.Message):
    __slots__ = ("receiver", "keyspace", "table", "shards", "columns", "prefetch", "rows_max", "connection_id", "keys", "held", "share", "window_first")
    RECEIVER_FIELD_NUMBER: _ClassVar[int]
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    SHARDS_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    PREFETCH_FIELD_NUMBER: _ClassVar[int]
    ROWS_MAX_FIELD_NUMBER: _ClassVar[int]
    CONNECTION_ID_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIRST_FIELD_NUMBER: _ClassVar[int]
    receiver: int
    keyspace: str
    table: str
    shards: _containers.RepeatedScalarFieldContainer[str]
    columns: _containers.RepeatedScalarFieldContainer[str]
    prefetch: int
    rows_max: int
    connection_id: int
    keys: _containers.RepeatedScalarFieldContainer[bytes]
    held: _containers.RepeatedCompositeFieldContainer[Held]
    share: int
    window_first: int
    def __init__(self, receiver: _Optional[int] = ..., keyspace: _Optional[str] = ..., table: _Optional[str] = ..., shards: _Optional[_Iterable[str]] = ..., columns: _Optional[_Iterable[str]] = ..., prefetch: _Optional[int] = ..., rows_max: _Optional[int] = ..., connection_id: _Optional[int] = ..., keys: _Optional[_Iterable[bytes]] = ..., held: _Optional[_Iterable[_Union[Held, _Mapping]]] = ..., share: _Optional[int] = ..., window_first: _Optional[int] = ...) -> None: ...

class ShareGiven(_message.Message):
    __slots__ = ("receiver", "share")
    RECEIVER_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    receiver: int
    share: int
    def __init__(self, receiver: _Optional[int] = ..., share: _Optional[int] = ...) -> None: ...

class ProgressedElsewhere(_message.Message):
    __slots__ = ("receiver", "rows")
    RECEIVER_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    receiver: int
    rows: int
    def __init__(self, receiver: _Optional[int] = ..., rows: _Optional[int] = ...) -> None: ...

class ReportProgress(_message.Message):
    __slots__ = ("receiver", "row")
    RECEIVER_FIELD_NUMBER: _ClassVar[int]
    ROW_FIELD_NUMBER: _ClassVar[int]
    receiver: int
    row: int
    def __init__(self, receiver: _Optional[int] = ..., row: _Optional[int] = ...) -> None: ...

class Held(_message.Message):
    __slots__ = ("shard", "ids")
    SHARD_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    shard: str
    ids: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, shard: _Optional[str] = ..., ids: _Optional[_Iterable[bytes]] = ...) -> None: ...

class RowsTaken(_message.Message):
    __slots__ = ("receiver", "rows")
    RECEIVER_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    receiver: int
    rows: int
    def __init__(self, receiver: _Optional[int] = ..., rows: _Optional[int] = ...) -> None: ...

class CloseStream(_message.Message):
    __slots__ = ("receiver", "taken")
    RECEIVER_FIELD_NUMBER: _ClassVar[int]
    TAKEN_FIELD_NUMBER: _ClassVar[int]
    receiver: int
    taken: int
    def __init__(self, receiver: _Optional[int] = ..., taken: _Optional[int] = ...) -> None: ...

class ForgetStream(_message.Message):
    __slots__ = ("receiver", "has_left")
    RECEIVER_FIELD_NUMBER: _ClassVar[int]
    HAS_LEFT_FIELD_NUMBER: _ClassVar[int]
    receiver: int
    has_left: bool
    def __init__(self, receiver: _Optional[int] = ..., has_left: _Optional[bool] = ...) -> None: ...

class WaitOver(_message.Message):
    __slots__ = ("receiver", "has_rows_elsewhere")
    RECEIVER_FIELD_NUMBER: _ClassVar[int]
    HAS_ROWS_ELSEWHERE_FIELD_NUMBER: _ClassVar[int]
    receiver: int
    has_rows_elsewhere: bool
    def __init__(self, receiver: _Optional[int] = ..., has_rows_elsewhere: _Optional[bool] = ...) -> None: ...

class News(_message.Message):
    __slots__ = ("keyspace", "table", "events")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    table: str
    events: _containers.RepeatedCompositeFieldContainer[TableEvent]
    def __init__(self, keyspace: _Optional[str] = ..., table: _Optional[str] = ..., events: _Optional[_Iterable[_Union[TableEvent, _Mapping]]] = ...) -> None: ...

class TableEvent(_message.Message):
    __slots__ = ("shard", "due", "acked", "changed", "acked_unnamed", "touched")
    SHARD_FIELD_NUMBER: _ClassVar[int]
    DUE_FIELD_NUMBER: _ClassVar[int]
    ACKED_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    ACKED_UNNAMED_FIELD_NUMBER: _ClassVar[int]
    TOUCHED_FIELD_NUMBER: _ClassVar[int]
    shard: str
    due: Keys
    acked: Ids
    changed: Changed
    acked_unnamed: Unnamed
    touched: Ids
    def __init__(self, shard: _Optional[str] = ..., due: _Optional[_Union[Keys, _Mapping]] = ..., acked: _Optional[_Union[Ids, _Mapping]] = ..., changed: _Optional[_Union[Changed, _Mapping]] = ..., acked_unnamed: _Optional[_Union[Unnamed, _Mapping]] = ..., touched: _Optional[_Union[Ids, _Mapping]] = ...) -> None: ...

class Key(_message.Message):
    __slots__ = ("id", "priority", "time_next_ns")
    ID_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    TIME_NEXT_NS_FIELD_NUMBER: _ClassVar[int]
    id: bytes
    priority: int
    time_next_ns: int
    def __init__(self, id: _Optional[bytes] = ..., priority: _Optional[int] = ..., time_next_ns: _Optional[int] = ...) -> None: ...

class Keys(_message.Message):
    __slots__ = ("keys",)
    KEYS_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.RepeatedCompositeFieldContainer[Key]
    def __init__(self, keys: _Optional[_Iterable[_Union[Key, _Mapping]]] = ...) -> None: ...

class Ids(_message.Message):
    __slots__ = ("ids",)
    IDS_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, ids: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Changed(_message.Message):
    __slots__ = ("ids", "keeps_leases")
    IDS_FIELD_NUMBER: _ClassVar[int]
    KEEPS_LEASES_FIELD_NUMBER: _ClassVar[int]
    ids: Ids
    keeps_leases: bool
    def __init__(self, ids: _Optional[_Union[Ids, _Mapping]] = ..., keeps_leases: _Optional[bool] = ...) -> None: ...

class Unnamed(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Dispatching(_message.Message):
    __slots__ = ("keyspace", "shard")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    SHARD_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    shard: str
    def __init__(self, keyspace: _Optional[str] = ..., shard: _Optional[str] = ...) -> None: ...

class DefinitionsChanged(_message.Message):
    __slots__ = ("keyspace", "number", "tables")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    number: int
    tables: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, keyspace: _Optional[str] = ..., number: _Optional[int] = ..., tables: _Optional[_Iterable[str]] = ...) -> None: ...

class ShowLeases(_message.Message):
    __slots__ = ("number", "keyspace", "table", "shard", "ids")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    SHARD_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    number: int
    keyspace: str
    table: str
    shard: str
    ids: Ids
    def __init__(self, number: _Optional[int] = ..., keyspace: _Optional[str] = ..., table: _Optional[str] = ..., shard: _Optional[str] = ..., ids: _Optional[_Union[Ids, _Mapping]] = ...) -> None: ...

class AckEarly(_message.Message):
    __slots__ = ("number", "keyspace", "table", "shard", "ids", "acked_ns")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    SHARD_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    ACKED_NS_FIELD_NUMBER: _ClassVar[int]
    number: int
    keyspace: str
    table: str
    shard: str
    ids: _containers.RepeatedScalarFieldContainer[bytes]
    acked_ns: int
    def __init__(self, number: _Optional[int] = ..., keyspace: _Optional[str] = ..., table: _Optional[str] = ..., shard: _Optional[str] = ..., ids: _Optional[_Iterable[bytes]] = ..., acked_ns: _Optional[int] = ...) -> None: ...

class RequestDone(_message.Message):
    __slots__ = ("number", "rows")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    number: int
    rows: int
    def __init__(self, number: _Optional[int] = ..., rows: _Optional[int] = ...) -> None: ...

class RowsSent(_message.Message):
    __slots__ = ("receiver", "first", "payloads", "types")
    RECEIVER_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    PAYLOADS_FIELD_NUMBER: _ClassVar[int]
    TYPES_FIELD_NUMBER: _ClassVar[int]
    receiver: int
    first: int
    payloads: _containers.RepeatedScalarFieldContainer[bytes]
    types: bytes
    def __init__(self, receiver: _Optional[int] = ..., first: _Optional[int] = ..., payloads: _Optional[_Iterable[bytes]] = ..., types: _Optional[bytes] = ...) -> None: ...

class StreamEnded(_message.Message):
    __slots__ = ("receiver", "reason", "held", "unserved")
    RECEIVER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    UNSERVED_FIELD_NUMBER: _ClassVar[int]
    receiver: int
    reason: str
    held: _containers.RepeatedCompositeFieldContainer[Held]
    unserved: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, receiver: _Optional[int] = ..., reason: _Optional[str] = ..., held: _Optional[_Iterable[_Union[Held, _Mapping]]] = ..., unserved: _Optional[_Iterable[str]] = ...) -> None: ...

class KeepsShare(_message.Message):
    __slots__ = ("receiver", "most")
    RECEIVER_FIELD_NUMBER: _ClassVar[int]
    MOST_FIELD_NUMBER: _ClassVar[int]
    receiver: int
    most: int
    def __init__(self, receiver: _Optional[int] = ..., most: _Optional[int] = ...) -> None: ...

class WantShare(_message.Message):
    __slots__ = ("receiver",)
    RECEIVER_FIELD_NUMBER: _ClassVar[int]
    receiver: int
    def __init__(self, receiver: _Optional[int] = ...) -> None: ...

class Finish(_message.Message):
    __slots__ = ("receiver",)
    RECEIVER_FIELD_NUMBER: _ClassVar[int]
    receiver: int
    def __init__(self, receiver: _Optional[int] = ...) -> None: ...

class Asker(_message.Message):
    __slots__ = ("user", "is_admin")
    USER_FIELD_NUMBER: _ClassVar[int]
    IS_ADMIN_FIELD_NUMBER: _ClassVar[int]
    user: str
    is_admin: bool
    def __init__(self, user: _Optional[str] = ..., is_admin: _Optional[bool] = ...) -> None: ...

class KillRequest(_message.Message):
    __slots__ = ("asker", "query_only", "connection_id")
    ASKER_FIELD_NUMBER: _ClassVar[int]
    QUERY_ONLY_FIELD_NUMBER: _ClassVar[int]
    CONNECTION_ID_FIELD_NUMBER: _ClassVar[int]
    asker: Asker
    query_only: bool
    connection_id: int
    def __init__(self, asker: _Optional[_Union[Asker, _Mapping]] = ..., query_only: _Optional[bool] = ..., connection_id: _Optional[int] = ...) -> None: ...

class KillReply(_message.Message):
    __slots__ = ("refusal",)
    class Refusal(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        NONE: _ClassVar[KillReply.Refusal]
        NO_SUCH_THREAD: _ClassVar[KillReply.Refusal]
        NOT_OWNER: _ClassVar[KillReply.Refusal]
    NONE: KillReply.Refusal
    NO_SUCH_THREAD: KillReply.Refusal
    NOT_OWNER: KillReply.Refusal
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    refusal: KillReply.Refusal
    def __init__(self, refusal: _Optional[_Union[KillReply.Refusal, str]] = ...) -> None: ...

class SessionsRequest(_message.Message):
    __slots__ = ("asker",)
    ASKER_FIELD_NUMBER: _ClassVar[int]
    asker: Asker
    def __init__(self, asker: _Optional[_Union[Asker, _Mapping]] = ...) -> None: ...

class Session(_message.Message):
    __slots__ = ("connection_id", "user", "host", "target", "command", "time_s", "state", "info")
    CONNECTION_ID_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    TIME_S_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    INFO_FIELD_NUMBER: _ClassVar[int]
    connection_id: int
    user: str
    host: str
    target: str
    command: str
    time_s: int
    state: str
    info: bytes
    def __init__(self, connection_id: _Optional[int] = ..., user: _Optional[str] = ..., host: _Optional[str] = ..., target: _Optional[str] = ..., command: _Optional[str] = ..., time_s: _Optional[int] = ..., state: _Optional[str] = ..., info: _Optional[bytes] = ...) -> None: ...

class SessionsReply(_message.Message):
    __slots__ = ("sessions",)
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    sessions: _containers.RepeatedCompositeFieldContainer[Session]
    def __init__(self, sessions: _Optional[_Iterable[_Union[Session, _Mapping]]] = ...) -> None: ...

class StatusRequest(_message.Message):
    __slots__ = ("asker", "tables")
    ASKER_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    asker: Asker
    tables: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, asker: _Optional[_Union[Asker, _Mapping]] = ..., tables: _Optional[_Iterable[str]] = ...) -> None: ...

class StatusReply(_message.Message):
    __slots__ = ("member", "queues", "streams", "shards", "set_aside")
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    STREAMS_FIELD_NUMBER: _ClassVar[int]
    SHARDS_FIELD_NUMBER: _ClassVar[int]
    SET_ASIDE_FIELD_NUMBER: _ClassVar[int]
    member: MemberStatus
    queues: _containers.RepeatedCompositeFieldContainer[QueueStatus]
    streams: _containers.RepeatedCompositeFieldContainer[StreamStatus]
    shards: _containers.RepeatedCompositeFieldContainer[ShardStatus]
    set_aside: _containers.RepeatedCompositeFieldContainer[SetAsideRow]
    def __init__(self, member: _Optional[_Union[MemberStatus, _Mapping]] = ..., queues: _Optional[_Iterable[_Union[QueueStatus, _Mapping]]] = ..., streams: _Optional[_Iterable[_Union[StreamStatus, _Mapping]]] = ..., shards: _Optional[_Iterable[_Union[ShardStatus, _Mapping]]] = ..., set_aside: _Optional[_Iterable[_Union[SetAsideRow, _Mapping]]] = ...) -> None: ...

class SetAsideRow(_message.Message):
    __slots__ = ("keyspace", "queue", "shard", "id", "tried", "error", "since_ns", "next_ns", "tries")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    SHARD_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    TRIED_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    SINCE_NS_FIELD_NUMBER: _ClassVar[int]
    NEXT_NS_FIELD_NUMBER: _ClassVar[int]
    TRIES_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    queue: str
    shard: str
    id: str
    tried: str
    error: str
    since_ns: int
    next_ns: int
    tries: int
    def __init__(self, keyspace: _Optional[str] = ..., queue: _Optional[str] = ..., shard: _Optional[str] = ..., id: _Optional[str] = ..., tried: _Optional[str] = ..., error: _Optional[str] = ..., since_ns: _Optional[int] = ..., next_ns: _Optional[int] = ..., tries: _Optional[int] = ...) -> None: ...

class MemberStatus(_message.Message):
    __slots__ = ("version", "uptime_s", "connections", "streams", "questions", "is_stopping", "dispatches", "clock_unix_s", "certificate_expires_s")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    UPTIME_S_FIELD_NUMBER: _ClassVar[int]
    CONNECTIONS_FIELD_NUMBER: _ClassVar[int]
    STREAMS_FIELD_NUMBER: _ClassVar[int]
    QUESTIONS_FIELD_NUMBER: _ClassVar[int]
    IS_STOPPING_FIELD_NUMBER: _ClassVar[int]
    DISPATCHES_FIELD_NUMBER: _ClassVar[int]
    CLOCK_UNIX_S_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_EXPIRES_S_FIELD_NUMBER: _ClassVar[int]
    version: str
    uptime_s: float
    connections: int
    streams: int
    questions: int
    is_stopping: bool
    dispatches: _containers.RepeatedScalarFieldContainer[str]
    clock_unix_s: float
    certificate_expires_s: float
    def __init__(self, version: _Optional[str] = ..., uptime_s: _Optional[float] = ..., connections: _Optional[int] = ..., streams: _Optional[int] = ..., questions: _Optional[int] = ..., is_stopping: _Optional[bool] = ..., dispatches: _Optional[_Iterable[str]] = ..., clock_unix_s: _Optional[float] = ..., certificate_expires_s: _Optional[float] = ...) -> None: ...

class QueueStatus(_message.Message):
    __slots__ = ("keyspace", "table", "streams", "shards")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    STREAMS_FIELD_NUMBER: _ClassVar[int]
    SHARDS_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    table: str
    streams: int
    shards: _containers.RepeatedCompositeFieldContainer[QueueOnShard]
    def __init__(self, keyspace: _Optional[str] = ..., table: _Optional[str] = ..., streams: _Optional[int] = ..., shards: _Optional[_Iterable[_Union[QueueOnShard, _Mapping]]] = ...) -> None: ...

class QueueOnShard(_message.Message):
    __slots__ = ("shard", "counters", "gauges")
    SHARD_FIELD_NUMBER: _ClassVar[int]
    COUNTERS_FIELD_NUMBER: _ClassVar[int]
    GAUGES_FIELD_NUMBER: _ClassVar[int]
    shard: str
    counters: Counters
    gauges: Gauges
    def __init__(self, shard: _Optional[str] = ..., counters: _Optional[_Union[Counters, _Mapping]] = ..., gauges: _Optional[_Union[Gauges, _Mapping]] = ...) -> None: ...

class Counters(_message.Message):
    __slots__ = ("delivered", "redelivered", "acked", "deleted", "returned", "parked", "dead_lettered", "purged", "purge_failures", "delivery_latency", "ack_latency")
    DELIVERED_FIELD_NUMBER: _ClassVar[int]
    REDELIVERED_FIELD_NUMBER: _ClassVar[int]
    ACKED_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    RETURNED_FIELD_NUMBER: _ClassVar[int]
    PARKED_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTERED_FIELD_NUMBER: _ClassVar[int]
    PURGED_FIELD_NUMBER: _ClassVar[int]
    PURGE_FAILURES_FIELD_NUMBER: _ClassVar[int]
    DELIVERY_LATENCY_FIELD_NUMBER: _ClassVar[int]
    ACK_LATENCY_FIELD_NUMBER: _ClassVar[int]
    delivered: int
    redelivered: int
    acked: int
    deleted: int
    returned: int
    parked: int
    dead_lettered: int
    purged: int
    purge_failures: int
    delivery_latency: Histogram
    ack_latency: Histogram
    def __init__(self, delivered: _Optional[int] = ..., redelivered: _Optional[int] = ..., acked: _Optional[int] = ..., deleted: _Optional[int] = ..., returned: _Optional[int] = ..., parked: _Optional[int] = ..., dead_lettered: _Optional[int] = ..., purged: _Optional[int] = ..., purge_failures: _Optional[int] = ..., delivery_latency: _Optional[_Union[Histogram, _Mapping]] = ..., ack_latency: _Optional[_Union[Histogram, _Mapping]] = ...) -> None: ...

class Histogram(_message.Message):
    __slots__ = ("counts", "sum_ns")
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    SUM_NS_FIELD_NUMBER: _ClassVar[int]
    counts: _containers.RepeatedScalarFieldContainer[int]
    sum_ns: int
    def __init__(self, counts: _Optional[_Iterable[int]] = ..., sum_ns: _Optional[int] = ...) -> None: ...

class Gauges(_message.Message):
    __slots__ = ("streams", "cached", "ready", "in_flight", "depth", "oldest_ready_ns", "blocked", "partitions_overdue", "set_aside")
    STREAMS_FIELD_NUMBER: _ClassVar[int]
    CACHED_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    OLDEST_READY_NS_FIELD_NUMBER: _ClassVar[int]
    BLOCKED_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_OVERDUE_FIELD_NUMBER: _ClassVar[int]
    SET_ASIDE_FIELD_NUMBER: _ClassVar[int]
    streams: int
    cached: int
    ready: int
    in_flight: int
    depth: int
    oldest_ready_ns: int
    blocked: int
    partitions_overdue: int
    set_aside: int
    def __init__(self, streams: _Optional[int] = ..., cached: _Optional[int] = ..., ready: _Optional[int] = ..., in_flight: _Optional[int] = ..., depth: _Optional[int] = ..., oldest_ready_ns: _Optional[int] = ..., blocked: _Optional[int] = ..., partitions_overdue: _Optional[int] = ..., set_aside: _Optional[int] = ...) -> None: ...

class StreamStatus(_message.Message):
    __slots__ = ("connection_id", "keyspace", "queue", "client", "delivered", "unacked", "oldest_unacked_ns", "stalled_since_ns", "window")
    CONNECTION_ID_FIELD_NUMBER: _ClassVar[int]
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_FIELD_NUMBER: _ClassVar[int]
    UNACKED_FIELD_NUMBER: _ClassVar[int]
    OLDEST_UNACKED_NS_FIELD_NUMBER: _ClassVar[int]
    STALLED_SINCE_NS_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    connection_id: int
    keyspace: str
    queue: str
    client: Client
    delivered: int
    unacked: int
    oldest_unacked_ns: int
    stalled_since_ns: int
    window: int
    def __init__(self, connection_id: _Optional[int] = ..., keyspace: _Optional[str] = ..., queue: _Optional[str] = ..., client: _Optional[_Union[Client, _Mapping]] = ..., delivered: _Optional[int] = ..., unacked: _Optional[int] = ..., oldest_unacked_ns: _Optional[int] = ..., stalled_since_ns: _Optional[int] = ..., window: _Optional[int] = ...) -> None: ...

class Client(_message.Message):
    __slots__ = ("user", "host", "opened_ns", "prefetch", "shards")
    USER_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    OPENED_NS_FIELD_NUMBER: _ClassVar[int]
    PREFETCH_FIELD_NUMBER: _ClassVar[int]
    SHARDS_FIELD_NUMBER: _ClassVar[int]
    user: str
    host: str
    opened_ns: int
    prefetch: int
    shards: str
    def __init__(self, user: _Optional[str] = ..., host: _Optional[str] = ..., opened_ns: _Optional[int] = ..., prefetch: _Optional[int] = ..., shards: _Optional[str] = ...) -> None: ...

class ShardStatus(_message.Message):
    __slots__ = ("keyspace", "shard", "server", "version", "last_error", "pool_size", "pool_open", "pool_in_use", "pool_waiters", "is_dispatched")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    SHARD_FIELD_NUMBER: _ClassVar[int]
    SERVER_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_FIELD_NUMBER: _ClassVar[int]
    POOL_SIZE_FIELD_NUMBER: _ClassVar[int]
    POOL_OPEN_FIELD_NUMBER: _ClassVar[int]
    POOL_IN_USE_FIELD_NUMBER: _ClassVar[int]
    POOL_WAITERS_FIELD_NUMBER: _ClassVar[int]
    IS_DISPATCHED_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    shard: str
    server: str
    version: str
    last_error: str
    pool_size: int
    pool_open: int
    pool_in_use: int
    pool_waiters: int
    is_dispatched: bool
    def __init__(self, keyspace: _Optional[str] = ..., shard: _Optional[str] = ..., server: _Optional[str] = ..., version: _Optional[str] = ..., last_error: _Optional[str] = ..., pool_size: _Optional[int] = ..., pool_open: _Optional[int] = ..., pool_in_use: _Optional[int] = ..., pool_waiters: _Optional[int] = ..., is_dispatched: _Optional[bool] = ...) -> None: ...
