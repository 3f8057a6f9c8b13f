import ast

from streamfrom.proxy.passwords.verifier import ROUNDS_AT_ONCE, sha256_crypt
from tests.cases import cases


def whole(pieces):
    """Return the hash, and behind how many pieces it came."""
    count = 0
    while True:
        try:
            next(pieces)
        except StopIteration as ended:
            return ended.value, count
        count += 1


@cases(password=str.encode, salt=str.encode, rounds=ast.literal_eval, digest=str.encode)
def test_published_hashes(password, salt, rounds, digest):
    found, pieces = whole(sha256_crypt(password, salt, rounds))
    assert found == digest
    assert pieces == -(-rounds // ROUNDS_AT_ONCE)
