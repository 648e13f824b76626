"""What an S3 server must not be able to make us believe, told by answers that a real one does not give."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import pytest

from argo_harbor.errors import PlatformError
from argo_harbor.store.credentials import Credentials
from argo_harbor.store.s3 import S3Store
from tests.support.stores import QUICK

LISTED = "2026-01-02T03:04:05.000Z"


class Answer(NamedTuple):
    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "application/xml"),)
    sent: int | None = None
    """Bytes after which the connection ends."""


@contextmanager
def server(answer: Callable[[str, str], Answer]) -> Iterator[S3Store]:
    """A store on a server that answers as told by method and path."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, body, headers, sent = answer(self.command, self.path)
            self.send_response_only(status)
            for name, value in headers:
                self.send_header(name, value)
            if "Transfer-Encoding" not in dict(headers):
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body[:sent])
            self.close_connection = sent is not None

        do_PUT = do_HEAD = do_DELETE = do_POST = do_GET

        def log_message(self, *_: object) -> None:
            """Nothing on stderr."""

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield S3Store(
            f"http://127.0.0.1:{running.server_port}",
            "bucket",
            root="mine",
            credentials=Credentials("a", "hush-secret"),
            patience=QUICK,
        )
    finally:
        running.shutdown()
        running.server_close()
        thread.join()


def listing(*keys: str, extra: str = "<IsTruncated>false</IsTruncated>") -> Answer:
    entries = "".join(
        f"<Contents><Key>{key}</Key><LastModified>{LISTED}</LastModified><Size>1</Size></Contents>"
        for key in keys
    )
    namespace = "http://s3.amazonaws.com/doc/2006-03-01/"
    return Answer(body=f'<ListBucketResult xmlns="{namespace}">{extra}{entries}</ListBucketResult>'.encode())


def test_listed_names_that_are_no_keys_are_left_out() -> None:
    """Somebody else may have written them, and downloads make paths of them."""
    keys = ("mine/a", "mine/../b", "mine/c/../../d", "mine//e", "mine/f/", "other/g", "mine/h/./i", "mine/j")
    with server(lambda method, path: listing(*keys)) as store:
        assert [entry.key for entry in store.list("")] == ["a", "j"]


def test_encoded_names_are_decoded_only_where_they_are_encoded() -> None:
    encoded = "<IsTruncated>false</IsTruncated><EncodingType>url</EncodingType>"
    with server(lambda method, path: listing("mine/a+b%2Bc%01%C3%BC", extra=encoded)) as store:
        assert [entry.key for entry in store.list("")] == ["a b+c\x01ü"]
    with server(lambda method, path: listing("mine/a+b%2Bc")) as store:
        assert [entry.key for entry in store.list("")] == ["a+b%2Bc"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(body=b"<html>"), "cannot be read"),
        (Answer(body=b"<Other/>"), "is no listing"),
        (listing("mine/a", extra="<IsTruncated>true</IsTruncated>"), "breaks off"),
        (Answer(body=listing("mine/a").body.replace(LISTED.encode(), b"yesterday")), "cannot be read"),
        (Answer(body=listing("mine/a").body.replace(b"Size", b"Weight")), "cannot be read"),
        (Answer(404, b"<h1>no page</h1>", (("Content-Type", "text/html"),)), "no answer of an S3 server"),
        (Answer(200), "cannot be read"),
    ],
)
def test_a_listing_that_cannot_be_understood_is_no_empty_one(answer: Answer, said: str) -> None:
    with server(lambda method, path: answer) as store, pytest.raises(PlatformError, match=said) as caught:
        list(store.list(""))
    assert caught.value.code == "store_unreadable"


ERROR = b"<Error><Code>InternalError</Code><Message>We had to stop.</Message></Error>"


@pytest.mark.parametrize(
    ("body", "said"), [(ERROR, "We had to stop"), (b"", "cannot be read"), (b"<Html/>", "is a Html")]
)
def test_a_success_that_is_none_is_no_copy(body: bytes, said: str) -> None:
    """S3 may have sent the status of a success before it fails."""
    with server(lambda method, path: Answer(body=body)) as store, pytest.raises(PlatformError, match=said):
        store.copy("a", "b")


def test_what_others_wrote_is_checked_by_its_etag() -> None:
    right = "5d41402abc4b2a76b9719d911017c592"

    def answer(headers: tuple[tuple[str, str], ...]) -> Callable[[str, str], Answer]:
        return lambda method, path: Answer(body=b"hello", headers=headers)

    with server(answer((("ETag", f'"{right}"'),))) as store:
        assert store.get("k") == b"hello"
    with (
        server(answer((("ETag", f'"{right[::-1]}"'),))) as store,
        pytest.raises(PlatformError, match="do not have its digest"),
    ):
        store.get("k")
    for no_digest in (
        (("ETag", '"5d41402abc4b2a76b9719d911017c592-3"'),),
        (("ETag", f'"{right[::-1]}"'), ("x-amz-server-side-encryption", "aws:kms")),
        (),
    ):
        with server(answer(no_digest)) as store:
            assert store.get("k") == b"hello"


def test_an_answer_without_a_date_is_no_time() -> None:
    with (
        server(lambda method, path: Answer(headers=(("Date", "soon"),))) as store,
        pytest.raises(PlatformError, match="ask for the time"),
    ):
        store.clock()


def test_a_message_that_repeats_a_secret_is_blotted() -> None:
    body = b"<Error><Code>Odd</Code><Message>you sent hush-secret</Message></Error>"
    with (
        server(lambda method, path: Answer(400, body)) as store,
        pytest.raises(PlatformError, match=r"Odd \(you sent \*\*\*\)"),
    ):
        store.get("k")


@pytest.mark.parametrize("status", [301, 307, 400, 403, 405, 501])
def test_other_refusals_are_not_repeated(status: int) -> None:
    asked = []

    def answer(method: str, path: str) -> Answer:
        asked.append(method)
        return Answer(status, b"<Error><Code>Odd</Code><Message>no</Message></Error>")

    with server(answer) as store, pytest.raises(PlatformError, match="Odd"):
        store.get("k")
    assert len(asked) == (1 if status < 500 else QUICK.attempts)


DATA = bytes(range(256)) * 4000
TAGGED = (("ETag", '"1-2"'),)


def breaking(*answers: Answer) -> Callable[[str, str], Answer]:
    """One after the other, and the last one again and again."""
    left = list(answers)
    return lambda method, path: left.pop(0) if len(left) > 1 else left[0]


def test_a_server_that_knows_no_ranges_sends_all_again(tmp_path: Path) -> None:
    whole = Answer(body=DATA, headers=TAGGED)
    for broken in (600_000, 0):
        answers = breaking(whole._replace(sent=600_000), whole._replace(sent=broken), whole)
        with server(answers) as store:
            store.get_file("k", tmp_path / "out")
        assert (tmp_path / "out").read_bytes() == DATA


@pytest.mark.parametrize(
    "later",
    [
        Answer(body=DATA, headers=(("ETag", '"3-4"'),)),
        Answer(206, DATA[600_000:], (*TAGGED, ("Content-Range", "bytes 600000-1023999/2000000"))),
        Answer(412, b"<Error><Code>PreconditionFailed</Code></Error>"),
        Answer(416, b"<Error><Code>InvalidRange</Code></Error>"),
        Answer(404, b"<Error><Code>NoSuchKey</Code></Error>"),
    ],
    ids=["etag", "range", "412", "416", "404"],
)
def test_the_rest_of_another_object_is_not_put_to_the_first_half(later: Answer) -> None:
    answers = breaking(Answer(body=DATA, headers=TAGGED, sent=600_000), later)
    with (
        server(answers) as store,
        store.open("k") as source,
        pytest.raises(PlatformError, match="replaced while it was read"),
    ):
        source.read()


def test_an_answer_of_unknown_length_is_not_read() -> None:
    chunked = (("Transfer-Encoding", "chunked"),)
    with (
        server(lambda method, path: Answer(body=b"1\r\nx\r\n0\r\n\r\n", headers=chunked)) as store,
        pytest.raises(PlatformError, match="does not say how long it is"),
    ):
        store.open("k")
