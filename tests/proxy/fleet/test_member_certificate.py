from datetime import UTC, datetime

from cryptography import x509

from streamfrom.proxy.fleet.member_certificate import make_certificate
from streamfrom.proxy.tls import fault_of_key, fault_of_time, read_certificate


def test_a_certificate_is_of_its_member_and_key_valid_now_and_the_key_not_shown():
    made = make_certificate("a1b2c3d4")
    certificate = read_certificate(made.certificate)
    assert isinstance(certificate, x509.Certificate)
    assert fault_of_key(made.key, certificate) is None
    assert fault_of_time(certificate, datetime.now(UTC)) is None
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["a1b2c3d4"]
    assert "PRIVATE" not in f"{make_certificate('a')} {make_certificate('a')!r}"
