"""Everything the proxy itself can refuse, as one tree; code, SQLSTATE and what to do stand with each class.

A module of this room holds the errors of one kind; all are imported from here. `docs/sql/errors.md` lists them.

Codes are MySQL's own, with its own words where it has words for the case, so that drivers
react as they do to a server.
https://dev.mysql.com/doc/mysql-errors/8.4/en/server-error-reference.html
"""

from __future__ import annotations

from streamfrom.proxy.errors.access_errors import (
    AccessDenied as AccessDenied,
    AccountChanged as AccountChanged,
    AddressLimitReached as AddressLimitReached,
    CertificateRequired as CertificateRequired,
    ConnectionMemoryExceeded as ConnectionMemoryExceeded,
    HostNotAllowed as HostNotAllowed,
    IdleTooLong as IdleTooLong,
    InsecureTransport as InsecureTransport,
    KillDenied as KillDenied,
    MemberUnreachable as MemberUnreachable,
    NoClientCharset as NoClientCharset,
    NoSuchThread as NoSuchThread,
    NotOwner as NotOwner,
    ServerShutdown as ServerShutdown,
    ShutdownUnanswered as ShutdownUnanswered,
    TooManyConnections as TooManyConnections,
    UserLimitReached as UserLimitReached,
    UserMemoryExceeded as UserMemoryExceeded,
)
from streamfrom.proxy.errors.base import (
    InternalError as InternalError,
    ProxyError as ProxyError,
)
from streamfrom.proxy.errors.queue_errors import (
    BadQueue as BadQueue,
    NoSuchQueue as NoSuchQueue,
    QueueExists as QueueExists,
)
from streamfrom.proxy.errors.shard_errors import (
    USER_LIMITS as USER_LIMITS,
    AckUnknown as AckUnknown,
    BackendError as BackendError,
    BackendLost as BackendLost,
    BackendUnavailable as BackendUnavailable,
    NoDescriptor as NoDescriptor,
    PoolTimeout as PoolTimeout,
    ServerFull as ServerFull,
    SessionLost as SessionLost,
    connect_refused as connect_refused,
)
from streamfrom.proxy.errors.statement_errors import (
    BadArguments as BadArguments,
    BadMessageId as BadMessageId,
    BadStreamArgument as BadStreamArgument,
    BadStreamKey as BadStreamKey,
    ColumnTypeChanged as ColumnTypeChanged,
    ConnectionKilled as ConnectionKilled,
    DistinctTooLarge as DistinctTooLarge,
    EmptyQuery as EmptyQuery,
    LongDataTooLarge as LongDataTooLarge,
    MergeTooLarge as MergeTooLarge,
    NoOpenCursor as NoOpenCursor,
    NotPreparable as NotPreparable,
    QueryInterrupted as QueryInterrupted,
    ReturningTooLarge as ReturningTooLarge,
    RoundedId as RoundedId,
    SessionVariable as SessionVariable,
    StatementTimedOut as StatementTimedOut,
    TooManyStatements as TooManyStatements,
    UnknownCommand as UnknownCommand,
    UnknownStatement as UnknownStatement,
    WrongVariableValue as WrongVariableValue,
)
from streamfrom.proxy.errors.target_errors import (
    BadVindexValue as BadVindexValue,
    MissingVindexColumn as MissingVindexColumn,
    NoDatabaseSelected as NoDatabaseSelected,
    NoHealthyReplica as NoHealthyReplica,
    NoSuchVschemaTable as NoSuchVschemaTable,
    ReplicaTarget as ReplicaTarget,
    StreamOfReplica as StreamOfReplica,
    UnknownDatabase as UnknownDatabase,
)
from streamfrom.proxy.errors.transaction_errors import (
    CommitPending as CommitPending,
    CommitRefused as CommitRefused,
    CommitUnknown as CommitUnknown,
    NoDecisionTable as NoDecisionTable,
    NoSuchSavepoint as NoSuchSavepoint,
    PartialCommit as PartialCommit,
    TransactionBroken as TransactionBroken,
    TransactionSpansShards as TransactionSpansShards,
)
from streamfrom.proxy.errors.wire_errors import (
    CannotUnpack as CannotUnpack,
    CutTypes as CutTypes,
    LocalDataDisabled as LocalDataDisabled,
    MalformedPacket as MalformedPacket,
    OutOfOrder as OutOfOrder,
    PacketTooLarge as PacketTooLarge,
    ValueOfOtherType as ValueOfOtherType,
    WireError as WireError,
)
