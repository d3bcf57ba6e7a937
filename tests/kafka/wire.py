"""Asks a broker, in Kafka's own protocol and with nothing but a socket, whether it is ready.

An open port is not enough: the broker listens before it answers, and answers before the controller
lets it lead partitions. A Metadata request (version 1, no topics) names the brokers in service, so
it tells all three.
"""

import socket
import struct
import time
from collections.abc import Callable

_METADATA, _VERSION, _CORRELATION = 3, 1, 7
_CLIENT = b"ready"
_REQUEST = struct.pack(
    f">hhih{len(_CLIENT)}si", _METADATA, _VERSION, _CORRELATION, len(_CLIENT), _CLIENT, 0
)


def brokers_in_service(host: str, port: int, timeout: float = 2.0) -> int:
    """Return how many brokers the one at `host:port` knows to be in service; 0 when it does not answer."""
    try:
        with socket.create_connection((host, port), timeout=timeout) as connection:
            connection.sendall(struct.pack(">i", len(_REQUEST)) + _REQUEST)
            reply = b""
            while len(reply) < 12:
                more = connection.recv(12 - len(reply))
                if not more:
                    return 0
                reply += more
    except OSError:
        return 0
    _size, correlation, count = struct.unpack(">iii", reply)
    return count if correlation == _CORRELATION else 0


def wait_until_ready(
    address: str, seconds: float, alive: Callable[[], bool] = lambda: True
) -> bool:
    """Wait until the broker at `address` (host:port) is in service; False when it died or the time is up."""
    host, _, port = address.rpartition(":")
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and alive():
        if brokers_in_service(host, int(port)):
            return True
        time.sleep(0.05)
    return False


def free_ports(count: int) -> list[int]:
    """Return ports of the loopback address that nobody uses now, all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
