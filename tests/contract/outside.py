"""The world around the pod, as a program in a namespace of its own: a resolver, and hosts that echo.

`python -m tests.contract.outside RECORDS LOG ADDRESS…`: RECORDS is JSON of names and addresses; every name
that the resolver is asked for is a line of LOG. Writes `ready` when it listens.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.contract import lookups

RESOLVER = "203.0.113.53"
ALLOWED = "203.0.113.7"
OTHER = "203.0.113.8"
THIRD = "203.0.113.9"
HTTPS = 443
DNS_OVER_TLS = 853
ALLOWED6 = "2001:db8::7"
OTHER6 = "2001:db8::8"
ADDRESSES = (RESOLVER, ALLOWED, OTHER, THIRD, ALLOWED6, OTHER6)
RECORDS = {
    "ok.example": [ALLOWED, ALLOWED6],
    "other.example": [OTHER, OTHER6],
    "zone.example": [OTHER],
    "a.zone.example": [THIRD],
    "b.a.zone.example": [THIRD],
}


def main(arguments: Sequence[str]) -> None:
    records: dict[str, list[str]] = json.loads(arguments[0])
    log = Path(arguments[1])

    def resolve(query: bytes) -> bytes:
        name, _ = lookups.question(query)
        with log.open("a") as lines:
            lines.write(f"{name}\n")
        if name not in records:
            return lookups.reply(query, lookups.NO_SUCH_NAME, ())
        return lookups.reply(query, lookups.OK, records[name])

    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind((RESOLVER, 53))
    _forever(_answer_datagrams, datagrams, resolve)
    _serve((RESOLVER, 53), lambda client: _answer_stream(client, resolve))
    for address in arguments[2:]:
        for port in (HTTPS, DNS_OVER_TLS):
            _serve((address, port), _echo)
    print("ready", flush=True)
    threading.Event().wait()


def _answer_datagrams(server: socket.socket, resolve: Callable[[bytes], bytes]) -> None:
    while True:
        query, client = server.recvfrom(4096)
        server.sendto(resolve(query), client)


def _answer_stream(client: socket.socket, resolve: Callable[[bytes], bytes]) -> None:
    answer = resolve(client.recv(4096)[2:])
    client.sendall(struct.pack(">H", len(answer)) + answer)


def _echo(client: socket.socket) -> None:
    while data := client.recv(4096):
        client.sendall(data)


def _serve(address: tuple[str, int], talk: Callable[[socket.socket], None]) -> None:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    server = socket.create_server(address, family=family)

    def accept() -> None:
        while True:
            client, _ = server.accept()
            _forever(talk, client)

    _forever(accept)


def _forever(target: Callable[..., None], *arguments: object) -> None:
    threading.Thread(target=target, args=arguments, daemon=True).start()


if __name__ == "__main__":
    main(sys.argv[1:])
