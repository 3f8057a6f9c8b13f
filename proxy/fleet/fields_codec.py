"""Values as protobuf messages whose fields have the same names. Pure.

A `FieldsCodec` is made once from a class and a message and copies the fields of both, so a new field is one line in each of them:

* an ``optional`` field is absent for None;
* a repeated field is a tuple, or the pairs of a dict if the class's default is one; if the default is None, an empty field is None.
  Items for which its codec returns None are left out: there is nothing to report, or this version does not know their kind;
* a field of a message uses the codec that is given for that message, and is absent for None;
* an ``int64`` whose name ends with ``_ns`` is a moment, and travels as its age, because each member has its own clock. (It is negative
  for the future.)

A `OneOfCodec` knows classes by their names: ``OpenStream`` is the field ``open_stream``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Protocol, TypeVar

from google.protobuf.descriptor import FieldDescriptor


if TYPE_CHECKING:
    from google.protobuf.message import Message


ValueT = TypeVar("ValueT")
MessageT = TypeVar("MessageT", bound="Message")


class FieldCodec(Protocol):
    """Encodes and decodes a message's field, or each item of a repeated one."""

    def encode(self, value: Any, now_ns: int, /) -> Any:
        """Return the field's value."""

    def decode(self, found: Any, now_ns: int, /) -> Any:
        """Return the value of a field that is present."""


class ByFunctions(NamedTuple):
    """A codec of two functions."""

    encode: Callable[[Any, int], Any]
    decode: Callable[[Any, int], Any]


_AGE: Final = ByFunctions(
    lambda moment_ns, now_ns: now_ns - moment_ns, lambda age_ns, now_ns: now_ns - age_ns
)


class FieldsCodec(Generic[ValueT, MessageT]):
    """Makes messages from values, and values from messages.

    make: the class of the values, a dataclass or a NamedTuple; it has all fields of the message.
    nested: codecs by the names of the messages that are fields.
    """

    def __init__(
        self,
        make: type[ValueT],
        message: type[MessageT],
        nested: Mapping[str, FieldCodec] | None = None,
    ) -> None:
        self._make = make
        self._message = message
        defaults = _defaults(make)
        self._fields = [
            _SharedField(field, defaults[field.name], nested or {})
            for field in message.DESCRIPTOR.fields
        ]

    def encode(self, value: ValueT, now_ns: int = 0) -> MessageT:
        """Return the message of *value*."""
        return self._message(**{each.name: each.encode(value, now_ns) for each in self._fields})

    def decode(self, message: MessageT, now_ns: int = 0, **others: Any) -> ValueT:
        """Return the value of *message*, with *others* for fields that the message lacks."""
        return self._make(**self.fields(message, now_ns) | others)

    def fields(self, message: MessageT, now_ns: int = 0) -> dict[str, Any]:
        """Return the values of *message*, by the names of fields."""
        return {field.name: field.decode(message, now_ns) for field in self._fields}


class OneOfCodec(Generic[MessageT]):
    """Values of several classes as the fields of one ``oneof``.

    whole: the message around them; its other fields are the classes', too.
    classes: one for each field, whose name is that of the class in lower case.
    """

    def __init__(
        self,
        whole: type[MessageT],
        classes: Iterable[type[Any]],
        nested: Mapping[str, FieldCodec],
    ) -> None:
        self._whole = whole
        (oneof,) = whole.DESCRIPTOR.oneofs
        self._oneof = oneof.name
        self._names: dict[type[Any], str] = {}
        self._codecs: dict[str, FieldsCodec[Any, Any]] = {}
        self._shared: dict[str, list[str]] = {}
        fields = {field.name.replace("_", ""): field.name for field in oneof.fields}
        for made in classes:
            name = self._names[made] = fields[made.__name__.lower()]
            self._codecs[name] = FieldsCodec(made, _message_of(whole, name), nested)
            self._shared[name] = [
                field.name
                for field in whole.DESCRIPTOR.fields
                if field.containing_oneof is None and field.name in _defaults(made)
            ]

    def encode(self, value: object, now_ns: int = 0) -> MessageT:
        """Return the message of *value*."""
        name = self._names[type(value)]
        shared = {each: getattr(value, each) for each in self._shared[name]}
        return self._whole(**shared, **{name: self._codecs[name].encode(value, now_ns)})

    def decode(self, found: MessageT, now_ns: int = 0) -> Any:
        """Return the value; None if this version does not know its kind."""
        name = found.WhichOneof(self._oneof)
        if name not in self._codecs:
            return None
        shared = {each: getattr(found, each) for each in self._shared[name]}
        return self._codecs[name].decode(getattr(found, name), now_ns, **shared)


def _message_of(whole: type[MessageT], field: str) -> type[Message]:
    return type(getattr(whole(), field))


class _SharedField:
    """One field that both the class and the message have. default: that of the class."""

    def __init__(self, field: Any, default: object, nested: Mapping[str, FieldCodec]) -> None:
        self.name = field.name
        self._is_repeated = field.is_repeated
        self._may_be_absent = field.has_presence
        self._is_dict = default == {}
        self._none = None if default is None else ()
        self._codec: FieldCodec | None = None
        if field.message_type is not None:
            self._codec = nested[field.message_type.name]
        elif field.type == FieldDescriptor.TYPE_INT64 and field.name.endswith("_ns"):
            self._codec = _AGE

    def encode(self, value: object, now_ns: int) -> Any:
        found: Any = getattr(value, self.name)
        codec = self._codec
        if codec is None or found is None:
            return found
        if self._is_repeated:
            items = found.items() if self._is_dict else found
            encoded = [codec.encode(each, now_ns) for each in items]
            return [each for each in encoded if each is not None]
        return codec.encode(found, now_ns)

    def decode(self, message: Message, now_ns: int) -> Any:
        found = getattr(message, self.name)
        codec = self._codec
        if self._is_repeated:
            if codec is not None:
                decoded = [codec.decode(each, now_ns) for each in found]
                found = [each for each in decoded if each is not None]
            return dict(found) if self._is_dict else tuple(found) or self._none
        if self._may_be_absent and not message.HasField(self.name):
            return None
        return found if codec is None else codec.decode(found, now_ns)


def _defaults(make: Any) -> dict[str, object]:
    """Return the fields of a class with their defaults; `dataclasses.MISSING` if it has none."""
    if dataclasses.is_dataclass(make):
        return {
            field.name: {} if field.default_factory is dict else field.default
            for field in dataclasses.fields(make)
        }
    names: tuple[str, ...] = make._fields  # of a NamedTuple
    given: Mapping[str, object] = make._field_defaults
    return {name: given.get(name, dataclasses.MISSING) for name in names}
