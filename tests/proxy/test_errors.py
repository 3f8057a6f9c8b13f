import inspect
import re

from streamfrom.proxy import errors
from streamfrom.proxy.errors import ProxyError
from streamfrom.sqlparse_ext.errors import SqlError, StreamfromError, Unsupported


CLASSES = [
    member
    for _, member in inspect.getmembers(errors, inspect.isclass)
    if issubclass(member, ProxyError)
]


def test_every_code_is_one_that_mysql_could_send():
    classes: list[type[StreamfromError]] = [*CLASSES, SqlError, Unsupported]
    for error in classes:
        assert 1000 <= error.mysql_code < 1 << 16
        # From 2000 and 5000 on are the client libraries' own: libmariadb takes one for a broken packet.
        assert error.mysql_code // 1000 not in (2, 5)
        assert re.fullmatch("[0-9A-Z]{5}", error.sqlstate)
        assert issubclass(error, StreamfromError)


def test_every_error_of_the_proxy_is_imported_from_here():
    def kinds(error):
        return {error}.union(*map(kinds, error.__subclasses__()))

    assert {
        error for error in kinds(ProxyError) if error.__module__.startswith("streamfrom.proxy.")
    } == set(CLASSES)
