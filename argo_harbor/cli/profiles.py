"""`argo-harbor profiles`: what the admin allows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from argo_harbor.cli import options, output
from argo_harbor.cli.flags import spread
from argo_harbor.cli.grouped import GroupedCommands, GroupedOptions
from argo_harbor.cli.place import choose
from argo_harbor.engines.place import Place

app = typer.Typer(
    cls=GroupedCommands,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="List, show and check sandbox profiles.",
)
Name = Annotated[str, typer.Argument(metavar="NAME", help="A profile's name.")]


@app.command("list", cls=GroupedOptions)
@spread
def list_all(place: Place, as_json: options.Json = False) -> None:
    """List the profiles, and which one is the default."""
    from argo_harbor.model.documents import ProfileLine, ProfilesDocument

    found = choose(place).site.profiles()
    if as_json:
        output.document(
            ProfilesDocument(
                profiles=tuple(
                    ProfileLine(name=item.name, default=item.default, source=item.source) for item in found
                )
            )
        )
        return
    output.table(
        ["Profile", "Default", "From"],
        ([item.name, "default" if item.default else "", item.source] for item in found),
    )


@app.command(cls=GroupedOptions)
@spread
def show(name: Name, place: Place, as_json: options.Json = False) -> None:
    """Show one profile, every limit in it."""
    import tomli_w

    from argo_harbor.model.documents import ProfileDocument

    site = choose(place).site
    profile = site.profile(name)
    listed = next(item for item in site.profiles() if item.name == name)
    if as_json:
        output.document(
            ProfileDocument(name=name, default=listed.default, source=listed.source, profile=profile)
        )
        return
    output.line(tomli_w.dumps(profile.as_data()).rstrip())


@app.command(cls=GroupedOptions)
@spread
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A profile file.")],
    place: Place,
    as_json: options.Json = False,
) -> int:
    """Check a profile file: its keys, its values, and that the platform defines its host groups."""
    from argo_harbor.errors import EXIT_FAILED, EXIT_OK, Refused
    from argo_harbor.model.documents import CheckDocument, Item
    from argo_harbor.settings.profiles import check_profile

    settings = choose(place).site.platform
    try:
        profile = check_profile(file, settings)
    except Refused as refused:
        if as_json:
            output.document(CheckDocument(ok=False, items=Item.each(refused.items)))
        else:
            output.error(refused, as_json=False)
        return EXIT_FAILED
    if as_json:
        output.document(CheckDocument(ok=True, items=()))
    else:
        output.line(f"{profile.name} is a valid profile")
    return EXIT_OK
