"""What all data of the project shares: frozen strict models, canonical JSON, digests.

Canonical JSON (sorted keys, compact separators, UTF-8) is what digests are taken of, so the same content
has the same digest on every machine.
"""

import hashlib
import json
from typing import Any, Self

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """Base of everything others write or read: frozen, unknown keys refused, no silent conversions."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)

    def as_data(self) -> dict[str, Any]:
        """Plain JSON-able data with every field, in declaration order."""
        return self.model_dump(mode="json", by_alias=True)

    def canonical(self) -> bytes:
        return canonical_json(self.as_data())

    def content_digest(self) -> str:
        """SHA-256 of the canonical JSON, 64 hex."""
        return hashlib.sha256(self.canonical()).hexdigest()

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read what `as_data` or `canonical` wrote. Raises pydantic.ValidationError."""
        return cls.model_validate_json(text)

    @classmethod
    def from_data(cls, data: object) -> Self:
        """Read parsed TOML or YAML. Raises pydantic.ValidationError.

        It goes through JSON because strict validation of Python data refuses a list where a tuple stands.
        """
        return cls.model_validate_json(json.dumps(data, default=str))


def canonical_json(data: object) -> bytes:
    """Sorted keys, compact, UTF-8, no NaN: the bytes that digests are taken of."""
    return json.dumps(
        data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


def sha256_hex(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
