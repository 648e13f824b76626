"""Reads one object piece by piece, and goes on where a broken connection left off.

What was read counts as whole only when size and digest say so; a digest travels with every object that this
package wrote, and for others the ETag is one where it is an MD5.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Callable, Mapping
from typing import Any

from argo_harbor.errors import PlatformError
from argo_harbor.store.patience import Fault, Patience, persist
from argo_harbor.store.s3_client import NO_S3, Response, S3Client, broken

DIGEST_HEADER = "x-amz-meta-sha256"
"""Of the whole object, in hex: the ETag of one that was uploaded in parts or encrypted is no digest of it."""
DAMAGED = "Damaged"
"""Bytes are not those that were written."""
CHANGED = "Changed"
"""Somebody replaced the object while it was read."""
_HEX_64 = re.compile(r"[0-9a-f]{64}")
_MD5 = re.compile(r"[0-9a-f]{32}")


def etag_of(headers: Mapping[str, str]) -> str:
    return headers.get("ETag", "").strip('"')


def md5_of(headers: Mapping[str, str]) -> str:
    """The MD5 that an ETag is; empty where it is none: then an object's parts or its ciphertext made it."""
    etag = etag_of(headers)
    encrypted = headers.get("x-amz-server-side-encryption", "AES256") != "AES256" or (
        "x-amz-server-side-encryption-customer-algorithm" in headers
    )
    return etag if _MD5.fullmatch(etag) and not encrypted else ""


class Check:
    """Follows the bytes of one object and says at the end whether they are the right ones."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        digest = headers.get(DIGEST_HEADER, "")
        if _HEX_64.fullmatch(digest):
            self._expected, self._hash = digest, hashlib.sha256()
        else:
            self._expected, self._hash = md5_of(headers), hashlib.md5(usedforsecurity=False)

    def add(self, data: bytes) -> None:
        self._hash.update(data)

    def finish(self) -> None:
        """Raises Fault `Damaged`; it is retryable."""
        if self._expected and self._hash.hexdigest() != self._expected:
            raise Fault(DAMAGED, "its bytes do not have its digest", retryable=True)


class ObjectReader:
    """One object from its first byte to its last. Every method raises Fault."""

    def __init__(self, client: S3Client, name: str, patience: Patience) -> None:
        self._client = client
        self._name = name
        self._patience = patience
        self._position = 0
        self._response: Response = None
        persist(self._begin, patience)

    def _begin(self) -> None:
        self._response = self._client.send("GET", self._name, stream=True)
        headers = self._response.headers
        self._etag = etag_of(headers)
        self._check = Check(headers)
        length = headers.get("Content-Length", "")
        if not length.isdecimal():
            self.close()
            raise Fault(NO_S3, "the answer does not say how long it is")
        self.size = int(length)

    def read(self, size: int) -> bytes:
        """The next bytes, at most `size`; none at the end, once, after the check of the digest."""
        if self._position == self.size:
            self._check.finish()
            return b""
        data = persist(lambda: self._piece(size), self._patience)
        self._position += len(data)
        self._check.add(data)
        return data

    def _piece(self, size: int) -> bytes:
        import urllib3

        if self._response is None:
            self._go_on()
        try:
            data: bytes = self._response.read(size, decode_content=False)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            self.close()
            raise broken(error) from error
        if not data or self._position + len(data) > self.size:
            self.close()
            raise broken(OSError(f"{self._position + len(data)} of {self.size} bytes came"))
        return data

    def _go_on(self) -> None:
        span = f"bytes={self._position}-"
        headers = {"Range": span, "If-Match": f'"{self._etag}"'} if self._etag else {"Range": span}
        try:
            response = self._client.send("GET", self._name, headers=headers, stream=True)
        except Fault as fault:
            if fault.status in (412, 416) or fault.code == "NoSuchKey":
                raise Fault(CHANGED, "it was replaced while it was read") from fault
            raise
        self._response = response
        begins = f"bytes {self._position}-{self.size - 1}/{self.size}"
        if etag_of(response.headers) != self._etag or (
            response.status == 206 and response.headers.get("Content-Range") != begins
        ):
            self.close()
            raise Fault(CHANGED, "it was replaced while it was read")
        if response.status != 206:
            self._skip(self._position)

    def _skip(self, size: int) -> None:
        """Past what was read already, where a server or proxy does not know ranges."""
        import urllib3

        try:
            while size > 0:
                size -= len(self._response.read(min(size, 1 << 20), decode_content=False)) or size
        except (urllib3.exceptions.HTTPError, OSError) as error:
            self.close()
            raise broken(error) from error

    def close(self) -> None:
        # Closed, not released: what has not been read would otherwise be the next answer on its connection.
        if self._response is not None:
            self._response.close()
            self._response = None


class ObjectFile(io.RawIOBase):
    """An ObjectReader as a file that `io.BufferedReader` can wrap."""

    def __init__(self, reader: ObjectReader, explain: Callable[[Fault], PlatformError]) -> None:
        self._reader = reader
        self._explain = explain

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._reader.read(len(buffer))
        except Fault as fault:
            raise self._explain(fault) from fault
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._reader.close()
        super().close()
