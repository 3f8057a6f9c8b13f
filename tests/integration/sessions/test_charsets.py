"""Character sets of clients: each reads and writes as on the server, or is refused.

In some of them a backslash or a quote may be the second half of a character. Who read such a text
as bytes would see statements where the client wrote values.
"""

import re
from typing import Any

import pymysql
import pytest
from pymysql.constants import CLIENT

from streamfrom.proxy.embedded.servers import Family
from tests.cases import in_turn, lines
from tests.fixtures.database_servers import execute
from tests.fixtures.running_proxy import RunningProxy
from tests.fixtures.streams import answers, refused, refuses, rows, run


pytestmark = pytest.mark.db

UNREAD = ("gbk", "sjis", "cp932", "big5")
READ = ("gb2312", "euckr", "ujis", "latin1", "cp1251", "koi8r")
WHAT_IS_SET = (
    "SELECT @@character_set_client, @@character_set_connection, @@character_set_results,"
    " @@collation_connection"
)
# One character and an escaped quote for a server that speaks gbk or big5, an escaped backslash
# and the end of the string for whoever reads bytes.
ATTACK = b"SELECT HEX('\xb2\\\\'; DROP TABLE victim; -- ')"


def connect(port: int, database: str, charset: str, *, raw: bool = False) -> Any:
    """Return a client; *raw*: its values are bytes, as they come."""
    client = pymysql.connect(
        host="127.0.0.1",
        port=port,
        user="root",
        database=database,
        charset=charset,
        autocommit=True,
        client_flag=CLIENT.MULTI_STATEMENTS,
    )
    if raw:
        client.decoders = {}
        client.use_unicode = False
    return client


@pytest.fixture
def both(tight, servers, sharded_database):
    """The ways to one server, as ports and databases: through the proxy, and straight."""
    return (tight.port, "plain"), (servers[1].port, f"{sharded_database}_plain")


# Where bytes are what they seem.
TEXTS = (
    b"SELECT HEX('\xb2\\\\') AS b, '\xb0\xa1\\'' AS c, \"\xb0\xa1''\" AS d, `a`.`\xb0\xa1` FROM (SELECT 1 AS"
    b" `\xb0\xa1`) a",
    b"SELECT '\xb0\\'; SELECT 2",
    b"SELECT HEX('\x8f\xb0') AS a; SELECT HEX('\xb0a') AS a",
)


@in_turn
@pytest.mark.parametrize("charset", [*UNREAD, *READ])
def test_a_login_has_its_character_set_as_on_the_server(both, charset):
    told = []
    for port, database in both:
        client = connect(port, database, charset, raw=True)
        run(client, "SET @n = 1")
        client._execute_command(3, b"SELECT _utf8mb4 x'e4b8ad' AS c, _utf8mb4 x'd0b6' AS d")
        client._read_query_result()
        fields = [(one.charsetnr, one.type_code, one.length) for one in client._result.fields]
        texts = TEXTS if charset in READ else ()
        shown = client._result.rows, [answers(client, text) for text in texts]
        told.append((rows(client, WHAT_IS_SET), fields, shown))
        client.close()
    assert told[0] == told[1]
    assert told[0][0][0][:3] == (charset.encode(),) * 3


SETTING = (
    "SET NAMES {}",
    "SET character_set_client = {}",
    "SET @@session.character_set_client = CONCAT('{1}', '{2}')",
)


@in_turn
@pytest.mark.parametrize("charset", UNREAD)
@pytest.mark.parametrize("by", ["login", "PREPARE", *SETTING])
def test_statements_and_values_are_the_servers(tight, both, charset, by):
    owner = tight.connect(database="plain", autocommit=True)
    run(owner, "CREATE TABLE IF NOT EXISTS victim (id INT)")
    half = len(charset) // 2
    found = []
    for port, database in both:
        client = connect(port, database, charset if by == "login" else "utf8mb4", raw=True)
        if by == "PREPARE":
            run(client, f"PREPARE change_it FROM 'SET NAMES {charset}'")
            run(client, "EXECUTE change_it")
        elif by != "login":
            run(client, by.format(charset, charset[:half], charset[half:]))
        told = answers(client, ATTACK + b" AS a")
        told += answers(client, ATTACK.replace(b"HEX(", b"CONNECTION_ID() > 0, (") + b" AS b")
        told += answers(client, b"SELECT 'it\\'s' AS a, CHAR_LENGTH('a\\\\') AS b")
        run(client, "SET NAMES utf8mb4")
        code = answers(client, ATTACK[:-4] + b"1")[0]
        # MySQL refuses the bytes before it reads the text.
        assert code in (1064, 1300)
        found.append(told)
        client.close()
    assert found[0] == found[1]
    # In sjis and cp932 the attack's character is a byte, and behind the string is another statement.
    assert (found[0][0] == 1064) == (charset in {"sjis", "cp932"})
    assert rows(owner, "SELECT COUNT(*) FROM victim") == ((0,),)


@in_turn
@pytest.mark.parametrize("charset", [*UNREAD, "gb18030", "ujis", "gb2312"])
def test_names_are_written_as_the_server_reads_them(servers, both, charset):
    """MariaDB's own tests of Japanese (mysql-test/suite/jp) do all of that."""
    if not execute(servers[1], f"SHOW CHARACTER SET LIKE '{charset}'"):
        return
    codec = {"sjis": "shift_jis", "ujis": "euc_jp"}.get(charset, charset)
    # Characters with a backslash or a backtick in them, wherever they have.
    names = {
        b"T": "\u8868\u80fd\u8a31\u84cb\u8a00",
        b"C": "\u30bd\u529f\u7adc\u7d63\u8a9e",
        b"V": "\u3042\u8868\u30bd\u529f\u8a31\u6587",
        b"A": "\u80fd\u8868\u9ec3\u5b57",
    }
    words = {key: word.encode(codec, "ignore") for key, word in names.items()}
    texts = lines(__file__, "test_names_are_written_as_the_server_reads_them")
    if servers[1].family is Family.MYSQL:
        # It sends the literals of a text that it has prepared in UTF-8, whatever character_set_results is.
        texts = [text for text in texts if text != "EXECUTE p"]
    found = []
    for port, database in both:
        client = connect(port, database, charset, raw=True)
        told = []
        for sql in texts:
            text = re.sub(rb"(?<![A-Z])[TCVA](?![A-Z])", lambda m: words[m[0]], sql.encode())
            told += [sql, answers(client, text)]
        run(client, "USE " + database)
        assert answers(client, b"DROP TABLE `%sr`" % words[b"A"]) == [None]
        found.append(told)
        client.close()
    assert found[0] == found[1]


def test_bound_values_are_the_servers_to_read(tight: RunningProxy) -> None:
    owner = tight.connect(database="plain", autocommit=True)
    run(owner, "CREATE TABLE word (id INT, w VARCHAR(20) CHARACTER SET utf8mb4)")
    client = tight.connector("plain", charset="gbk")
    cursor = client.cursor(prepared=True)
    cursor.execute("INSERT INTO word VALUES (%s, %s)", (1, "\u7e17'"))
    cursor.execute("SELECT w FROM word WHERE w = %s", ("\u7e17'",))
    assert cursor.fetchall() == [("\u7e17'",)]
    client.close()
    assert rows(owner, "SELECT w FROM word") == (("\u7e17'",),)


def test_values_that_the_server_converts_route_nothing(tight: RunningProxy) -> None:
    """The shard of a word is that of its UTF-8, whoever asks for it."""
    owner = tight.connect(database="commerce", autocommit=True)
    run(owner, "CREATE TABLE named (id VARCHAR(20) CHARACTER SET utf8mb4 PRIMARY KEY)")
    for number in range(8):
        run(owner, f"INSERT INTO named (id) VALUES ('\u00e9{number}')")
    client = tight.connect(database="commerce", autocommit=True, charset="latin1")
    for number in range(8):
        word = f"\u00e9{number}"
        assert rows(client, f"SELECT id FROM named WHERE id = '{word}'") == ((word,),)
    assert run(client, "DELETE FROM named WHERE id IN ('\u00e90', '\u00e91')") == 2
    refuses(client, "INSERT INTO named (id) VALUES ('\u00e9')", 1235, "vindex column 'id'")
    assert run(client, "INSERT INTO named (id) VALUES ('tea')") == 1
    assert rows(owner, "SELECT id FROM named WHERE id = 'tea'") == (("tea",),)


SETS = (
    "SET NAMES utf8mb3",
    "SET NAMES bogus",
    "SET NAMES latin1 COLLATE utf8mb3_bin",
    "SET CHARACTER SET latin1",
    "SET character_set_connection = ucs2",
    "SET @@collation_connection = ucs2_general_ci",
    "SET NAMES utf8mb3, collation_connection = utf16le_general_ci",
    "SET @n = 1, NAMES utf8mb3, sql_notes = 0",
)


@in_turn
@pytest.mark.parametrize("others", [0, 4])
def test_a_set_warns_as_the_server_alone_does(tight, both, others):
    """Also where others have had the connection when the client asks."""
    crowd = [tight.connect(database="plain", autocommit=True) for _ in range(others)]
    found = []
    for port, database in both:
        told: list[Any] = []
        for text in SETS:
            client = connect(port, database, "utf8mb4")
            told += answers(client, text.encode())
            for other in crowd:
                refused(other, "SELECT no_column")
            for asked in ("SHOW WARNINGS", "SELECT @@warning_count", WHAT_IS_SET):
                told += answers(client, asked.encode())
            client.close()
        found.append(told)
    for other in crowd:
        other.close()
    assert found[0] == found[1]
