import pytest

from streamfrom.proxy.passwords.sha256_crypt import ROUNDS_AT_ONCE, sha256_crypt


def whole(pieces):
    """Return the hash, and behind how many pieces it came."""
    count = 0
    while True:
        try:
            next(pieces)
        except StopIteration as ended:
            return ended.value, count
        count += 1


@pytest.mark.parametrize(
    ("password", "salt", "rounds", "digest"),
    [
        # Drepper's own, https://www.akkadia.org/drepper/SHA-crypt.txt; his salts are cut to 16.
        (b"Hello world!", b"saltstring", 5000, b"5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5"),
        (
            b"Hello world!",
            b"saltstringsaltst",
            10000,
            b"3xv.VbSHBb41AL9AvLeujZkZRBAwqFMz2.opqey6IcA",
        ),
        (
            b"This is just a test",
            b"toolongsaltstrin",
            5000,
            b"Un/5jzAHMgOGZ5.mWJpuVolil07guHPvOW8mGRcvxa5",
        ),
        (
            b"a very much longer text to encrypt.  This one even stretches over morethan one line.",
            b"anotherlongsalts",
            1400,
            b"Rx.j8H.h8HjEDGomFU8bDkXm3XIUnzyxf12oP84Bnq1",
        ),
        (
            b"the minimum number is still observed",
            b"roundstoolow",
            1000,
            b"yfvwcWrQ8l/K0DAWyuPMDNHpIVlTQebY9l/gL972bIC",
        ),
        # MySQL's, with 20 bytes of salt: hashcat's example for mode 7401, and a server 9.7.
        (
            b"hashcat",
            bytes.fromhex("F9CC98CE08892924F50A213B6BC571A2C11778C5"),
            5000,
            b"bTy95Y99eAME1dwEkHOA1ndHGBWz.1bxSSRkuTXFGV/",
        ),
        (
            b"pw",
            bytes.fromhex("68552B39703A28711C5E33584B5F3F1253640C3E"),
            10000,
            b"gzECRQC0h8IqG/vPOEjx3rMb5p1wEZXEJsv5oNGy9.3",
        ),
    ],
)
def test_published_hashes(password, salt, rounds, digest):
    found, pieces = whole(sha256_crypt(password, salt, rounds))
    assert found == digest
    assert pieces == -(-rounds // ROUNDS_AT_ONCE)


def test_an_empty_password_has_a_hash():
    assert len(whole(sha256_crypt(b"", b"x" * 20, 1000))[0]) == 43
