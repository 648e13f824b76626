"""The store on an S3 server, such as MinIO: one bucket, everything below one root.

An object is written by one request, or in parts that count only when the last request succeeds, so a reader
sees it whole or not at all. Every upload carries its digest and every download is held against it.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import secrets
from collections.abc import Callable, Iterator
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote
from xml.etree import ElementTree

from argo_harbor.errors import PlatformError
from argo_harbor.store import s3_listing
from argo_harbor.store.base import Entry, KeyNotFound
from argo_harbor.store.credentials import Credentials
from argo_harbor.store.keys import check_key, is_key
from argo_harbor.store.patience import FOR_PODS, Fault, Patience, persist
from argo_harbor.store.s3_client import NO_S3, Response, S3Client
from argo_harbor.store.s3_errors import explain
from argo_harbor.store.s3_reader import (
    CHANGED,
    DAMAGED,
    DIGEST_HEADER,
    Check,
    ObjectFile,
    ObjectReader,
    etag_of,
    md5_of,
)

PART_BYTES = 16 << 20
"""Files above are uploaded in parts, each of which may be repeated alone; one part is in memory at a time."""
MAX_PARTS = 10_000
"""S3's own limit."""
PARALLEL = 16
_PIECE = 256 << 10
_FRESH_STARTS = 3
"""Of a download whose bytes were wrong, or that was replaced meanwhile."""


class S3Store:
    """Objects are those of `bucket` below `root`. Safe to use from several threads."""

    def __init__(
        self,
        endpoint: str,
        bucket: str,
        *,
        root: str = "",
        credentials: Credentials | Path,
        patience: Patience = FOR_PODS,
    ) -> None:
        """`root` is what stands before every key, without a slash at its ends.

        Nothing is sent yet. Raises ValueError for an endpoint, bucket or root that is none.
        """
        self._client = S3Client(endpoint, bucket, credentials)
        self._root = f"{check_key(root)}/" if root else ""
        self._patience = patience
        self._bucket_seen = False

    @property
    def name(self) -> str:
        return f"{self._client.endpoint}/{self._client.bucket}/{self._root}".rstrip("/")

    @property
    def parallel(self) -> int:
        return PARALLEL

    def __repr__(self) -> str:
        return f"S3Store({self.name!r})"

    def put(self, key: str, data: bytes) -> None:
        headers = {DIGEST_HEADER: hashlib.sha256(data).hexdigest()}
        name = self._name(key)
        with self._writing(f"write {key}", key):
            persist(lambda: self._put(name, data, headers), self._patience)

    def put_file(self, key: str, path: Path) -> None:
        name = self._name(key)
        with path.open("rb") as source:
            size = os.fstat(source.fileno()).st_size
            if size <= PART_BYTES:
                self.put(key, source.read())
                return
            with self._writing(f"write {key}", key):
                self._put_parts(name, source, size)

    def _put(
        self, name: str, data: bytes, headers: dict[str, str], query: dict[str, str] | None = None
    ) -> str:
        """Send bytes, held against their digest by the server as well as here. Returns the ETag."""
        response = self._client.send("PUT", name, body=data, headers=headers, query=query)
        stored = md5_of(response.headers)
        if stored and stored != hashlib.md5(data, usedforsecurity=False).hexdigest():
            raise Fault(DAMAGED, "the server holds other bytes than were sent", retryable=True)
        return etag_of(response.headers)

    def _put_parts(self, name: str, source: io.BufferedReader, size: int) -> None:
        part_bytes = max(PART_BYTES, -(-size // MAX_PARTS))
        digest = hashlib.file_digest(source, "sha256").hexdigest()
        source.seek(0)
        upload = self._begin_upload(name, digest)
        try:
            etags: list[str] = []
            sent = hashlib.sha256()
            while data := source.read(part_bytes):
                sent.update(data)
                query = {"partNumber": str(len(etags) + 1), "uploadId": upload}
                etags.append(self._persist(partial(self._put, name, data, {}, query)))
            if sent.hexdigest() != digest:
                raise Fault(CHANGED, "the file changed while it was read")
            self._end_upload(name, upload, etags)
        except BaseException:
            with contextlib.suppress(Fault):
                self._client.send("DELETE", name, query={"uploadId": upload})
            raise
        found = self._head(name).headers
        if (found.get("Content-Length"), found.get(DIGEST_HEADER)) != (str(size), digest):
            raise Fault(DAMAGED, "the server did not put the parts together")

    def _begin_upload(self, name: str, digest: str) -> str:
        headers = {DIGEST_HEADER: digest}
        answer = self._persist(
            lambda: self._client.send("POST", name, headers=headers, query={"uploads": ""})
        )
        upload = _document(answer, "InitiateMultipartUploadResult").findtext("{*}UploadId")
        if not upload:
            raise Fault(NO_S3, "the upload has no name")
        return upload

    def _end_upload(self, name: str, upload: str, etags: list[str]) -> None:
        parts = "".join(
            f'<Part><PartNumber>{number}</PartNumber><ETag>"{etag}"</ETag></Part>'
            for number, etag in enumerate(etags, start=1)
        )
        body = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()

        def end() -> None:
            answer = self._client.send("POST", name, body=body, query={"uploadId": upload})
            # The server may find the error when it has already sent the status of a success.
            _document(answer, "CompleteMultipartUploadResult")

        try:
            self._persist(end)
        except Fault as fault:
            # An answer was lost and the second request came too late: the look at the object decides.
            if fault.code != "NoSuchUpload":
                raise

    def get(self, key: str) -> bytes:
        name = self._name(key)

        def fetch() -> bytes:
            response = self._client.send("GET", name)
            data: bytes = response.data
            check = Check(response.headers)
            check.add(data)
            check.finish()
            return data

        with self._reading(f"read {key}", key):
            return self._persist(fetch)

    def get_file(self, key: str, path: Path) -> None:
        """Goes on where a broken connection left off. The file appears under its name when it is whole."""
        part = path.parent / f".part-{secrets.token_hex(8)}"
        try:
            with self._reading(f"read {key}", key):
                self._download(self._name(key), part)
            part.replace(path)
        except OSError as error:
            raise PlatformError(
                "store_unreadable",
                f"cannot keep {key} from {self.name} as {path}: {error.strerror or error}",
                "free some space or choose another folder",
            ) from error
        finally:
            part.unlink(missing_ok=True)

    def _download(self, name: str, part: Path) -> None:
        for left in reversed(range(_FRESH_STARTS)):
            reader = ObjectReader(self._client, name, self._patience)
            try:
                with part.open("wb") as out:
                    while data := reader.read(_PIECE):
                        out.write(data)
                return
            except Fault as fault:
                if fault.code not in (DAMAGED, CHANGED) or not left:
                    raise
            finally:
                reader.close()

    def open(self, key: str) -> BinaryIO:
        """Goes on after a broken connection. Reading raises PlatformError `store_unreadable` when
        the bytes are not those of one whole object, at the latest at its end.
        """
        what = f"read {key}"
        with self._reading(what, key):
            reader = ObjectReader(self._client, self._name(key), self._patience)
        return io.BufferedReader(ObjectFile(reader, lambda fault: self._unreadable(fault, what)), _PIECE)

    def copy(self, source: str, target: str) -> None:
        """The server copies, also the digest that came with the object."""
        if source == target:
            if not self.exists(source):
                raise KeyNotFound(source)
            return
        name = self._name(target)
        headers = {"x-amz-copy-source": quote(f"/{self._client.bucket}/{self._name(source)}")}

        def send() -> None:
            _document(self._client.send("PUT", name, headers=headers), "CopyObjectResult")

        with self._writing(f"copy {source} to {target}", source):
            self._persist(send)

    def exists(self, key: str) -> bool:
        with self._reading(f"look for {key}", key):
            try:
                self._head(self._name(key))
            except Fault as fault:
                if fault.code != "NoSuchKey":
                    raise
                return False
        return True

    def _head(self, name: str) -> Response:
        """The answer about an object, or with an empty name about the bucket."""
        try:
            return self._persist(lambda: self._client.send("HEAD", name))
        except Fault as fault:
            # An answer to HEAD has no document, so its status alone does not tell a missing object from a
            # missing bucket, nor a wrong key from a forbidden one: a listing says it.
            if 400 <= fault.status < 500 and not (self._bucket_seen and fault.code == "NoSuchKey"):
                self._persist(partial(self._page, f"{self._root}?", ""))
                self._bucket_seen = True
            raise

    def list(self, prefix: str) -> Iterator[Entry]:
        """A page of 1,000 at a time; what others put there under names that are no keys is left out."""
        folder, _, _ = prefix.rpartition("/")
        start = self._root + prefix if not folder or check_key(folder) else ""
        for page in self._pages(prefix, start):
            for entry in page.entries:
                key = entry.key.removeprefix(self._root)
                if entry.key.startswith(start) and is_key(key):
                    yield entry._replace(key=key)

    def folders(self, prefix: str) -> Iterator[str]:
        start = self._root + prefix if not prefix or check_key(prefix.rstrip("/")) else ""
        for page in self._pages(prefix, start, folders=True):
            for found in page.folders:
                name = found.removeprefix(start).rstrip("/")
                if found.startswith(start) and is_key(name) and "/" not in name:
                    yield name

    def _pages(self, prefix: str, start: str, *, folders: bool = False) -> Iterator[s3_listing.Page]:
        """The pages of a listing; `prefix` says to people what is listed, `start` to the server."""
        token = ""
        while True:
            with self._reading(f"list {prefix or 'the objects'}", prefix):
                page = self._persist(partial(self._page, start, token, folders=folders))
            yield page
            token = page.token
            if not token:
                return

    def _page(self, prefix: str, token: str, *, folders: bool = False) -> s3_listing.Page:
        query = s3_listing.query(prefix, token, folders=folders)
        return s3_listing.read_page(self._client.send("GET", query=query).data)

    def delete(self, key: str) -> None:
        name = self._name(key)
        with self._writing(f"remove {key}", key), contextlib.suppress(KeyNotFound):
            try:
                self._persist(lambda: self._client.send("DELETE", name))
            except Fault as fault:
                if fault.code != "NoSuchKey":
                    raise

    def clock(self) -> float:
        """The `Date` of an answer: whole seconds."""
        with self._reading("ask for the time", ""):
            said = self._head("").headers.get("Date", "")
            try:
                return parsedate_to_datetime(said).timestamp()
            except ValueError as error:
                raise Fault(NO_S3, "the answer has no date") from error

    def _name(self, key: str) -> str:
        return self._root + check_key(key)

    def _persist[T](self, action: Callable[[], T]) -> T:
        return persist(action, self._patience)

    @contextlib.contextmanager
    def _reading(self, what: str, key: str) -> Iterator[None]:
        try:
            yield
        except Fault as fault:
            if fault.code == "NoSuchKey":
                raise KeyNotFound(key) from fault
            raise self._unreadable(fault, what) from fault

    @contextlib.contextmanager
    def _writing(self, what: str, key: str) -> Iterator[None]:
        try:
            yield
        except Fault as fault:
            if fault.code == "NoSuchKey":
                raise KeyNotFound(key) from fault
            raise explain(fault, what, place=self._place, code="store_write_failed") from fault

    def _unreadable(self, fault: Fault, what: str) -> PlatformError:
        return explain(fault, what, place=self._place, code="store_unreadable")

    @property
    def _place(self) -> str:
        return f"{self._client.endpoint}, bucket {self._client.bucket}"


def _document(response: Response, expected: str) -> ElementTree.Element:
    """The root of an answer's XML. Raises Fault: retryable when the answer is an error after all."""
    try:
        root = ElementTree.fromstring(response.data)
    except ElementTree.ParseError as error:
        raise Fault(NO_S3, f"the answer cannot be read: {error}") from error
    tag = root.tag.rpartition("}")[2]
    if tag == "Error":
        raise Fault(root.findtext("{*}Code") or "Unknown", root.findtext("{*}Message") or "", retryable=True)
    if tag != expected:
        raise Fault(NO_S3, f"the answer is a {tag}")
    return root
