"""Reads one page of a bucket's listing: `ListObjectsV2`, URL-encoded since XML cannot hold every key."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from urllib.parse import unquote_plus
from xml.etree import ElementTree

from argo_harbor.store.base import Entry
from argo_harbor.store.patience import Fault
from argo_harbor.store.s3_client import NO_S3

PAGE = 1000
"""Objects on a page; no S3 server gives more."""


class Page(NamedTuple):
    entries: list[Entry]
    """Under the objects' whole names in the bucket."""
    folders: list[str]
    """Whole prefixes that stand for objects below them, each with a slash at its end."""
    token: str
    """Where the next page begins; empty on the last one."""


def query(prefix: str, token: str, *, folders: bool = False) -> dict[str, str]:
    """The parameters that ask for a page; with `folders` what lies deeper is summed up in one entry each."""
    asked = {"list-type": "2", "encoding-type": "url", "max-keys": str(PAGE), "prefix": prefix}
    asked |= {"delimiter": "/"} if folders else {}
    return asked | {"continuation-token": token} if token else asked


def read_page(document: bytes) -> Page:
    """Raises Fault for what is no such document."""
    try:
        root = ElementTree.fromstring(document)
        if root.tag.rpartition("}")[2] != "ListBucketResult":
            raise Fault(NO_S3, "the answer is no listing")
        encoded = (root.findtext("{*}EncodingType") or "") == "url"
        entries = []
        for element in root.iterfind("{*}Contents"):
            fields = {child.tag.rpartition("}")[2]: child.text or "" for child in element}
            key = unquote_plus(fields["Key"]) if encoded else fields["Key"]
            modified = datetime.fromisoformat(fields["LastModified"]).timestamp()
            entries.append(Entry(key, int(fields["Size"]), modified))
        prefixes = [element.text or "" for element in root.iterfind("{*}CommonPrefixes/{*}Prefix")]
        folders = [unquote_plus(each) for each in prefixes] if encoded else prefixes
        more = root.findtext("{*}IsTruncated") == "true"
        token = root.findtext("{*}NextContinuationToken") or ""
    except (ElementTree.ParseError, KeyError, ValueError) as error:
        raise Fault(NO_S3, f"the listing cannot be read: {error}") from error
    if more and not token:
        raise Fault(NO_S3, "the listing breaks off")
    return Page(entries, folders, token if more else "")
