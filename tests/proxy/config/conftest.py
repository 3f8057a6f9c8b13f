"""A folder with the files that configurations name, and functions that load a configuration there."""

import pytest

from streamfrom.proxy.config.file import Config, ConfigError, load


FILES = {
    "vschema.json": b'{"sharded": true}',
    "unsharded.json": b"{}",
    "broken.json": b'{"sharded": tru',
    "latin1.json": b'{"\xe9": 1}',
    "server.pem": b"certificate",
    "server.key": b"key",
}


@pytest.fixture
def folder(tmp_path):
    for name, data in FILES.items():
        (tmp_path / name).write_bytes(data)
    return tmp_path


@pytest.fixture
def read(folder):
    def read(text: str, environ=None) -> Config:
        path = folder / "streamfrom.toml"
        path.write_text(text)
        return load(path, environ or {})

    return read


@pytest.fixture
def refused(read):
    """Return the faults of a configuration; none of them repeats a secret."""

    def refused(text: str) -> list[str]:
        with pytest.raises(ConfigError) as caught:
            read(text)
        told = [str(each) for each in (caught.value, *caught.value.others)]
        assert not [line for line in told if "hunter2" in line or "1234567" in line]
        return told

    return refused
