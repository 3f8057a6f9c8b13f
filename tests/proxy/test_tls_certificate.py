"""What is wrong with a certificate and its key."""

from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from streamfrom.proxy.tls import (
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
