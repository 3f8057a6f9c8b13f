from hashlib import sha256

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, strategies as st

from streamfrom.proxy.passwords.scramble import (
    certificate_signature,
    is_native_proof,
    is_sha2_proof,
    masked_password,
    native_proof,
    sha2_proof,
    sign,
    stored_native,
    stored_sha2,
    unmasked_password,
)


NONCE = bytes(range(40, 60))

NATIVE = "259905caaea50a623443bccd6a7e6d0a0cb7e85d"
SHA2 = "07fca301ee122852d7e35f5c67372ae0299c0b762774938dc50c5de373d2ae19"

passwords = st.binary(min_size=1, max_size=40)


def test_hashes_proofs_and_signatures_are_those_of_others():
    # SELECT PASSWORD('mypass') on any server that still has it.
    assert stored_native(b"mypass").hex().upper() == "6C8989366EAF75BB670AD8EA7A7FC1176A95CEF4"
    # Computed with PyMySQL's scramble_native_password and scramble_caching_sha2.
    assert native_proof(b"secret", NONCE).hex() == NATIVE
    assert sha2_proof(b"secret", NONCE).hex() == SHA2
    assert native_proof(b"", NONCE) == sha2_proof(b"", NONCE) == b""
    stored = stored_native(b"pw")
    fingerprint = sha256(b"certificate").digest()
    signature = certificate_signature(stored, NONCE, fingerprint)
    digest = sha256(stored + NONCE + fingerprint).hexdigest()
    assert signature == b"\x01" + digest.upper().encode()


@given(password=passwords, other=passwords, nonce=st.binary(min_size=20, max_size=20))
def test_only_the_right_password_proves_itself(password, other, nonce):
    right = password == other
    assert is_native_proof(native_proof(other, nonce), nonce, stored_native(password)) == right
    assert is_sha2_proof(sha2_proof(other, nonce), nonce, stored_sha2(password)) == right


@given(password=passwords, other=passwords, nonce=st.binary(min_size=20, max_size=20))
def test_a_proof_with_the_nonce_in_front_is_as_good(password, other, nonce):
    """https://github.com/launchbadge/sqlx/blob/v0.8.6/sqlx-mysql/src/connection/auth.rs"""
    mask = sha256(nonce + stored_sha2(other)).digest()
    proof = bytes(a ^ b for a, b in zip(sha256(other).digest(), mask, strict=True))
    stored = stored_sha2(password)
    assert is_sha2_proof(proof, nonce, stored, nonce_first=True) == (password == other)
    assert not is_sha2_proof(proof, nonce, stored)


@given(password=passwords)
def test_a_proof_is_worth_nothing_under_another_nonce(password):
    fresh = NONCE[::-1]
    assert not is_native_proof(native_proof(password, NONCE), fresh, stored_native(password))
    assert not is_sha2_proof(sha2_proof(password, NONCE), fresh, stored_sha2(password))


@pytest.mark.parametrize("proof", [b"", b"\0", b"x" * 19, b"x" * 64])
def test_a_proof_of_wrong_size_is_wrong(proof):
    assert not is_native_proof(proof, NONCE, stored_native(b"pw"))
    assert not is_sha2_proof(proof, NONCE, stored_sha2(b"pw"))
    padded = native_proof(b"pw", NONCE) + b"x"
    assert not is_native_proof(padded, NONCE, stored_native(b"pw"))


@given(password=st.binary(max_size=100), nonce=st.binary(min_size=20, max_size=20))
def test_a_masked_password_comes_back_with_its_nul(password, nonce):
    assert unmasked_password(masked_password(password, nonce), nonce) == password + b"\0"


@given(st.binary(min_size=32, max_size=32), st.binary(max_size=80))
def test_with_32_bytes_it_is_ed25519(secret, message):
    assert sign(secret, message) == Ed25519PrivateKey.from_private_bytes(secret).sign(message)


def test_a_password_of_another_length_signs_too():
    # That MariaDB takes these, tests/integration/accounts finds.
    signatures = {sign(password, b"n" * 32) for password in (b"", b"a", b"b" * 200)}
    assert len(signatures) == 3
    assert {len(each) for each in signatures} == {64}
