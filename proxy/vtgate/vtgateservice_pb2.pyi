from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Type(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NULL_TYPE: _ClassVar[Type]
    INT8: _ClassVar[Type]
    UINT8: _ClassVar[Type]
    INT16: _ClassVar[Type]
    UINT16: _ClassVar[Type]
    INT24: _ClassVar[Type]
    UINT24: _ClassVar[Type]
    INT32: _ClassVar[Type]
    UINT32: _ClassVar[Type]
    INT64: _ClassVar[Type]
    UINT64: _ClassVar[Type]
    FLOAT32: _ClassVar[Type]
    FLOAT64: _ClassVar[Type]
    TIMESTAMP: _ClassVar[Type]
    DATE: _ClassVar[Type]
    TIME: _ClassVar[Type]
    DATETIME: _ClassVar[Type]
    YEAR: _ClassVar[Type]
    DECIMAL: _ClassVar[Type]
    TEXT: _ClassVar[Type]
    BLOB: _ClassVar[Type]
    VARCHAR: _ClassVar[Type]
    VARBINARY: _ClassVar[Type]
    CHAR: _ClassVar[Type]
    BINARY: _ClassVar[Type]
    BIT: _ClassVar[Type]
    ENUM: _ClassVar[Type]
    SET: _ClassVar[Type]
    TUPLE: _ClassVar[Type]
    GEOMETRY: _ClassVar[Type]
    JSON: _ClassVar[Type]
    EXPRESSION: _ClassVar[Type]
NULL_TYPE: Type
INT8: Type
UINT8: Type
INT16: Type
UINT16: Type
INT24: Type
UINT24: Type
INT32: Type
UINT32: Type
INT64: Type
UINT64: Type
FLOAT32: Type
FLOAT64: Type
TIMESTAMP: Type
DATE: Type
TIME: Type
DATETIME: Type
YEAR: Type
DECIMAL: Type
TEXT: Type
BLOB: Type
VARCHAR: Type
VARBINARY: Type
CHAR: Type
BINARY: Type
BIT: Type
ENUM: Type
SET: Type
TUPLE: Type
GEOMETRY: Type
JSON: Type
EXPRESSION: Type

class MessageStreamRequest(_message.Message):
    __slots__ = ("caller_id", "keyspace", "shard", "key_range", "name")
    CALLER_ID_FIELD_NUMBER: _ClassVar[int]
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    SHARD_FIELD_NUMBER: _ClassVar[int]
    KEY_RANGE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    caller_id: CallerID
    keyspace: str
    shard: str
    key_range: KeyRange
    name: str
    def __init__(self, caller_id: _Optional[_Union[CallerID, _Mapping]] = ..., keyspace: _Optional[str] = ..., shard: _Optional[str] = ..., key_range: _Optional[_Union[KeyRange, _Mapping]] = ..., name: _Optional[str] = ...) -> None: ...

class MessageStreamResponse(_message.Message):
    __slots__ = ("result",)
    RESULT_FIELD_NUMBER: _ClassVar[int]
    result: QueryResult
    def __init__(self, result: _Optional[_Union[QueryResult, _Mapping]] = ...) -> None: ...

class MessageAckRequest(_message.Message):
    __slots__ = ("caller_id", "keyspace", "name", "ids")
    CALLER_ID_FIELD_NUMBER: _ClassVar[int]
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    caller_id: CallerID
    keyspace: str
    name: str
    ids: _containers.RepeatedCompositeFieldContainer[Value]
    def __init__(self, caller_id: _Optional[_Union[CallerID, _Mapping]] = ..., keyspace: _Optional[str] = ..., name: _Optional[str] = ..., ids: _Optional[_Iterable[_Union[Value, _Mapping]]] = ...) -> None: ...

class MessageAckResponse(_message.Message):
    __slots__ = ("result",)
    RESULT_FIELD_NUMBER: _ClassVar[int]
    result: QueryResult
    def __init__(self, result: _Optional[_Union[QueryResult, _Mapping]] = ...) -> None: ...

class CallerID(_message.Message):
    __slots__ = ("principal", "component", "subcomponent")
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    COMPONENT_FIELD_NUMBER: _ClassVar[int]
    SUBCOMPONENT_FIELD_NUMBER: _ClassVar[int]
    principal: str
    component: str
    subcomponent: str
    def __init__(self, principal: _Optional[str] = ..., component: _Optional[str] = ..., subcomponent: _Optional[str] = ...) -> None: ...

class KeyRange(_message.Message):
    __slots__ = ("start", "end")
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    start: bytes
    end: bytes
    def __init__(self, start: _Optional[bytes] = ..., end: _Optional[bytes] = ...) -> None: ...

class Field(_message.Message):
    __slots__ = ("name", "type", "table", "org_table", "database", "org_name", "column_length", "charset", "decimals", "flags")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    ORG_TABLE_FIELD_NUMBER: _ClassVar[int]
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    ORG_NAME_FIELD_NUMBER: _ClassVar[int]
    COLUMN_LENGTH_FIELD_NUMBER: _ClassVar[int]
    CHARSET_FIELD_NUMBER: _ClassVar[int]
    DECIMALS_FIELD_NUMBER: _ClassVar[int]
    FLAGS_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: Type
    table: str
    org_table: str
    database: str
    org_name: str
    column_length: int
    charset: int
    decimals: int
    flags: int
    def __init__(self, name: _Optional[str] = ..., type: _Optional[_Union[Type, str]] = ..., table: _Optional[str] = ..., org_table: _Optional[str] = ..., database: _Optional[str] = ..., org_name: _Optional[str] = ..., column_length: _Optional[int] = ..., charset: _Optional[int] = ..., decimals: _Optional[int] = ..., flags: _Optional[int] = ...) -> None: ...

class Row(_message.Message):
    __slots__ = ("lengths", "values")
    LENGTHS_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    lengths: _containers.RepeatedScalarFieldContainer[int]
    values: bytes
    def __init__(self, lengths: _Optional[_Iterable[int]] = ..., values: _Optional[bytes] = ...) -> None: ...

class QueryResult(_message.Message):
    __slots__ = ("fields", "rows_affected", "insert_id", "rows")
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    ROWS_AFFECTED_FIELD_NUMBER: _ClassVar[int]
    INSERT_ID_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    fields: _containers.RepeatedCompositeFieldContainer[Field]
    rows_affected: int
    insert_id: int
    rows: _containers.RepeatedCompositeFieldContainer[Row]
    def __init__(self, fields: _Optional[_Iterable[_Union[Field, _Mapping]]] = ..., rows_affected: _Optional[int] = ..., insert_id: _Optional[int] = ..., rows: _Optional[_Iterable[_Union[Row, _Mapping]]] = ...) -> None: ...

class Value(_message.Message):
    __slots__ = ("type", "value")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    type: Type
    value: bytes
    def __init__(self, type: _Optional[_Union[Type, str]] = ..., value: _Optional[bytes] = ...) -> None: ...
