import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from streamfrom.proxy.tls import KEY_BITS, ServerKey


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
