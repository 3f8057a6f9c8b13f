import pytest

from streamfrom.proxy.config.file import LogFormat, LogLevel, LogSettings, load
from streamfrom.proxy.config.toml_values import ConfigError
from tests.cases import cases
from tests.proxy.config.files import UNSHARDED


def log_of(folder, text):
    path = folder / "proxy.toml"
    path.write_text(f"{UNSHARDED}\n{text}")
    return load(path, {}).log


def test_nothing_said_is_info_in_the_form_that_fits(tmp_path):
    assert log_of(tmp_path, "") == LogSettings(LogLevel.INFO, LogFormat.AUTO)
    assert log_of(tmp_path, "[log]") == LogSettings(LogLevel.INFO, LogFormat.AUTO)


@cases(text=str, error=str)
def test_a_fault_names_its_key(tmp_path, text, error):
    with pytest.raises(ConfigError) as raised:
        log_of(tmp_path, f"[log]\n{text}")
    assert str(raised.value).startswith(error)
