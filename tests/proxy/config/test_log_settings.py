import pytest

from streamfrom.proxy.config.file import load
from streamfrom.proxy.config.log_settings import LogFormat, LogLevel, LogSettings
from streamfrom.proxy.config.toml_values import ConfigError
from tests.proxy.config.files import UNSHARDED


def log_of(folder, text):
    path = folder / "proxy.toml"
    path.write_text(f"{UNSHARDED}\n{text}")
    return load(path, {}).log


def test_nothing_said_is_info_in_the_form_that_fits(tmp_path):
    assert log_of(tmp_path, "") == LogSettings(LogLevel.INFO, LogFormat.AUTO)
    assert log_of(tmp_path, "[log]") == LogSettings(LogLevel.INFO, LogFormat.AUTO)


def test_levels_and_forms(tmp_path):
    for level in ("debug", "info", "warning", "error"):
        for form in ("auto", "json", "text"):
            found = log_of(tmp_path, f"[log]\nlevel = '{level}'\nformat = '{form}'")
            assert found == LogSettings(LogLevel(level), LogFormat(form))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("level = 'loud'", 'log.level: expected "debug" or "info" or "warning" or "error"'),
        ("level = 'INFO'", "log.level: expected"),
        ("level = 10", "log.level: expected"),
        ("format = 'xml'", 'log.format: expected "auto" or "json" or "text"'),
        ("file = '/var/log/x'", "log.file: unknown key; expected one of format, level"),
    ],
)
def test_a_fault_names_its_key(tmp_path, text, error):
    with pytest.raises(ConfigError) as raised:
        log_of(tmp_path, f"[log]\n{text}")
    assert str(raised.value).startswith(error)
