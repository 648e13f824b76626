"""Help in groups without rich: commands and options stand under the panel they were given.

typer shows panels only through rich, whose import alone takes longer than a help page may.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


class GroupedCommands(TyperGroup):
    """A command group whose help lists commands by `rich_help_panel`, in order of registration."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """A group without a command shows what there is: that was asked for, and is no error."""
        if not args and self.no_args_is_help:
            typer.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        visible = [(name, command) for name, command in self.commands.items() if not command.hidden]
        if not visible:
            return
        limit = formatter.width - 6 - max(len(name) for name, _ in visible)
        _sections(
            formatter,
            (
                (_panel(command, "Commands"), (name, command.get_short_help_str(limit)))
                for name, command in visible
            ),
        )


class GroupedOptions(TyperCommand):
    """A command whose help lists options by `rich_help_panel`."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        records = ((param, param.get_help_record(ctx)) for param in self.get_params(ctx))
        _sections(
            formatter,
            (
                (_panel(param, "Arguments" if param.param_type_name == "argument" else "Options"), record)
                for param, record in records
                if record is not None
            ),
        )


def _panel(thing: Any, default: str) -> str:
    panel = getattr(thing, "rich_help_panel", None)
    return panel if isinstance(panel, str) else default


def _sections(formatter: Any, rows: Iterable[tuple[str, tuple[str, str]]]) -> None:
    sections: dict[str, list[tuple[str, str]]] = {}
    for panel, row in rows:
        sections.setdefault(panel, []).append(row)
    for panel, found in sections.items():
        with formatter.section(panel):
            formatter.write_dl(found)
