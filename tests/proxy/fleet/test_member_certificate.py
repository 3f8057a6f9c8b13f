from datetime import UTC, datetime

import pytest
from cryptography import x509

from streamfrom.proxy.fleet.member_certificate import (
    SETTLE_S,
    TrustedCertificates,
    make_certificate,
)
from streamfrom.proxy.tls import fault_of_key, fault_of_time, read_certificate


def test_a_certificate_is_of_its_member_and_key_valid_by_any_clock_and_the_key_not_shown():
    made = make_certificate("a1b2c3d4")
    certificate = read_certificate(made.certificate)
    assert isinstance(certificate, x509.Certificate)
    assert fault_of_key(made.key, certificate) is None
    for year in (1971, 2000, 2060):
        assert fault_of_time(certificate, datetime(year, 1, 1, tzinfo=UTC)) is None
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["a1b2c3d4"]
    assert "PRIVATE" not in f"{make_certificate('a')} {make_certificate('a')!r}"


# What gRPC is told at each knock, on a clock that moves only by sleeping.
class Trust:
    """A directory and a clock."""

    def __init__(self) -> None:
        self.pem = b"one"
        self.now_s = 100.0
        self.slept: list[float] = []
        self.trusted = TrustedCertificates(lambda: self.pem, lambda: self.now_s, self.sleep)

    def sleep(self, seconds: float) -> None:
        if seconds:
            self.slept.append(seconds)
            self.now_s += seconds


def test_what_has_not_changed_is_not_told_again_and_a_change_at_the_next_knock():
    trust = Trust()
    assert trust.trusted.answered == b"one"
    assert trust.trusted.changed() is None
    trust.pem = b"one two"
    assert trust.trusted.changed() == b"one two"
    assert trust.trusted.changed() is None
    trust.pem = b""
    assert trust.trusted.changed() == b"", "while the last one settles"


def test_a_change_waits_for_handshakes_that_begin_and_later_ones_wait_for_it():
    trust = Trust()
    assert trust.trusted.changed() is None
    assert not trust.slept, "a knock of somebody known waits for nothing"
    trust.pem = b"one two"
    trust.trusted.changed()
    assert trust.slept == [SETTLE_S]
    changed_s = trust.now_s
    trust.trusted.changed()
    trust.trusted.changed()
    assert trust.now_s == changed_s + SETTLE_S
    assert trust.slept == [SETTLE_S, pytest.approx(SETTLE_S)]
