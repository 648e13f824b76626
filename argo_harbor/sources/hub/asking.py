"""Asking the Hub: an end to every wait, another try where one can help, and errors that say what to do.

Harbor's client repeats what a lost connection interrupted, but nothing that a server answered, such as 502.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from argo_harbor.errors import PlatformError
from argo_harbor.sources.member import printable

LOGIN = "sign in with `harbor auth login`, or set HARBOR_API_KEY to a key that is valid"
AGAIN = "try again later; a taskset that was published before needs no Hub: --taskset NAME#DIGEST"
_ADDRESS = "look at HARBOR_SUPABASE_URL and at proxies on the way"
_TRIES = 3
_NO_ENTRY = {"401", "403", "42501", "PGRST301", "PGRST302", "PGRST303"}
"""HTTP statuses, PostgreSQL's insufficient privilege, and PostgREST's codes for bad tokens."""
_PASSING = ("08", "53", "57", "PGRST00")
"""How the codes begin with which PostgreSQL and PostgREST say that they cannot answer now."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the Hub may take, in seconds."""

    answer: float = 90
    """For one answer with all its retries, and between two pieces of an archive."""
    archive: float = 1800
    """For one archive with all its retries."""
    pause: float = 0.5
    """Before the second try; twice that before the third."""


class Asking:
    """Makes calls of a client of the Hub.

    `account` is what that client raises about the user's account, `rejected` what it raises, or raises that
    for, when the Hub has said no to it.
    """

    def __init__(
        self, patience: Patience, *, account: type[Exception], rejected: tuple[type[Exception], ...]
    ) -> None:
        self._patience = patience
        self._account = account
        self._rejected = rejected

    async def answer[T](self, call: Callable[[], Awaitable[T]], *, seconds: float = 0) -> T:
        """What `call` gives, within the time that an answer may take, or `seconds`.

        Raises PlatformError `source_unreachable`, and what `call` raises as an error of this program.
        """
        started = time.monotonic()
        try:
            async with asyncio.timeout(seconds or self._patience.answer):
                return await self._try(call)
        except TimeoutError as error:
            waited = time.monotonic() - started
            raise unreachable(f"the Hub did not answer within {waited:.0f} s", AGAIN) from error

    async def _try[T](self, call: Callable[[], Awaitable[T]]) -> T:
        faults = (self._account, *_faults())
        tried = 0
        while True:
            tried += 1
            try:
                with understood():
                    return await call()
            except faults as error:
                problem, again = self._explain(error)
                if not again or tried == _TRIES:
                    raise problem from error
            await asyncio.sleep(self._patience.pause * 2 ** (tried - 1))

    def _explain(self, error: Exception) -> tuple[PlatformError, bool]:
        """What to tell, and whether another try may help."""
        import httpx
        from postgrest.exceptions import APIError

        if isinstance(error, self._account):
            rejected = isinstance(error, self._rejected) or isinstance(error.__cause__, self._rejected)
            return unreachable(f"the Hub does not let us in: {error}", LOGIN if rejected else AGAIN), False
        if isinstance(error, APIError):
            return _explain_code(error.code or "", error.message or "")
        if isinstance(error, httpx.HTTPStatusError):
            return _explain_code(str(error.response.status_code), error.response.reason_phrase)
        reason = str(error) or type(error).__name__
        broke_off = isinstance(error, httpx.ReadError | httpx.RemoteProtocolError)
        return unreachable(f"the Hub cannot be reached: {reason}", _ADDRESS), broke_off


def _explain_code(code: str, said: str) -> tuple[PlatformError, bool]:
    what = " ".join(part for part in (code, said) if part) or "an error without a name"
    if code in _NO_ENTRY:
        return unreachable(f"the Hub does not let us in: {what}", LOGIN), False
    again = not code or code == "429" or (len(code) == 3 and code[0] == "5") or code.startswith(_PASSING)
    return unreachable(f"the Hub answers {what}", AGAIN), again


@contextmanager
def understood() -> Iterator[None]:
    """Raises PlatformError `source_unreachable` where an answer has not the shape that it should have."""
    try:
        yield
    except (LookupError, TypeError, AttributeError, ValueError, RuntimeError) as error:
        what = f"{type(error).__name__}: {error}"
        raise unreachable(f"the Hub's answer is not understood: {what}", _ADDRESS) from error


def unreachable(message: str, hint: str) -> PlatformError:
    """An error of the Hub, whose words may be a whole page of a proxy."""
    return PlatformError("source_unreachable", printable(" ".join(message.split()))[:300], hint)


def _faults() -> tuple[type[Exception], ...]:
    """What the client raises for a Hub that is not there or says no."""
    import httpx
    from postgrest.exceptions import APIError
    from supabase import SupabaseException

    return (APIError, SupabaseException, httpx.HTTPError, httpx.InvalidURL, OSError)
