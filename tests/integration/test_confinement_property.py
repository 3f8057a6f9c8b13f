"""Masks and statements: whatever a restricted user dresses a statement in, the server is as it was.

TRUST_TEXTS says how many, for each server (default 5,000); TRUST_TEXTS=500000 TRUST_SEED=2 is a million.
Nothing of the proxy is trusted here: what counts is what the server itself holds afterwards, and
that the secret of the other keyspace is in no answer and in no error.
"""

import os
import random
from collections.abc import Iterator
from typing import Any

import pytest

from streamfrom.proxy.embedded.servers import Family
from tests.fixtures.database_servers import ServerPool
from tests.integration.confined_statements import (
    ACCOUNTS,
    BEHIND_COMMENTS,
    INTO,
    READ,
    WRITES,
    WROTE,
)
from tests.integration.walled_servers import ACCOUNT, Walls, is_told, walls


pytestmark = pytest.mark.db

TEXTS = int(os.environ.get("TRUST_TEXTS", "5000"))
SEED = int(os.environ.get("TRUST_SEED", "1"))
# So many texts are sent between two looks at the server.
BATCH = 250
READERS = ("reader", "areader")
LIMITED = ("areader", "awriter", "narrow", "consumer", "producer")

OPENS = ("/*!", "/*!50000", "/*!50700 ", "/*!80000 ", "/*!99999 ", "/*!100000 ", "/*!101119 ",
         "/*!999999 ", "/*M!", "/*M!50701 ", "/*M!999999 ", "/*!90704 ", "/*!090800 ")  # fmt: skip
BLANKS = (
    " ",
    "  ",
    "\t",
    "\n",
    "\r\n",
    "/**/",
    "/* x */",
    " -- x\n",
    " # x\n",
    "\f",
    "\v",
    "\u00a0",
)
HARMLESS = (
    "SELECT 1",
    "SHOW STATUS LIKE 'x'",
    "SET @a = 1",
    "BEGIN",
    "SELECT",
    "SHOW",
    "EXPLAIN",
)


def blanks(text: str, dice: random.Random) -> str:
    return "".join(dice.choice(BLANKS) if c == " " and dice.random() < 0.3 else c for c in text)


def case(text: str, dice: random.Random) -> str:
    if "'" in text:
        return text
    return "".join(c.swapcase() if c.isalpha() and dice.random() < 0.1 else c for c in text)


def comments(text: str, dice: random.Random) -> str:
    words = text.split(" ")
    start = dice.randrange(len(words))
    end = dice.randint(start + 1, len(words))
    inner = " ".join(words[start:end])
    return " ".join([*words[:start], dice.choice(OPENS) + inner + " */", *words[end:]])


def behind(text: str, dice: random.Random) -> str:
    return f"{dice.choice(OPENS)}{dice.choice(HARMLESS)}{dice.choice((' */ ', ' -- */ ', ' /* */ ', '; */'))}{text}"


def nested(text: str, dice: random.Random) -> str:
    return f"{dice.choice(OPENS)} /* */ {dice.choice(HARMLESS)} -- */ {text}"


def ends(text: str, dice: random.Random) -> str:
    return text + dice.choice(
        (";", " ", " -- ", " #", " /*", " /*!99999 ", "\n", ";;", " */", "\\G", "\0")
    )


def quoted(text: str, dice: random.Random) -> str:
    quote = dice.choice(("`", "`", '"'))
    for name in ("BETA", "secret", "fn", "seq"):
        if dice.random() < 0.5:
            text = text.replace(name, f"{quote}{name}{quote}")
    return f"SET sql_mode = ANSI_QUOTES; {text}" if quote == '"' else text


def spaced(text: str, dice: random.Random) -> str:
    return text.replace(".", dice.choice((" . ", ". ", " .", "/**/./**/", ".")))


def wrapped(text: str, dice: random.Random) -> str:
    literal = text.replace("\\", "\\\\").replace("'", "''")
    return dice.choice(
        (
            f"EXPLAIN {text}", f"EXPLAIN FORMAT=JSON {text}", f"EXPLAIN ANALYZE {text}",
            f"ANALYZE {text}", f"DESCRIBE {text}", f"SET STATEMENT max_statement_time=1 FOR {text}",
            f"EXECUTE IMMEDIATE '{literal}'", f"PREPARE z FROM '{literal}'; EXECUTE z",
            f"SET @z = '{literal}'; PREPARE z FROM @z; EXECUTE z",
            f"SET @z = '{literal}'; EXECUTE IMMEDIATE @z", f"BEGIN NOT ATOMIC {text}; END",
            f"IF 1 THEN {text}; END IF", f"CREATE PROCEDURE pp() {text}", f"({text})",
            f"WITH w AS (SELECT 1) {text}", f"CREATE VIEW vv AS {text}", f"DO ({text})",
            f"SET @z = ({text})", f"SELECT ({text})", f"INSERT INTO t SELECT 1, 2, 3 FROM ({text}) x",
            f"SELECT 1 UNION {text}", f"SHOW VARIABLES WHERE ({text})", f"CREATE TABLE tt AS {text}",
            f"SELECT 1; {text}", f"{text}; SELECT 1", f"DELIMITER ;; {text}", f"CALL ({text})",
            f"SET sql_mode = ORACLE; {text}", f"SET sql_mode = MSSQL; {text}",
            f"SET sql_mode = NO_BACKSLASH_ESCAPES; SELECT '\\'; {text} -- '",
            f"SET NAMES latin1; {text}", f"SET NAMES gbk; SELECT '\u00bf\\'; {text} -- '",
            f"SET NAMES utf8mb4; {text}", f"SELECT /*+ '*/ 1 -- ' */ 1; {text}",
            f"SET STATEMENT lock_wait_timeout=1 FOR {text}",
            f"CALL sys.execute_prepared_stmt('{literal}')",
            f"USE `ALPHA:0`; {text}", f"USE information_schema; {text}",
        )
    )  # fmt: skip


MASKS = (blanks, case, comments, behind, nested, ends, quoted, spaced, wrapped)


def masked(text: str, dice: random.Random) -> str:
    for mask in dice.choices(MASKS, k=dice.choice((1, 1, 2, 2, 3))):
        text = mask(text, dice)
    return text


def own(accounts: Any) -> list[Any]:
    """Return what the server knows of the proxy's account, and of those without a name."""
    return [account for account in accounts if account[0].strip() in (ACCOUNT, "")]


@pytest.fixture
def cluster(
    server_pool: ServerPool, family: Family, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Walls]:
    yield from walls(server_pool.server(family, 0), tmp_path_factory.mktemp("walls"))


def test_no_mask_gets_a_statement_through(cluster: Walls) -> None:
    dice = random.Random(SEED)
    jobs = (
        (READERS, [*WRITES, *BEHIND_COMMENTS, *INTO, *WROTE], ()),
        (LIMITED, READ, (cluster.beta,)),
        (LIMITED, WROTE, (cluster.beta,)),
        (("boss", "writer", "awriter", "reader"), ACCOUNTS, (cluster.beta,)),
    )
    done = answered = 0
    while done < TEXTS:
        users, statements, databases = dice.choices(jobs, weights=(3, 4, 2, 1))[0]
        before, accounts = cluster.state(*databases), cluster.account()
        sent = []
        for _ in range(min(BATCH, TEXTS - done)):
            user, text = dice.choice(users), masked(dice.choice(statements), dice)
            sent.append((user, text))
            seen = cluster.say(user, text)
            assert not is_told(user, seen), (user, text, seen)
            answered += "Error" not in seen
            if dice.random() < 0.02:
                cluster.clients.pop(user, None)
        done += len(sent)
        cluster.clients.clear()
        cluster.proxy.disconnect()
        assert cluster.state(*databases) == before, sent
        found = cluster.account()
        if (
            "writer" in users
        ):  # who may make accounts, but not this one, and none without a name
            accounts, found = own(accounts), own(found)
        assert found == accounts, sent
        if not databases:
            continue
        cluster.build()  # what the users of alpha may change there, they have changed
    assert "internal error" not in cluster.proxy.log()
    assert answered > TEXTS // 200
