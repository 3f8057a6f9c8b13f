"""Signatures of MariaDB's plugin ed25519: those of RFC 8032, but with the password, of any length, in the place of the secret key.

Libraries take keys of 32 bytes alone, so the curve is here. A signature takes 1 ms.
https://mariadb.com/kb/en/authentication-plugin-ed25519/
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha512
from typing import Final


_P: Final = 2**255 - 19
_ORDER: Final = 2**252 + 27742317777372353535851937790883648493
_D: Final = -121665 * pow(121666, -1, _P) % _P

# A point in extended coordinates: x = X/Z, y = Y/Z, XY = ZT.
_Point = tuple[int, int, int, int]
_NEUTRAL: Final[_Point] = (0, 1, 1, 0)


def sign(password: bytes, message: bytes) -> bytes:
    """Return the 64 bytes by which the password's owner answers *message*, the server's nonce."""
    digest = sha512(password).digest()
    secret = (int.from_bytes(digest[:32], "little") & (1 << 254) - 8) | 1 << 254
    public = _encoded(_times_base(secret))
    once = _number(digest[32:] + message)
    commitment = _encoded(_times_base(once))
    challenge = _number(commitment + public + message)
    return commitment + ((once + challenge * secret) % _ORDER).to_bytes(32, "little")


def _number(data: bytes) -> int:
    return int.from_bytes(sha512(data).digest(), "little") % _ORDER


def _sum(one: _Point, other: _Point) -> _Point:
    x1, y1, z1, t1 = one
    x2, y2, z2, t2 = other
    a, b = (y1 - x1) * (y2 - x2), (y1 + x1) * (y2 + x2)
    c, d = 2 * t1 * t2 * _D, 2 * z1 * z2
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


@lru_cache(maxsize=1)
def _doubles() -> tuple[_Point, ...]:
    """Return the base point, twice the base point, four times …: one for each bit of a number."""
    y = 4 * pow(5, -1, _P) % _P
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * pow(2, (_P - 1) // 4, _P) % _P
    if x & 1:
        x = _P - x
    points = [(x, y, 1, x * y % _P)]
    while len(points) < 256:
        points.append(_sum(points[-1], points[-1]))
    return tuple(points)


def _times_base(number: int) -> _Point:
    found = _NEUTRAL
    for bit, point in enumerate(_doubles()):
        if number >> bit & 1:
            found = _sum(found, point)
    return found


def _encoded(point: _Point) -> bytes:
    x, y, z, _ = point
    inverse = pow(z, -1, _P)
    x, y = x * inverse % _P, y * inverse % _P
    return (y | (x & 1) << 255).to_bytes(32, "little")
