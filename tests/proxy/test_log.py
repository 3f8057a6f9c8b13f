import io
import json
import logging
import socket
import sys
from contextlib import contextmanager
from unittest import mock

import pytest
import structlog

from streamfrom.proxy import log
from streamfrom.proxy.config.file import Secret
from tests.sim.memory_store import loaded, raw_table


class Stderr(io.StringIO):
    """A terminal or a pipe."""

    def __init__(self, *, is_terminal):
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self):
        return self._is_terminal

    @property
    def lines(self):
        return self.getvalue().splitlines()


@contextmanager
def configured(*, is_terminal=False, **options):
    """Standard error while logging goes there; afterwards everything is as it was."""
    stderr = Stderr(is_terminal=is_terminal)
    loggers = [logging.getLogger(name) for name in (None, "sqlglot", "asyncmy")]
    before = [(logger, logger.level) for logger in loggers]
    handlers = loggers[0].handlers[:]
    with mock.patch.object(sys, "stderr", stderr):
        log.configure(**options)
        try:
            yield stderr
        finally:
            structlog.reset_defaults()
            loggers[0].handlers[:] = handlers
            for logger, level in before:
                logger.setLevel(level)


def test_a_name_that_is_looked_up_in_vain_after_its_connect_timed_out_is_no_news():
    asyncios = logging.getLogger("asyncio")
    with configured() as stderr:
        for error in (socket.gaierror(-2, "Name or service not known"), OSError("another")):
            asyncios.error("Future exception was never retrieved", exc_info=error)
    (line,) = stderr.lines
    assert "another" in line


def test_what_strangers_cause_has_a_line_for_each_reason_but_not_for_any_number_of_them():
    now_s = 0.0
    with configured() as stderr:
        sparing = log.SparingLog(structlog.get_logger(), lambda: now_s)
        for _ in range(3):
            sparing.warning("TLS failed", reason="unsupported protocol")
            sparing.warning("TLS failed", reason="certificate has expired")
        assert len(stderr.lines) == 2
        for number in range(1000):
            sparing.info("TLS failed", reason=f"reason {number}")
        bound = len(stderr.lines)
        assert bound < 50
        now_s = log.QUIET_S
        sparing.info("TLS failed", reason="one more")
        sparing.info("TLS failed", reason="unsupported protocol")
        *_, before, last = map(json.loads, stderr.lines[bound:])
    assert before["reason"] == "one more"
    assert last["count"] == 1


def test_a_piped_line_is_json_with_time_level_and_who_is_concerned():
    named = loaded(raw_table("msg")).named
    with configured() as stderr:
        structlog.get_logger().bind(connection=7).warning("login refused", user="app")
        logging.getLogger("streamfrom.engine").warning("late", extra={**named, "shard": "-80"})
    own, line = map(json.loads, stderr.lines)
    assert own.pop("timestamp").endswith("Z")
    who = {"connection": 7, "user": "app"}
    assert own == {"event": "login refused", "level": "warning"} | who
    assert line.pop("timestamp")
    assert line == {
        "event": "late",
        "level": "warning",
        "keyspace": "ks",
        "queue": "msg",
        "shard": "-80",
    }


def test_each_line_of_a_member_and_of_a_worker_says_which_one_it_is():
    with configured(level=logging.INFO, worker=3) as stderr:
        log.name_member("0a1b")
        structlog.get_logger().info("listening", port=1)
        logging.getLogger("streamfrom.engine").info("elected")
        structlog.get_logger().debug("unseen")
    assert [
        (line["event"], line["member"], line["worker"])
        for line in map(json.loads, stderr.lines)
    ] == [("listening", "0a1b", 3), ("elected", "0a1b", 3)]
    with configured() as stderr:
        structlog.get_logger().info("another process")
    assert not {"member", "worker"} & set(json.loads(stderr.lines[0]))


def test_a_trace_is_one_line_too():
    with configured() as stderr:
        try:
            raise ValueError("boom")
        except ValueError as error:
            structlog.get_logger().exception("internal error", exc_info=error)
            logging.getLogger("streamfrom.engine.messaging.shell.runner").error(
                "failed", exc_info=error
            )
    for line in map(json.loads, stderr.lines):
        assert "ValueError: boom" in line["exception"]
    assert len(stderr.lines) == 2


@pytest.mark.parametrize("no_color", ["", "1"])
def test_lines_on_a_terminal_have_colours_unless_these_are_unwanted(no_color, monkeypatch):
    monkeypatch.setenv("NO_COLOR", no_color)
    with configured(is_terminal=True) as stderr:
        structlog.get_logger().info("listening")
    assert ("\x1b[" in stderr.getvalue()) == (not no_color)


def levels_logged(**options):
    with configured(**options) as stderr:
        for logger in (structlog.get_logger(), logging.getLogger("engine")):
            for level in ("debug", "info", "warning", "error"):
                getattr(logger, level)("x")
    return [json.loads(line)["level"] for line in stderr.lines]


def test_decisions_are_logged_if_asked_for_and_a_quiet_proxy_tells_faults_only():
    everything = ["debug", "info", "warning", "error"]
    assert levels_logged() == everything[1:] * 2
    assert levels_logged(verbose=True) == everything * 2
    assert levels_logged(quiet=True) == everything[3:] * 2


def test_a_secret_stays_one_and_libraries_that_also_raise_what_they_log_are_quiet():
    with configured() as stderr:
        structlog.get_logger().info(
            "x", password=Secret("sesame"), nested={"p": Secret("sesame")}
        )
        logging.getLogger("sqlglot").warning("contains unsupported syntax")
        logging.getLogger("asyncmy").error("Cannot connect")
    (line,) = stderr.lines
    assert "sesame" not in line


def test_text_of_others_makes_no_line_and_no_colour_of_its_own():
    forged = "q\n2026-01-01 [error    ] forged\x1b[2J"
    with configured(as_json=False) as stderr:
        structlog.get_logger().warning(f"message table {forged}", reason=forged)
        try:
            raise ValueError("\x1b[2J")
        except ValueError:
            structlog.get_logger().exception("failed")
    first, *rest = stderr.lines
    assert r"q\n2026-01-01 [error    ] forged\x1b[2J" in first
    assert "failed" in rest[0]
    assert "\x1b" not in stderr.getvalue()
