"""The command itself, where nothing that it needs is installed."""

import sys

from streamfrom.spark.cli import main


def test_a_package_that_is_missing_is_named_with_its_cure(capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "streamfrom.spark.command", raising=False)
    monkeypatch.setitem(sys.modules, "pymysql", None)
    monkeypatch.delitem(sys.modules, "streamfrom.spark.endpoint", raising=False)
    assert main(["archive"]) == 2
    assert "pip install 'streamfrom[spark]'" in capsys.readouterr().err
