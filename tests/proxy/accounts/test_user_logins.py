from dataclasses import replace

from streamfrom.proxy.accounts import user_logins as user_logins_module
from streamfrom.proxy.accounts.user_logins import shared_note, user_logins
from streamfrom.proxy.config.file import Secret, SessionAccount, TransactionMode, User
from streamfrom.proxy.report import Level
from tests.proxy.fake_answers import Error, Rows, Silence
from tests.proxy.fake_server import PASSWORD
from tests.proxy.rigs import config_of


OWN = User("app", Secret(PASSWORD), None, account=SessionAccount.OWN)
SHARED = User("ops", Secret("x"), None)
DENIED = Error(1142, "SELECT command denied", "42000")


async def found(server, *users, mode=TransactionMode.MULTI, away=()):
    config = config_of(server)
    config = replace(config, users=users, server=replace(config.server, transaction_mode=mode))
    return [each async for each in user_logins(config, away)]


def answers(server):
    server.on("CURRENT_USER()", Rows(("u",), ((b"app@%",),)))
    for place in ("INNODB STATUS", "metadata_locks", "streamfrom.locks"):
        server.on(place, DENIED)


async def test_who_could_see_the_name_of_the_lock_is_named(server):
    answers(server)
    server.on("streamfrom.locks", Error(1146, "no such table", "42S02"))
    (finding,) = await found(server, OWN)
    assert finding.level is Level.WARNING
    assert "dispatcher's lock (SELECT on streamfrom)" in finding.text


async def test_who_may_not_commit_in_two_phases_is_named_where_commits_do(server):
    answers(server)
    server.on("INSERT INTO streamfrom.decisions", DENIED)
    assert [each.level for each in await found(server, OWN)] == [Level.OK]
    _, finding = await found(server, OWN, mode=TransactionMode.TWOPC)
    assert finding.level is Level.INFO
    assert finding.fix is not None
    assert finding.fix.startswith("GRANT SELECT, INSERT ON streamfrom.decisions")
    server.on("INSERT INTO streamfrom.decisions", Error(1146, "no such table", "42S02"))
    assert len(await found(server, OWN, mode=TransactionMode.TWOPC)) == 1


async def test_a_refused_login_is_a_fault_and_a_shard_that_is_away_has_its_own_line(server):
    server.refusal = Error(1045, "Access denied for user 'app'", "28000")
    (finding,) = await found(server, OWN)
    assert finding.level is Level.ERROR
    assert "user app cannot log in: " in finding.text
    assert finding.fix is not None
    assert finding.fix.startswith("check that the account is there and has this password")
    server.refusal = Error(1044, "Access denied to database", "42000")
    (finding,) = await found(server, OWN)
    assert (finding.level, "may use no database here" in finding.text) == (Level.OK, True)
    server.stop()
    assert await found(server, OWN, away={"plain/-"}) == []
    (finding,) = await found(server, OWN)
    assert finding.level is Level.ERROR, "the shard answers, and not to this user"


async def test_a_login_that_may_ask_nothing_is_a_fault(server):
    server.on("CURRENT_USER()", Error(1226, "exceeded the 'max_questions' resource", "42000"))
    (finding,) = await found(server, OWN)
    assert finding.level is Level.ERROR
    assert "max_questions" in finding.text


async def test_a_server_that_does_not_answer_is_a_fault(server, monkeypatch):
    monkeypatch.setattr(user_logins_module, "ANSWER_TIMEOUT_S", 0.05)
    server.on("CURRENT_USER()", Silence())
    (finding,) = await found(server, OWN)
    assert finding.line == "error    plain/-: user app gets no answer within 0.05 s"


def test_shared_accounts_are_no_wall():
    assert shared_note([OWN]) is None
    note = shared_note([OWN, SHARED])
    assert note is not None
    assert note.line.startswith('info     users: account = "shared" is no wall: ops may do all')
