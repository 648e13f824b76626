"""`report.html`: one page that needs nothing but itself, rendered from `templates/report.html.j2`.

Names and messages in it come from tasks and sandboxes: everything is escaped, the page may load nothing, and
the only script that may run is ours, by its hash.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from typing import NamedTuple

import jinja2
from markupsafe import Markup

from argo_harbor.bundle.gather import Gathered
from argo_harbor.bundle.page import Page
from argo_harbor.model.bundle import RunFacts, Summary
from argo_harbor.settings.shipped import shipped_folder

TEMPLATE = "report.html.j2"
SCRIPT = "report.js"


class _Loaded(NamedTuple):
    template: jinja2.Template
    script: str
    script_hash: str
    """As a Content-Security-Policy names it."""


def render(gathered: Gathered, facts: RunFacts, summary: Summary) -> str:
    """The page as text."""
    template, script, script_hash = _load()
    return template.render(
        page=Page(gathered, facts, summary), script=Markup(script), script_hash=script_hash
    )


@cache
def _load() -> _Loaded:
    folder = shipped_folder("templates")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = (folder / SCRIPT).read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return _Loaded(environment.get_template(TEMPLATE), script, f"sha256-{digest}")
