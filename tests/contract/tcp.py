"""Single TCP packets that belong to no connection, sent to the pod from outside."""

from __future__ import annotations

import socket
import struct
import time

from tests.contract.namespaces import INSIDE, OUTSIDE

SYN = 0x02
ACK = 0x10
_FROM = 5555
_WAIT = 0.5


def answers(flags: int, *, port: int) -> bool:
    """Whether the pod answers a packet with these flags, in whatever way."""
    here, there = (each[0].partition("/")[0] for each in (OUTSIDE, INSIDE))
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP) as wire:
        wire.sendto(_packet(here, there, port, flags), (there, 0))
        end = time.monotonic() + _WAIT
        while (left := end - time.monotonic()) > 0:
            wire.settimeout(left)
            try:
                packet, sender = wire.recvfrom(4096)
            except TimeoutError:
                return False
            header = packet[(packet[0] & 0xF) * 4 :]
            if sender[0] == there and struct.unpack(">HH", header[:4]) == (port, _FROM):
                return True
    return False


def _packet(here: str, there: str, port: int, flags: int) -> bytes:
    def header(checksum: int) -> bytes:
        return struct.pack(">HHIIBBHHH", _FROM, port, 1000, 2000, 5 << 4, flags, 1024, checksum, 0)

    text = socket.inet_aton(here) + socket.inet_aton(there)
    text += struct.pack(">BBH", 0, socket.IPPROTO_TCP, len(header(0))) + header(0)
    total = sum(struct.unpack(f">{len(text) // 2}H", text))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return header(~total & 0xFFFF)
