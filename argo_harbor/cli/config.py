"""`argo-harbor config`: every setting in force and where it came from."""

from __future__ import annotations

import typer

from argo_harbor.cli import options, output
from argo_harbor.cli.flags import spread
from argo_harbor.cli.grouped import GroupedCommands, GroupedOptions
from argo_harbor.cli.place import choose
from argo_harbor.engines.place import Place

app = typer.Typer(
    cls=GroupedCommands, no_args_is_help=True, rich_markup_mode=None, help="Show the settings in force."
)


@app.callback()
def group() -> None:
    """Show the settings in force."""


@app.command(cls=GroupedOptions)
@spread
def show(place: Place, as_json: options.Json = False) -> None:
    """Show every setting in force and where it came from."""
    from argo_harbor.engines.where import settings_of
    from argo_harbor.model.documents import ConfigDocument, SettingLine
    from argo_harbor.settings.overview import settings_in_force

    chosen = choose(place)
    rows = [*settings_of(place, chosen), *settings_in_force(chosen.site)]
    if as_json:
        output.document(
            ConfigDocument(
                settings=tuple(
                    SettingLine(key=key, value=value, source=source) for key, value, source in rows
                )
            )
        )
        return
    output.table(["Setting", "Value", "From"], rows)
