"""One request to an S3 server: signed, sent, and its failure named as a Fault.

The `minio` package signs and sends. Its public methods hide what the store needs: a copy costs them a HEAD
more, a part of an upload cannot be repeated alone, and the server's `Date` is not shown; so this is the one
place that calls its `_execute`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from argo_harbor.store.credentials import Credentials, from_folder
from argo_harbor.store.patience import Fault

CONNECT_SECONDS = 5.0
READ_SECONDS = 60.0
"""Between two pieces of an answer."""
CONNECTIONS = 32
"""Kept open; no limit on how many are open at once."""
UNREACHABLE = "Unreachable"
"""No answer: nobody listens, no such host, or the connection broke."""
UNTRUSTED = "Untrusted"
"""The server's TLS certificate does not hold."""
NO_TLS = "NoTls"
"""The server does not speak TLS, or the connection broke while it was agreed on."""
NO_S3 = "NoS3Server"
"""An answer that no S3 server gives."""
_TRANSIENT = frozenset(
    {
        "SlowDown",
        "SlowDownRead",
        "SlowDownWrite",
        "InternalError",
        "ServiceUnavailable",
        "RequestTimeout",
        "OperationAborted",
        "BadDigest",
        "IncompleteBody",
        "XAmzContentSHA256Mismatch",
        "XAmzContentChecksumMismatch",
    }
)
"""Also without a status that says so. The digests are ours: bytes were damaged on the way."""
_STALE = frozenset({"SignatureDoesNotMatch", "InvalidAccessKeyId", "ExpiredToken"})
"""What an exchange of the credentials' files looks like to a request that was on its way."""
_EXPECTED_REGION = re.compile(rb"<Region>([a-z0-9-]+)</Region>|expecting (?:'|&#39;|&apos;)([a-z0-9-]+)")

Response = Any
"""urllib3's BaseHTTPResponse: `status`, `headers`, `data`, `read`, `release_conn`."""


class S3Client:
    """Sends requests for one bucket. Safe to use from several threads."""

    def __init__(self, endpoint: str, bucket: str, credentials: Credentials | Path) -> None:
        """`endpoint` is `http(s)://host[:port]`. Of a folder the files are read for each request.

        Raises ValueError for an endpoint or bucket that is none.
        """
        self.endpoint = endpoint.rstrip("/")
        self.bucket = bucket
        self._credentials = credentials
        self._client = self._make("us-east-1")

    def __repr__(self) -> str:
        return f"S3Client({self.endpoint!r}, {self.bucket!r})"

    def _make(self, region: str) -> Any:
        import certifi
        import urllib3
        from minio import Minio

        parsed = urlsplit(self.endpoint)
        client = Minio(
            parsed.netloc,
            secure=parsed.scheme != "http",
            # Any region will do for servers that have none; a server that has one says which it expects.
            region=None if parsed.hostname and parsed.hostname.endswith(".amazonaws.com") else region,
            credentials=_Provider(self._credentials),
            http_client=urllib3.PoolManager(
                maxsize=CONNECTIONS,
                timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS),
                retries=False,
                ca_certs=os.environ.get("SSL_CERT_FILE") or certifi.where(),
            ),
        )
        # The name is checked by the library at each request; a wrong one should be known at once.
        from minio.helpers import check_bucket_name

        check_bucket_name(self.bucket)
        return client

    def send(
        self,
        method: str,
        name: str = "",
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        stream: bool = False,
    ) -> Response:
        """One attempt. `name` is the object's whole name in the bucket, empty for the bucket itself.

        With `stream` the caller reads and releases the answer; its body is otherwise there, and complete.

        Raises Fault, PlatformError `platform_not_configured` when the credentials' files cannot be read.
        """
        import urllib3
        from minio.error import InvalidResponseError, MinioException, S3Error, ServerError

        try:
            return self._client._execute(
                method,
                self.bucket,
                name or None,
                body=body,
                headers=dict(headers or {}),
                query_params=dict(query or {}),
                preload_content=not stream,
            )
        except S3Error as error:
            raise self._refused(error) from error
        except ServerError as error:
            raise _fault(NO_S3, f"HTTP status {error.status_code}", status=error.status_code) from error
        except InvalidResponseError as error:
            # `code` is kept in a private field only.
            status = error._code
            raise _fault(NO_S3, f"HTTP status {status}, and no S3 document", status=status) from error
        except MinioException as error:
            raise Fault(NO_S3, str(error)) from error
        except urllib3.exceptions.SSLError as error:
            untrusted = "CERTIFICATE_VERIFY_FAILED" in str(error)
            raise Fault(UNTRUSTED if untrusted else NO_TLS, str(error), retryable=not untrusted) from error
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise broken(error) from error

    def _refused(self, error: Any) -> Fault:
        response = error.response
        code = error.code or "Unknown"
        region = _EXPECTED_REGION.search(response.data or b"")
        if code == "AuthorizationHeaderMalformed" and region is not None:
            expected = (region[1] or region[2]).decode()
            self._client = self._make(expected)
            return Fault(code, f"the server's region is {expected}", status=response.status, retryable=True)
        fault = _fault(
            code, self._without_secrets(error.message or ""), status=response.status, headers=response.headers
        )
        fault.retryable |= code in _TRANSIENT or (code in _STALE and isinstance(self._credentials, Path))
        return fault

    def _without_secrets(self, text: str) -> str:
        current = self._credentials
        if isinstance(current, Path):
            current = from_folder(current)
        for secret in (current.secret_key, current.session_token, current.access_key):
            text = text.replace(secret, "***") if secret else text
        return text


class _Provider:
    """Hands the library the credentials that hold now."""

    def __init__(self, credentials: Credentials | Path) -> None:
        self._credentials = credentials

    def retrieve(self) -> Any:
        from minio.credentials import Credentials as MinioCredentials

        now = self._credentials
        if isinstance(now, Path):
            now = from_folder(now)
        return MinioCredentials(now.access_key, now.secret_key, now.session_token or None)


def broken(error: Exception) -> Fault:
    """The Fault of a connection that could not be made or did not last."""
    return Fault(UNREACHABLE, _plain(error), retryable=True)


def _plain(error: Exception) -> str:
    # Urllib3 puts the object's address in memory before what it has to say.
    return re.sub(r"^<?\w*(?:Connection|Pool)\w*\([^)]*\)(?: at 0x[0-9a-f]+>?)?: ", "", str(error)) or repr(
        error
    )


def _fault(code: str, detail: str, *, status: int, headers: Mapping[str, str] | None = None) -> Fault:
    asked = (headers or {}).get("Retry-After", "")
    return Fault(
        code,
        detail,
        status=status,
        retryable=status >= 500 or status in (408, 429),
        wait=float(asked) if asked.isdecimal() else 0.0,
    )
