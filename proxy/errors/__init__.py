"""Everything the proxy itself can refuse, as one tree; code and SQLSTATE stand with each class.

A module of this room holds the errors of one kind; all are imported from here.

    StreamfromError
    └── ProxyError
        │ wire
        ├── WireError              1835/HY000  bad bytes: closes this connection, no other
        │   ├── OutOfOrder         1156/08S01
        │   ├── PacketTooLarge     1153/08S01
        │   ├── CannotUnpack       1157/08S01
        │   ├── CutTypes           sent as MalformedPacket or BadArguments
        │   └── ValueOfOtherType   of a prepared STREAM it is sent as ColumnTypeChanged
        ├── MalformedPacket        1835/HY000  inside a packet: the connection goes on
        ├── LocalDataDisabled      3948/42000, or MariaDB's 4166/HY000
        │ access
        ├── AddressLimitReached    1040/08004  closes
        ├── TooManyConnections     1040/08004
        ├── UserLimitReached       1226/42000  closes
        ├── ConnectionMemoryExceeded 4082/HY000  closes where a command is not whole
        ├── UserMemoryExceeded     1226/42000  closes where a command is not whole
        ├── IdleTooLong            4031/HY000  closes
        ├── HostNotAllowed         1130/HY000  closes
        ├── AccessDenied           1045/28000  closes
        ├── NoClientCharset        1231/42000
        ├── AccountChanged         1045/28000  closes
        ├── CertificateRequired    1045/28000  closes
        ├── InsecureTransport      3159/HY000  closes
        ├── ServerShutdown         1053/08S01  closes
        ├── ShutdownUnanswered     1105/HY000  closes
        ├── NoSuchThread           1094/HY000
        ├── KillDenied             1095/HY000
        ├── NotOwner               1095/HY000  KILL of another user's connection
        ├── MemberUnreachable      1105/HY000  KILL of a connection at another member of the fleet
        │ targets
        ├── UnknownDatabase        1049/42000
        ├── NoDatabaseSelected     1046/3D000
        ├── NoSuchVschemaTable     1146/42S02
        ├── NoHealthyReplica       1105/HY000
        ├── ReplicaTarget          1874/HY000  a write, where `@replica` is the target
        ├── StreamOfReplica        1105/HY000
        ├── MissingVindexColumn    1364/HY000  an INSERT that cannot be routed
        ├── BadVindexValue         1048/23000 (NULL) or 1366/HY000
        │ shards
        ├── BackendError           a backend's own code, state and words
        │   ├── ServerFull         the same, if the server takes no more connections
        │   └── CommitRefused      the same, of one shard for all of them
        ├── BackendUnavailable     1105/HY000  no connection to a shard
        │   └── NoDescriptor       the same, as this process has no file descriptor left
        ├── BackendLost            1105/HY000  the connection broke while a statement ran
        ├── AckUnknown             1105/HY000  the same, while acks were committed together
        ├── PoolTimeout            1105/HY000  all connections of a shard are taken
        ├── SessionLost            2013/HY000  session state died with its server: closes
        │ transactions
        ├── TransactionSpansShards 1105/HY000  transaction_mode = "single" refuses it
        ├── TransactionBroken      1105/HY000  a shard of the transaction was lost
        ├── PartialCommit          1105/HY000  some shards committed, some did not
        ├── NoDecisionTable        1105/HY000  a shard cannot take part in two phases
        ├── CommitUnknown          1105/HY000  prepared; the shard that decides is away
        ├── CommitPending          1105/HY000  committed; a shard still has to follow
        ├── NoSuchSavepoint        1305/42000
        │ statements
        ├── UnknownCommand         1047/08S01
        ├── EmptyQuery             1065/42000
        ├── QueryInterrupted       1317/70100
        ├── ConnectionKilled       1317/70100, or MariaDB's 1927: closes
        ├── StatementTimedOut      3024/HY000
        ├── MergeTooLarge          1038/HY001  more groups to sort than there may be
        │   ├── DistinctTooLarge   1038/HY001  more values of DISTINCT to remember
        │   └── ReturningTooLarge  1038/HY001  more rows of RETURNING to keep
        ├── NotPreparable          1295/HY000
        ├── UnknownStatement       1243/HY000
        ├── NoOpenCursor           1421/HY000
        ├── BadArguments           1210/HY000
        ├── BadMessageId           1210/HY000  of a call of MessageAck
        ├── BadStreamArgument      1210/HY000
        ├── RoundedId              1690/22003
        ├── BadStreamKey           1210/HY000
        ├── ColumnTypeChanged      1412/HY000  ends a prepared STREAM
        ├── SessionVariable        1228/HY000
        ├── WrongVariableValue     1231/42000
        ├── LongDataTooLarge       1105/HY000  as MySQL, at the execution
        ├── TooManyStatements      1461/42000
        │ queues
        ├── BadQueue               1210/HY000  a setting, a column, or a table that is no queue
        ├── QueueExists            1050/42S01
        ├── NoSuchQueue            1051/42S02
        │ base
        └── InternalError          1105/HY000  a fault of the proxy; the log has the trace

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
