"""Just enough of DNS for a test to ask and to answer: one question, records of addresses, UDP and TCP."""

from __future__ import annotations

import secrets
import socket
import struct
from collections.abc import Sequence
from typing import NamedTuple

A = 1
AAAA = 28
OK = 0
FORMAT_ERROR = 1
NO_SUCH_NAME = 3
TTL = 30
ANY_RESOLVER = "198.51.100.1"
"""Where nothing answers: who gets an answer from here was redirected."""


class Answer(NamedTuple):
    code: int
    addresses: tuple[str, ...]


def ask(
    *names: str, kind: int = A, tcp: bool = False, resolver: str = ANY_RESOLVER, timeout: float = 3.0
) -> Answer:
    """Ask for a name, or in one message for several. Raises: TimeoutError, OSError."""
    head = struct.pack(">HHHHHH", secrets.randbelow(1 << 16), 0x0100, len(names), 0, 0, 0)
    query = head + b"".join(_name(name) + struct.pack(">HH", kind, 1) for name in names)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM) as client:
        client.settimeout(timeout)
        client.connect((resolver, 53))
        client.sendall(struct.pack(">H", len(query)) + query if tcp else query)
        reply = client.recv(4096)
    return _answer(reply[2:] if tcp else reply)


def question(message: bytes) -> tuple[str, int]:
    """The name and the kind of record that a query asks for."""
    labels, at = [], 12
    while length := message[at]:
        labels.append(message[at + 1 : at + 1 + length].decode())
        at += 1 + length
    return ".".join(labels).lower(), struct.unpack(">H", message[at + 1 : at + 3])[0]


def reply(query: bytes, code: int, addresses: Sequence[str]) -> bytes:
    """What answers a query of one question with those of the addresses that it asks for."""
    name, kind = question(query)
    family = socket.AF_INET6 if kind == AAAA else socket.AF_INET
    raw = [socket.inet_pton(family, each) for each in addresses if (":" in each) == (kind == AAAA)]
    head = query[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, len(raw), 0, 0)
    records = (b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, TTL, len(each)) + each for each in raw)
    return head + _name(name) + struct.pack(">HH", kind, 1) + b"".join(records)


def _answer(message: bytes) -> Answer:
    _, flags, questions, answers, _, _ = struct.unpack(">HHHHHH", message[:12])
    at = 12
    for _ in range(questions):
        at = _after_name(message, at) + 4
    addresses = []
    for _ in range(answers):
        at = _after_name(message, at)
        kind, _, _, length = struct.unpack(">HHIH", message[at : at + 10])
        at += 10 + length
        if kind in (A, AAAA):
            family = socket.AF_INET6 if kind == AAAA else socket.AF_INET
            addresses.append(socket.inet_ntop(family, message[at - length : at]))
    return Answer(flags & 0xF, tuple(addresses))


def _after_name(message: bytes, at: int) -> int:
    while length := message[at]:
        if length >= 0xC0:
            return at + 2
        at += 1 + length
    return at + 1


def _name(name: str) -> bytes:
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"
