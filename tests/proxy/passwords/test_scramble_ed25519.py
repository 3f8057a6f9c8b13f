from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, strategies as st

from streamfrom.proxy.passwords.scramble import sign


@given(st.binary(min_size=32, max_size=32), st.binary(max_size=80))
def test_with_32_bytes_it_is_ed25519(secret, message):
    assert sign(secret, message) == Ed25519PrivateKey.from_private_bytes(secret).sign(message)


def test_a_password_of_another_length_signs_too():
    # That MariaDB takes these, tests/integration/accounts finds.
    signatures = {sign(password, b"n" * 32) for password in (b"", b"a", b"b" * 200)}
    assert len(signatures) == 3
    assert {len(each) for each in signatures} == {64}
