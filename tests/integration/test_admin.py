"""What a real proxy tells of itself: `[admin]`, SHOW QUEUE STATUS and the schema `streamfrom`."""

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from tests.fixtures.running_proxy import keyspace_toml
from tests.fixtures.streams import eventually, message_table, refused, rows, run, value
from tests.fixtures.terminal import Terminal
from tests.integration.conftest import Queue


def ask(address: str, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"{address}{path}", timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.one_server
def test_figures_and_health(breakable_servers, breakable_database, start_proxy, consume):
    server, _ = breakable_servers
    config = '[server]\nlisten = "127.0.0.1:0"\n[admin]\nlisten = "127.0.0.1:0"\n'
    proxy = start_proxy(config + keyspace_toml("ks", [server], breakable_database))
    (address,) = re.findall(r"(http://127\.0\.0\.1:\d+)/metrics", proxy.log_path.read_text())
    assert ask(address, "/healthz") == (200, "alive\n")
    assert ask(address, "/readyz") == (200, "ready\n")
    client = proxy.connect(database="ks", autocommit=True)
    run(client, message_table())
    stream = consume(proxy, database="ks")
    run(client, "INSERT INTO my_message (id) VALUES (1), (2)")
    stream.take(2)
    run(client, "UPDATE my_message SET time_acked = NOW() WHERE id = 1")
    labels = '{keyspace="ks",queue="my_message"}'
    status, text = ask(address, "/metrics")
    assert status == 200
    assert f"streamfrom_messages_delivered_total{labels} 2\n" in text
    assert f"streamfrom_messages_acked_total{labels} 1\n" in text
    assert f"streamfrom_queue_in_flight{labels} 1\n" in text
    (queue,) = json.loads(ask(address, "/api/queues")[1])
    assert (queue["queue"], queue["depth"], queue["streams"]) == ("my_message", 1, 1)
    (held,) = [one["unacked"] for one in json.loads(ask(address, "/api/streams")[1])]
    assert held == 1
    assert ask(address, "/")[0] == 200
    (queue,) = json.loads(ask(address, "/api/overview")[1])["queues"]
    assert (queue["queue"], queue["depth"], queue["is_paused"]) == ("my_message", 1, 0)
    door = f"mysql://root@127.0.0.1:{proxy.port}"
    words = (sys.executable, "-m", "streamfrom.proxy", "queues", door)
    heading, line = subprocess.check_output(words, text=True, timeout=120).splitlines()
    told = dict(zip(re.split("  +", heading), line.split(), strict=True))
    assert (told["QUEUE"], told["UNACKED"], told["ACKED"]) == ("ks.my_message", "1", "1")
    watches_on_a_terminal(door)
    server.stop()
    eventually(lambda: ask(address, "/readyz") == (503, "no shard answers\n"))
    assert ask(address, "/healthz")[0] == 200
    look = "/api/messages?keyspace=ks&queue=my_message&state=ready"
    page = json.loads(ask(address, look)[1])
    assert (page["rows"], [each["shard"] for each in page["missing"]]) == ([], ["-"])
    server.start()
    eventually(lambda: ask(address, "/readyz")[0] == 200)


def watches_on_a_terminal(door):
    terminal = Terminal(
        [sys.executable, "-m", "streamfrom.proxy", "top", "--every", "0.2", door], "xterm"
    )
    try:
        terminal.expect(r"\[queues\]  streams .*by queue")
        terminal.expect(r"UNACKED.*STREAMS")
        terminal.expect("ks.my_message")
        terminal.press(">")
        terminal.expect("by unacked")
        terminal.press("2")
        terminal.expect(r"\[streams\]")
        terminal.expect("root +127.0.0.1.*my_message")
        terminal.press("4")
        terminal.expect(r"\[members\]")
        terminal.press("q")
        # The cursor and the former screen are back.
        terminal.expect(r"\x1b\[\?1049l\x1b\[\?25h")
        assert terminal.process.wait(60) == 0
    finally:
        terminal.close()


def test_any_select_reads_status_tables(sharded: Queue) -> None:
    client = sharded.create()
    sharded.create(name="other_message")
    run(client, "INSERT INTO my_message (id, message) VALUES (1, '{}')")
    asked = "SELECT queue FROM streamfrom.queues WHERE keyspace = 'commerce' ORDER BY queue DESC LIMIT 2"
    names = rows(client, asked)
    assert names == (("other_message",), ("my_message",))
    deep = "SELECT COUNT(*) FROM `streamfrom`.`queues` AS q WHERE q.depth > 0"
    eventually(lambda: value(client, deep) == 1)
    assert value(client, "SELECT SUM(streamfrom.queues.depth) FROM STREAMFROM.queues") == 1
    with_own = (
        "WITH RECURSIVE d AS (SELECT depth FROM streamfrom.queues) SELECT MAX(depth) FROM d"
    )
    assert value(client, with_own) == 1
    # Proxies of other tests may stand before these shards as well, or were killed a moment ago; none has this keyspace.
    shards = "FROM streamfrom.shards WHERE keyspace = 'commerce'"
    assert rows(client, f"SELECT (SELECT COUNT(*) {shards}), (SELECT 1)") == ((2, 1),)
    assert value(client, f"SELECT GROUP_CONCAT(shard ORDER BY shard) {shards}") == "-80,80-"
    assert rows(client, f"SELECT is_up, last_error {shards} AND shard = '-80'") == ((1, None),)
    answering = (
        "SELECT COUNT(*) > 0, MAX(connections) >= 1 FROM streamfrom.members WHERE is_answering"
    )
    assert rows(client, answering) == ((1, 1),)
    assert rows(client, "SELECT * FROM streamfrom.streams WHERE 1 = 0") == ()


def test_show_queue_status_tells_of_the_keyspace_one_is_in(plain, sharded, cluster):
    client = sharded.create()
    plain.create(name="plain_message")
    names = [(row[0], row[1]) for row in rows(client, "SHOW QUEUE STATUS")]
    assert names == [("commerce", "my_message")]
    other = rows(client, "show queue status from plain like 'plain\\_%'")
    assert [row[1] for row in other] == ["plain_message"]
    assert rows(client, "SHOW QUEUE STATUS IN `plain` LIKE 'x%'") == ()
    run(client, "SET collation_server = latin1_swedish_ci")  # what JSON_TABLE would take
    assert rows(client, "SHOW QUEUE STATUS LIKE '日本%'") == ()
    anywhere = cluster.proxy.connect(autocommit=True)
    assert {row[0] for row in rows(anywhere, "SHOW QUEUE STATUS")} == {"commerce", "plain"}
    assert refused(client, "SHOW QUEUE STATUS FROM nowhere")[0] == 1049
    assert refused(client, "SHOW QUEUE STATUS WHERE depth > 1")[0] == 1064
    assert refused(client, "SHOW QUEUE STATUS FROM")[0] == 1064
    assert value(client, "SELECT 1") == 1
