"""What is wrong with a certificate and its key."""

from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from streamfrom.proxy.certificate import (
    SOON,
    expires_soon,
    fault_of_key,
    fault_of_time,
    read_certificate,
)
from tests.proxy.certificates import write_certificate


@pytest.fixture
def pair(tmp_path):
    cert, key = (Path(path).read_bytes() for path in write_certificate(tmp_path))
    return read_certificate(cert), cert, key


def pem(key, encryption=None):
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption or NoEncryption())


def test_a_pair_that_fits_has_no_fault_and_a_passphrase_is_not_asked_for(pair):
    certificate, cert, key = pair
    assert fault_of_key(key, certificate) is None
    assert fault_of_key(cert + key, certificate) is None  # both in one file
    locked = pem(ec.generate_private_key(ec.SECP256R1()), BestAvailableEncryption(b"x"))
    assert fault_of_key(locked, certificate) == "is encrypted; write it without a passphrase"


@pytest.mark.parametrize(
    "key",
    [
        ec.generate_private_key(ec.SECP256R1()),
        rsa.generate_private_key(public_exponent=65537, key_size=2048),
    ],
    ids=["same kind", "another kind"],
)
def test_a_key_of_another_certificate_is_told(pair, key):
    assert fault_of_key(pem(key), pair[0]) == "is not the key of the certificate"


@pytest.mark.parametrize("text", [b"", b"key", b"\xff\x00", b"-----BEGIN PRIVATE KEY-----"])
def test_what_is_no_pem_is_told(pair, text):
    assert fault_of_key(text, pair[0]) == "holds no private key in PEM"
    assert read_certificate(text) == "holds no certificate in PEM"


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
