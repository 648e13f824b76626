"""`argo-harbor install`: what a cluster needs before runs can start there."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from argo_harbor.cli import options, output
from argo_harbor.errors import EXIT_FAILED, EXIT_OK

if TYPE_CHECKING:
    from argo_harbor.cluster.client import Cluster
    from argo_harbor.install.changes import Change
    from argo_harbor.install.inputs import Given
    from argo_harbor.model.documents import InstallDocument

type Action = Literal["dry-run", "diff", "apply"]

_WHAT = "What (default: print YAML)"
_STORE = "Store credentials (else $ARGO_HARBOR_STORE_ACCESS_KEY, $ARGO_HARBOR_STORE_SECRET_KEY)"
_WHERE = "Where"


def install(
    apply: Annotated[
        bool, typer.Option("--apply", help="Bring it into the cluster.", rich_help_panel=_WHAT)
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Let the API server check it, changing nothing.", rich_help_panel=_WHAT
        ),
    ] = False,
    diff: Annotated[
        bool,
        typer.Option(
            "--diff", help="Show what would change; exit 1 if anything would.", rich_help_panel=_WHAT
        ),
    ] = False,
    uninstall: Annotated[
        bool, typer.Option("--uninstall", help="Remove what an install made.", rich_help_panel=_WHAT)
    ] = False,
    discover: Annotated[
        bool,
        typer.Option(
            "--discover",
            help="Print a platform file with the cluster's own addresses.",
            rich_help_panel=_WHAT,
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("-o", metavar="FILE", help="Write YAML or platform file there.", rich_help_panel=_WHAT),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Remove without asking.", rich_help_panel=_WHAT)] = False,
    profiles: Annotated[
        Path | None,
        typer.Option(
            "--profiles",
            metavar="DIR",
            help="More sandbox profiles, besides those in `profiles` beside the platform file.",
            rich_help_panel=_WHERE,
        ),
    ] = None,
    access_key_file: Annotated[
        Path | None,
        typer.Option(
            "--store-access-key-file", metavar="FILE", help="Holds the access key.", rich_help_panel=_STORE
        ),
    ] = None,
    secret_key_file: Annotated[
        Path | None,
        typer.Option(
            "--store-secret-key-file", metavar="FILE", help="Holds the secret key.", rich_help_panel=_STORE
        ),
    ] = None,
    platform: Annotated[
        Path | None,
        typer.Option(
            "--platform",
            metavar="FILE",
            help="Platform file; else $ARGO_HARBOR_PLATFORM.",
            rich_help_panel=_WHERE,
        ),
    ] = None,
    context: options.Context = None,
    namespace: options.Namespace = None,
    as_json: options.Json = False,
) -> int:
    """Print, compare, apply or remove what the cluster needs: accounts, rights, settings."""
    from argo_harbor.cluster.connect import connect
    from argo_harbor.errors import UsageError
    from argo_harbor.install.inputs import CredentialFiles, read_credentials, read_settings

    chosen = [
        name
        for name, given in (
            ("--apply", apply),
            ("--dry-run", dry_run),
            ("--diff", diff),
            ("--uninstall", uninstall),
            ("--discover", discover),
        )
        if given
    ]
    if len(chosen) > 1:
        raise UsageError("bad_usage", f"{' and '.join(chosen)} exclude one another", "give one of them")
    if out and chosen not in ([], ["--discover"]):
        raise UsageError("bad_usage", f"-o does not go with {chosen[0]}", "give one of them")
    if uninstall:
        return _uninstall(connect(context, namespace or _named_namespace(platform)), yes=yes, as_json=as_json)
    if discover:
        return _discover(connect(context, namespace), out, as_json=as_json)
    credentials = read_credentials(CredentialFiles(access_key_file, secret_key_file))
    given = read_settings(platform, profiles=profiles, credentials=credentials)
    wanted = given.settings.platform.namespace
    if namespace and namespace != wanted:
        raise UsageError(
            "unknown_flag_value",
            f"the platform file names the namespace {wanted}",
            f'set namespace = "{namespace}" in the file: workflows are compiled for the one that it names',
        )
    if not chosen:
        return _render(given, out, as_json=as_json)
    action: Action = "apply" if apply else "diff" if diff else "dry-run"
    return _bring(connect(context, wanted), given, action, as_json=as_json)


def _render(given: Given, out: Path | None, *, as_json: bool) -> int:
    from argo_harbor.install.manifests import manifests
    from argo_harbor.model.documents import InstallDocument, InstalledObject
    from argo_harbor.workflow.emit import to_yaml

    # Credentials reach a cluster, never an output.
    settings = given.settings._replace(credentials=None)
    objects = manifests(settings)
    secret = settings.platform.store.secret
    text = f"# Not here: Secret {secret}, with the store's keys (--apply makes it)\n" + "---\n".join(
        to_yaml(item) for item in objects
    )
    lines = [
        InstalledObject(kind=item["kind"], name=item["metadata"]["name"], change="render") for item in objects
    ]
    document = InstallDocument(
        action="render", namespace=settings.platform.namespace, objects=tuple(lines), text=text
    )
    return _text(document, given, out, as_json=as_json)


def _discover(cluster: Cluster, out: Path | None, *, as_json: bool) -> int:
    from argo_harbor.install.discovery import discover, skeleton
    from argo_harbor.model.documents import InstallDocument

    text = skeleton(discover(cluster), cluster.namespace)
    document = InstallDocument(
        action="discover", context=cluster.context, namespace=cluster.namespace, text=text
    )
    return _text(document, None, out, as_json=as_json)


def _text(document: InstallDocument, given: Given | None, out: Path | None, *, as_json: bool) -> int:
    from argo_harbor.errors import PlatformError
    from argo_harbor.model.documents import Item

    findings = given.warnings if given else ()
    if out:
        try:
            out.write_text(document.text, encoding="utf-8")
        except OSError as error:
            raise PlatformError(
                "store_write_failed",
                f"cannot write {out}: {error.strerror or error}",
                "name another file with -o",
            ) from error
    if as_json:
        output.document(document.model_copy(update={"warnings": Item.each(findings)}))
        return EXIT_OK
    _warn(given)
    if out:
        output.line(f"Wrote {out}")
    else:
        sys.stdout.write(document.text)
    return EXIT_OK


def _bring(cluster: Cluster, given: Given, action: Action, *, as_json: bool) -> int:
    from argo_harbor.install.changes import apply, own_namespace, unified
    from argo_harbor.install.manifests import manifests
    from argo_harbor.model.documents import InstallDocument, InstalledObject, Item

    own = own_namespace(cluster, cluster.namespace)
    objects = manifests(given.settings, own_namespace=own)

    show_diff = action == "diff"

    def show(change: Change) -> None:
        if not as_json and not show_diff:
            output.line(f"{change.what:<9}  {change.kind}/{change.name}")

    if not as_json:
        _warn(given)
        output.note(f"Context {cluster.context}, namespace {cluster.namespace}")
    changes = apply(cluster, objects, dry_run=action != "apply", progress=show)
    differs = any(change.what != "unchanged" for change in changes)
    status = EXIT_FAILED if show_diff and differs else EXIT_OK
    if as_json:
        lines = [
            InstalledObject(
                kind=each.kind, name=each.name, change=each.what, diff=unified(each) if show_diff else ""
            )
            for each in changes
        ]
        output.document(
            InstallDocument(
                action=action,
                context=cluster.context,
                namespace=cluster.namespace,
                objects=tuple(lines),
                warnings=Item.each(given.warnings),
            )
        )
    elif show_diff:
        for change in changes:
            sys.stdout.write(output.printable(unified(change)))
        output.note("" if differs else "nothing would change")
    elif action == "dry-run":
        output.line("Nothing was changed. Next: argo-harbor install … --apply")
    else:
        output.line(f"Next: argo-harbor doctor --context {cluster.context} --namespace {cluster.namespace}")
    return status


def _uninstall(cluster: Cluster, *, yes: bool, as_json: bool) -> int:
    from argo_harbor.install.removal import plan_removal, remove
    from argo_harbor.model.documents import InstallDocument, InstalledObject

    removal = plan_removal(cluster, cluster.namespace)
    names = [(item.kind, item.name) for item in removal.objects]
    names += [("Namespace", cluster.namespace)] if removal.namespace else []
    if not as_json:
        for kind, name in names:
            output.line(f"{kind}/{name}")
        if removal.kept_because:
            output.note(f"The namespace {cluster.namespace} stays: {removal.kept_because}")
    if names and not yes:
        _confirm(f"Delete {len(names)} objects in context {cluster.context}?", as_json=as_json)
    remove(cluster, cluster.namespace, removal)
    if as_json:
        lines = [InstalledObject(kind=kind, name=name, change="delete") for kind, name in names]
        output.document(
            InstallDocument(
                action="uninstall",
                context=cluster.context,
                namespace=cluster.namespace,
                objects=tuple(lines),
                kept_because=removal.kept_because,
            )
        )
    else:
        output.line(f"Deleted {len(names)} objects")
    return EXIT_OK


def _confirm(question: str, *, as_json: bool) -> None:
    from argo_harbor.errors import UsageError

    if as_json or not sys.stdin.isatty():
        raise UsageError("bad_usage", "nobody is there to ask", "repeat it with --yes")
    typer.confirm(question, abort=True, err=True)


def _named_namespace(platform: Path | None) -> str | None:
    """The namespace that the platform file names, if there is such a file: removing needs nothing else of
    it."""
    from argo_harbor.settings.platform import platform_file, read_platform

    chosen = platform_file(platform)
    return read_platform(chosen.path).namespace if chosen else None


def _warn(given: Given | None) -> None:
    for finding in given.warnings if given else ():
        output.note(f"warning[{finding.code}]: {finding.message} ({finding.hint})")
