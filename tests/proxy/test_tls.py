import ssl
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest
import structlog
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_public_key,
)
from cryptography.x509.oid import NameOID

from streamfrom.proxy.config.file import TlsSettings
from streamfrom.proxy.config.toml_values import ConfigError
from streamfrom.proxy.tls import (
    KEY_BITS,
    SOON,
    ServerKey,
    ServerTls,
    expires_soon,
    fault_of_key,
    fault_of_time,
    read_certificate,
)
from tests.proxy.certificates import issued, write_certificate


def encrypted():
    return issued("localhost").key.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"sesame")
    )


@pytest.mark.parametrize(
    ("file", "contents", "key", "words"),
    [
        ("server.pem", None, "server.tls.cert", "cannot read"),
        ("server.pem", b"", "server.tls.cert", "holds no certificate in PEM"),
        ("server.pem", b"\xff\x00", "server.tls.cert", "holds no certificate in PEM"),
        ("server.key", b"", "server.tls.key", "holds no private key in PEM"),
        ("server.key", issued("localhost").pem[0], "server.tls.key", "holds no private key"),
        ("server.key", encrypted(), "server.tls.key", "is encrypted; write it without"),
        ("server.key", issued("other").pem[1], "server.tls.key", "is not the key of the cert"),
        ("ca.pem", b"", "server.tls.client_ca", "expected certificates of authorities in PEM"),
        ("ca.pem", issued("ca").pem[1], "server.tls.client_ca", "expected certificates of au"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_its_key(tmp_path, file, contents, key, words):
    pair = write_certificate(tmp_path)
    ca, _ = issued("ca").write(tmp_path, "ca")
    path = tmp_path / file
    path.unlink() if contents is None else path.write_bytes(contents)
    with pytest.raises(ConfigError) as refused:
        ServerTls(TlsSettings(*pair, require=False, client_ca=ca))
    assert refused.value.key == key
    assert words in refused.value.problem
    assert str(tmp_path / file) in refused.value.problem


def test_a_pair_that_openssl_refuses_is_named(tmp_path):
    """It fits, but is too weak for the security level that Python asks of OpenSSL."""
    key = rsa.generate_private_key(65537, 1024)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "weak")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pair = tmp_path / "server.pem", tmp_path / "server.key"
    pair[0].write_bytes(certificate.public_bytes(Encoding.PEM))
    pair[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    with pytest.raises(ConfigError, match=r"server\.pem cannot be used: .*KEY_TOO_SMALL"):
        ServerTls(TlsSettings(str(pair[0]), str(pair[1]), require=False))


def test_a_listener_shows_the_certificate_in_force(tmp_path):
    old, new = (
        ServerTls(TlsSettings(*issued(name).write(tmp_path, name), require=False))
        for name in ("old", "new")
    )
    in_force = [old]
    context = old.for_listener(lambda: in_force[0])
    assert shown_by(context) == old.certificate_sha256
    in_force[0] = new
    assert shown_by(context) == new.certificate_sha256


def test_a_certificate_that_has_expired_is_logged(tmp_path):
    files = issued("localhost", days=-1).write(tmp_path, "old")
    with structlog.testing.capture_logs() as logs:
        ServerTls(TlsSettings(*files, require=False)).warn()
    assert [(line["cert"], line["reason"][:14]) for line in logs] == [
        (files[0], "has expired on")
    ]


def shown_by(context):
    """Return the SHA-256 of the certificate that a client is shown, which names no host."""
    client_context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client_context.check_hostname = False
    client_context.verify_mode = ssl.CERT_NONE
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = context.wrap_bio(to_server, to_client, server_side=True)
    client = client_context.wrap_bio(to_client, to_server)
    for side in (client, server, client, server):
        with suppress(ssl.SSLWantReadError):
            side.do_handshake()
    return sha256(client.getpeercert(binary_form=True) or b"").digest()


# What is wrong with a certificate and its key.
@pytest.fixture
def pair(tmp_path):
    cert, key = (Path(path).read_bytes() for path in write_certificate(tmp_path))
    return read_certificate(cert), cert, key


def test_a_key_may_stand_in_the_file_of_its_certificate_and_none_of_another_kind_fits(pair):
    """Faults that a configuration may have are in test_tls.py."""
    certificate, cert, key = pair
    assert fault_of_key(cert + key, certificate) is None
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    text = other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    assert fault_of_key(text, certificate) == "is not the key of the certificate"


def test_a_certificate_has_its_time(pair):
    certificate = pair[0]
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    assert fault_of_time(certificate, begin) is None
    assert fault_of_time(certificate, end) is None
    past, future = begin - timedelta(seconds=1), end + timedelta(seconds=1)
    assert str(fault_of_time(certificate, past)).startswith("is not valid before 20")
    assert fault_of_time(certificate, future) == f"has expired on {end:%Y-%m-%d}"


def test_the_last_two_weeks_are_soon(pair):
    certificate = pair[0]
    end = certificate.not_valid_after_utc
    assert expires_soon(certificate, end - SOON - timedelta(seconds=1)) is None
    assert expires_soon(certificate, end - timedelta(days=3)) == (
        f"expires on {end:%Y-%m-%d}, in 3 days"
    )


SHA1 = hashes.SHA1()
OAEP = padding.OAEP(padding.MGF1(SHA1), SHA1, label=None)


def test_what_a_client_hides_with_the_public_half_the_key_reads():
    key = ServerKey()
    public = load_pem_public_key(key.public_pem())
    assert isinstance(public, RSAPublicKey)
    assert public.key_size == KEY_BITS
    assert key.decrypt(public.encrypt(b"password\0", OAEP)) == b"password\0"
    assert key.public_pem() == key.public_pem()
    with pytest.raises(ValueError, match=r"Encryption/decryption failed|Ciphertext length"):
        key.decrypt(b"nonsense")
