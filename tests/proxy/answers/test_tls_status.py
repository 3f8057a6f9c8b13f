import pytest

from proxy.answers.tls_status import is_session_status, with_own_tls
from proxy.wire.resultset import text_row
from tests.sqlparse_ext.facts import statement


@pytest.mark.parametrize(
    ("sql", "is_asked"),
    [
        ("SHOW STATUS", True),
        ("SHOW STATUS LIKE 'Ssl_cipher'", True),
        ("show session status where variable_name = 'ssl_version'", True),
        ("SHOW LOCAL STATUS LIKE 'Ssl%'", True),
        ("SHOW GLOBAL STATUS", False),
        ("SHOW TABLE STATUS", False),
        ("SHOW ENGINE INNODB STATUS", False),
        ("SHOW SESSION VARIABLES", False),
        ("SELECT 1", False),
    ],
)
def test_which_statements_tell_of_a_connection(sql, is_asked):
    assert is_session_status(statement(sql).shape) is is_asked


def test_the_clients_tls_stands_in_the_place_of_the_servers():
    rows = [(b"Ssl_cipher", b""), (b"Ssl_version", None), (b"Uptime", b"5")]
    assert with_own_tls(map(text_row, rows), "AES", "TLSv1.3") == [
        text_row((b"Ssl_cipher", b"AES")),
        text_row((b"Ssl_version", b"TLSv1.3")),
        text_row((b"Uptime", b"5")),
    ]
