import ast

import pytest

from streamfrom.proxy.passwords.scramble import stored_native, stored_sha2
from streamfrom.proxy.passwords.verifier import ROUNDS_AT_ONCE, Verifier, sha256_crypt
from tests.cases import cases
from tests.proxy.wire.accounts import CRYPT, NATIVE, PASSWORD, in_one_go, in_pieces, verifier


def test_verifiers_are_made_from_what_servers_store():
    clear = Verifier.from_password("pw")
    assert (clear.native, clear.sha2) == (stored_native(b"pw"), stored_sha2(b"pw"))
    assert Verifier.from_hash(NATIVE).native == stored_native(PASSWORD.encode())
    assert in_one_go(Verifier.from_hash(CRYPT).is_password(PASSWORD.encode()))
    # As "SHOW CREATE USER" prints it; of MySQL 9.7, whose count of rounds shows it is hexadecimal.
    hexadecimal = (
        "0x2441243030412468552B39703A28711C5E33584B5F3F1253640C3E677A45435251433068384971472F"
        "76504F456A7833724D6235703177455A58454A7376356F4E4779392E33"
    )
    stored = Verifier.from_hash(hexadecimal)
    assert stored.crypt is not None
    assert stored.crypt.rounds == 10_000
    assert in_one_go(stored.is_password(b"pw"))
    assert not in_one_go(stored.is_password(b"other"))


@pytest.mark.parametrize(
    "text", ["", "secret", "*12", "*" + "g" * 40, "$A$005$short", "$B$005$" + "x" * 63, "0xzz"]
)
def test_anything_else_is_no_hash(text):
    with pytest.raises(ValueError, match="expected"):
        Verifier.from_hash(text)


@pytest.mark.parametrize("kind", ["clear", "native", "crypt"])
def test_clear_text_is_checked_against_whatever_is_known(kind):
    assert in_one_go(verifier(kind).is_password(PASSWORD.encode()))
    assert not in_one_go(verifier(kind).is_password(b"other"))


@cases(password=str.encode, salt=str.encode, rounds=ast.literal_eval, digest=str.encode)
def test_published_hashes(password, salt, rounds, digest):
    found, pieces = in_pieces(sha256_crypt(password, salt, rounds))
    assert found == digest
    assert pieces == -(-rounds // ROUNDS_AT_ONCE)
