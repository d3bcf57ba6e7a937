"""Certificates for the tests, made with the standard library alone: it can check certificates, but cannot make any.

So the little that is wanted stands here: the encoding (DER, of ASN.1), signatures with the curve P-256 (FIPS 186), the form of
a certificate (RFC 5280) and of a private key (PKCS #8, RFC 5958), which a password may lock (AES, FIPS 197, as in RFC 8018).
Nothing here guards its secrets: it is for tests, and whether it is right they see, as OpenSSL and Java accept what it makes.
"""

import base64
import hashlib
import ipaddress
import secrets
import textwrap
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

# --- DER ---------------------------------------------------------------------------------------------------------------

_INTEGER, _BITS, _OCTETS, _NULL, _OID, _UTF8, _SEQUENCE, _SET, _TIME = 0x02, 0x03, 0x04, 0x05, 0x06, 0x0C, 0x30, 0x31, 0x17


def _der(tag: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    size = len(body).to_bytes((len(body).bit_length() + 7) // 8, "big")
    return bytes([tag]) + (bytes([len(body)]) if len(body) < 128 else bytes([128 | len(size)]) + size) + body


def _integer(number: int) -> bytes:
    return _der(_INTEGER, number.to_bytes(number.bit_length() // 8 + 1, "big"))


def _oid(dotted: str) -> bytes:
    first, second, *rest = map(int, dotted.split("."))
    body = bytearray([40 * first + second])
    for number in rest:
        groups = [number >> shift & 0x7F | 0x80 for shift in range(28, 0, -7) if number >> shift]
        body += bytes([*groups, number & 0x7F])
    return _der(_OID, bytes(body))


def _bits(data: bytes) -> bytes:
    return _der(_BITS, b"\0", data)


def _pem(label: str, data: bytes) -> str:
    lines = "\n".join(textwrap.wrap(base64.b64encode(data).decode(), 64))
    return f"-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n"


# --- the curve P-256 ---------------------------------------------------------------------------------------------------

_P = 2**256 - 2**224 + 2**192 + 2**96 - 1
_N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_BASE = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)
_Point = tuple[int, int]


def _add(one: _Point | None, other: _Point | None) -> _Point | None:
    if one is None or other is None:
        return one or other
    (x1, y1), (x2, y2) = one, other
    if x1 == x2 and (y1 + y2) % _P == 0:
        return None
    slope = (3 * x1 * x1 - 3) * pow(2 * y1, -1, _P) if one == other else (y2 - y1) * pow(x2 - x1, -1, _P)
    x = (slope * slope - x1 - x2) % _P
    return x, (slope * (x1 - x) - y1) % _P


def _times(number: int, point: _Point = _BASE) -> _Point:
    found: _Point | None = None
    addend: _Point | None = point
    while number:
        if number & 1:
            found = _add(found, addend)
        addend = _add(addend, addend)
        number >>= 1
    assert found is not None
    return found


def _sign(key: int, data: bytes) -> bytes:
    digest = int.from_bytes(hashlib.sha256(data).digest(), "big")
    nonce = secrets.randbelow(_N - 1) + 1
    r = _times(nonce)[0] % _N
    return _der(_SEQUENCE, _integer(r), _integer(pow(nonce, -1, _N) * (digest + r * key) % _N))


# --- AES -----------------------------------------------------------------------------------------------------------------


def _double(byte: int) -> int:
    return (byte << 1 ^ 0x11B) & 0xFF if byte & 0x80 else byte << 1


def _boxes() -> bytes:
    """Return AES's table of substitutions: the inverse in its field, then a sum of five rotations and 0x63."""
    powers = [1]
    while len(powers) < 255:
        powers.append(powers[-1] ^ _double(powers[-1]))
    box = bytearray([0x63] * 256)
    for exponent, byte in enumerate(powers):
        inverse = powers[-exponent % 255]
        box[byte] = 0x63
        for rotation in range(5):
            box[byte] ^= (inverse << rotation | inverse >> 8 - rotation) & 0xFF
    return bytes(box)


_BOX = _boxes()
_ROWS_SHIFTED = [(place + 4 * (place % 4)) % 16 for place in range(16)]


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


def _round_keys(key: bytes) -> list[bytes]:
    words = [key[place : place + 4] for place in range(0, 16, 4)]
    constant = 1
    for place in range(4, 44):
        word = words[-1]
        if place % 4 == 0:
            word = _xor(bytes(_BOX[byte] for byte in word[1:] + word[:1]), bytes([constant, 0, 0, 0]))
            constant = _double(constant)
        words.append(_xor(words[-4], word))
    return [b"".join(words[place : place + 4]) for place in range(0, 44, 4)]


def _mixed(column: bytes) -> bytes:
    every = column[0] ^ column[1] ^ column[2] ^ column[3]
    return bytes(byte ^ every ^ _double(byte ^ column[(place + 1) % 4]) for place, byte in enumerate(column))


def _encrypted(key: bytes, start: bytes, data: bytes) -> bytes:
    """Return data in AES-128-CBC, filled up as PKCS #7 says."""
    missing = 16 - len(data) % 16
    data += bytes([missing] * missing)
    keys = _round_keys(key)
    blocks = [start]
    for place in range(0, len(data), 16):
        state = _xor(_xor(data[place : place + 16], blocks[-1]), keys[0])
        for number, round_key in enumerate(keys[1:], 1):
            state = bytes(_BOX[state[source]] for source in _ROWS_SHIFTED)
            if number < 10:
                state = b"".join(_mixed(state[column : column + 4]) for column in range(0, 16, 4))
            state = _xor(state, round_key)
        blocks.append(state)
    return b"".join(blocks[1:])


# --- keys and certificates ---------------------------------------------------------------------------------------------

_CURVE = _der(_SEQUENCE, _oid("1.2.840.10045.2.1"), _oid("1.2.840.10045.3.1.7"))
_ECDSA_SHA256 = _der(_SEQUENCE, _oid("1.2.840.10045.4.3.2"))
_ROUNDS = 2048


class Identity(NamedTuple):
    """A private key and the certificate that says whose it is.

    Attributes:
        name: Its common name.
        certificate: As PEM.
        number: The private key.
    """

    name: str
    certificate: str
    number: int

    def key(self, password: str | None = None) -> str:
        """Return the private key as PEM, locked with a password when one is given."""
        number = _der(_OCTETS, self.number.to_bytes(32, "big"))
        inner = _der(_SEQUENCE, _integer(1), number, _der(0xA1, _bits(_public(self.number))))
        plain = _der(_SEQUENCE, _integer(0), _CURVE, _der(_OCTETS, inner))
        if password is None:
            return _pem("PRIVATE KEY", plain)
        salt, start = secrets.token_bytes(16), secrets.token_bytes(16)
        locked = _encrypted(hashlib.pbkdf2_hmac("sha256", password.encode(), salt, _ROUNDS, 16), start, plain)
        hmac_sha256 = _der(_SEQUENCE, _oid("1.2.840.113549.2.9"), _der(_NULL))
        derived = _der(_SEQUENCE, _der(_OCTETS, salt), _integer(_ROUNDS), hmac_sha256)
        ways = (
            _der(_SEQUENCE, _oid("1.2.840.113549.1.5.12"), derived),
            _der(_SEQUENCE, _oid("2.16.840.1.101.3.4.1.2"), _der(_OCTETS, start)),
        )
        scheme = _der(_SEQUENCE, _oid("1.2.840.113549.1.5.13"), _der(_SEQUENCE, *ways))
        return _pem("ENCRYPTED PRIVATE KEY", _der(_SEQUENCE, scheme, _der(_OCTETS, locked)))


def authority(name: str) -> Identity:
    """Return somebody who may sign certificates, with one signed by itself."""
    number = secrets.randbelow(_N - 1) + 1
    may_sign = _extension("2.5.29.19", _der(_SEQUENCE, b"\1\1\xff"), critical=True)
    for_signing = _extension("2.5.29.15", b"\3\2\1\6", critical=True)
    return Identity(name, _certificate(name, number, name, number, may_sign, for_signing), number)


def signed_by(issuer: Identity, name: str, *hosts: str, expired: bool = False) -> Identity:
    """Return somebody whose certificate an authority signed.

    Args:
        issuer: The authority.
        name: Common name.
        hosts: Names and addresses at which it serves; none for a client.
        expired: Whether the certificate's time is over.
    """
    number = secrets.randbelow(_N - 1) + 1
    rules = [_extension("2.5.29.19", _der(_SEQUENCE), critical=True)]
    if hosts:
        rules.append(_extension("2.5.29.17", _der(_SEQUENCE, *map(_host, hosts))))
    return Identity(name, _certificate(name, number, issuer.name, issuer.number, *rules, expired=expired), number)


def _certificate(name: str, number: int, issuer: str, issuer_number: int, *extensions: bytes, expired: bool = False) -> str:
    # Who signed is known by the key too: of two authorities with one name, the wrong one would be tried.
    keys = (
        _extension("2.5.29.14", _der(_OCTETS, _mark(number))),
        _extension("2.5.29.35", _der(_SEQUENCE, _der(0x80, _mark(issuer_number)))),
    )
    begun = datetime.now(UTC) - timedelta(days=2 if expired else 1)
    body = _der(
        _SEQUENCE,
        _der(0xA0, _integer(2)),
        _integer(secrets.randbits(120) + 1),
        _ECDSA_SHA256,
        _name(issuer),
        _der(_SEQUENCE, _moment(begun), _moment(begun + timedelta(days=1 if expired else 30))),
        _name(name),
        _der(_SEQUENCE, _CURVE, _bits(_public(number))),
        _der(0xA3, _der(_SEQUENCE, *extensions, *keys)),
    )
    return _pem("CERTIFICATE", _der(_SEQUENCE, body, _ECDSA_SHA256, _bits(_sign(issuer_number, body))))


def _public(number: int) -> bytes:
    return b"\4" + b"".join(coordinate.to_bytes(32, "big") for coordinate in _times(number))


def _mark(number: int) -> bytes:
    return hashlib.sha256(_public(number)).digest()[:20]


def _extension(which: str, value: bytes, *, critical: bool = False) -> bytes:
    return _der(_SEQUENCE, _oid(which), b"\1\1\xff" if critical else b"", _der(_OCTETS, value))


def _host(host: str) -> bytes:
    try:
        return _der(0x87, ipaddress.ip_address(host).packed)
    except ValueError:
        return _der(0x82, host.encode())


def _name(common: str) -> bytes:
    return _der(_SEQUENCE, _der(_SET, _der(_SEQUENCE, _oid("2.5.4.3"), _der(_UTF8, common.encode()))))


def _moment(when: datetime) -> bytes:
    return _der(_TIME, when.strftime("%y%m%d%H%M%SZ").encode())
