import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
)

from streamfrom.proxy.config.file import TlsSettings
from streamfrom.proxy.config.toml_values import ConfigError
from streamfrom.proxy.tls import ServerTls
from tests.proxy.certificates import issued, write_certificate


def test_a_pair_speaks_tls_and_asks_for_no_certificate(tmp_path):
    tls = ServerTls(TlsSettings(*write_certificate(tmp_path), require=True))
    assert tls.requires_tls
    assert not tls.wants_certificate
    assert tls.context.verify_mode is ssl.CERT_NONE
    assert len(tls.certificate_sha256) == 32


def test_with_an_authority_certificates_are_verified(tmp_path):
    ca, _ = issued("ca").write(tmp_path, "ca")
    tls = ServerTls(TlsSettings(*write_certificate(tmp_path), require=False, client_ca=ca))
    assert tls.wants_certificate
    assert not tls.requires_tls
    assert tls.context.verify_mode is ssl.CERT_OPTIONAL


def test_the_fingerprint_tells_whether_any_file_has_changed(tmp_path):
    pair = write_certificate(tmp_path)
    ca, _ = issued("ca").write(tmp_path, "ca")
    first = ServerTls(TlsSettings(*pair, require=False, client_ca=ca))
    assert (
        ServerTls(TlsSettings(*pair, require=True, client_ca=ca)).fingerprint
        == first.fingerprint
    )
    issued("ca2").write(tmp_path, "ca")
    assert (
        ServerTls(TlsSettings(*pair, require=False, client_ca=ca)).fingerprint
        != first.fingerprint
    )


def encrypted():
    return issued("localhost").key.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"sesame")
    )


@pytest.mark.parametrize(
    ("file", "contents", "key", "words"),
    [
        ("server.pem", b"", "server.tls.cert", "expected a certificate in PEM, not "),
        ("server.pem", b"\xff\x00", "server.tls.cert", "expected a certificate in PEM, not "),
        ("server.key", b"", "server.tls.key", "expected a private key without a password"),
        ("server.key", issued("localhost").pem[0], "server.tls.key", "expected a private key"),
        ("server.key", encrypted(), "server.tls.key", "expected a private key without a pass"),
        ("server.key", issued("other").pem[1], "server.tls.key", "is not the key of the cert"),
        ("ca.pem", b"", "server.tls.client_ca", "expected certificates of authorities in PEM"),
        ("ca.pem", issued("ca").pem[1], "server.tls.client_ca", "expected certificates of au"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_its_key(tmp_path, file, contents, key, words):
    pair = write_certificate(tmp_path)
    ca, _ = issued("ca").write(tmp_path, "ca")
    (tmp_path / file).write_bytes(contents)
    with pytest.raises(ConfigError) as refused:
        ServerTls(TlsSettings(*pair, require=False, client_ca=ca))
    assert refused.value.key == key
    assert words in refused.value.problem
    assert str(tmp_path / file) in refused.value.problem


def test_a_file_that_went_away_is_named(tmp_path):
    pair = write_certificate(tmp_path)
    Path(pair[0]).unlink()
    with pytest.raises(ConfigError, match=r"server\.pem"):
        ServerTls(TlsSettings(*pair, require=False))
