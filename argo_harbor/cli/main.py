"""The `argo-harbor` program: its commands, and how every error leaves it.

Command modules import only what their signatures need; the work is imported when a command runs, so that
`--help` starts fast.
"""

from __future__ import annotations

import contextlib
import errno
import sys

import typer

from argo_harbor.cli import compile as compile_command
from argo_harbor.cli import config, profiles, runs, submit, tasksets
from argo_harbor.cli import doctor as doctor_command
from argo_harbor.cli import install as install_command
from argo_harbor.cli.flags import spread
from argo_harbor.cli.grouped import GroupedCommands, GroupedOptions
from argo_harbor.errors import EXIT_INTERRUPTED, EXIT_OK, HarborError, PlatformError, UsageError

_CANNOT_WRITE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})

app = typer.Typer(
    name="argo-harbor",
    cls=GroupedCommands,
    help="Run Harbor task suites on Argo Workflows, or on one machine.",
    epilog="Start with: argo-harbor runs submit --harbor-dir SUITE --agent oracle",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("compile", cls=GroupedOptions, rich_help_panel="Plan")(spread(compile_command.compile_suite))
tasksets_app = typer.Typer(
    cls=GroupedCommands,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Publish suites once, run them many times.",
)
tasksets.register(tasksets_app)
app.add_typer(tasksets_app, name="tasksets", rich_help_panel="Plan")
runs_app = typer.Typer(
    cls=GroupedCommands, no_args_is_help=True, rich_markup_mode=None, help="Submit, follow and use runs."
)
runs_app.command("submit", cls=GroupedOptions, rich_help_panel="Start")(spread(submit.submit))
runs.register(runs_app)
app.add_typer(runs_app, name="runs", rich_help_panel="Run")
app.command("install", cls=GroupedOptions, rich_help_panel="Cluster")(install_command.install)
app.command("doctor", cls=GroupedOptions, rich_help_panel="Cluster")(doctor_command.doctor)
app.add_typer(profiles.app, name="profiles", rich_help_panel="Limits and settings")
app.add_typer(config.app, name="config", rich_help_panel="Limits and settings")


@app.callback(invoke_without_command=True)
def root(
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    if version:
        from argo_harbor.version import __version__

        typer.echo(__version__)
        raise typer.Exit


def main() -> None:
    """Entry point: runs a command and turns every error a user can meet into code, message and hint."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit status."""
    from argo_harbor.cli import output

    output.prepare_streams()
    try:
        return _run(arguments)
    except BrokenPipeError:
        # The reader of our output has gone (`| head`), which is no failure.
        output.silence()
        return EXIT_OK
    except OSError as problem:
        if problem.filename is not None or problem.errno not in _CANNOT_WRITE:
            raise
        # Only a stream has no name: it is the disk behind stdout or stderr.
        full = PlatformError(
            "store_write_failed",
            f"cannot write the output: {problem.strerror}",
            "free some space, or send it elsewhere",
        )
        with contextlib.suppress(OSError):
            output.error(full, as_json=False)
        output.silence()
        return full.exit_status


def _run(arguments: list[str]) -> int:
    from argo_harbor.cli import output

    as_json = "--json" in arguments
    try:
        result = app(args=arguments, prog_name="argo-harbor", standalone_mode=False)
    except HarborError as problem:
        output.error(problem, as_json=as_json)
        return problem.exit_status
    except typer.Abort:
        return EXIT_INTERRUPTED
    except KeyboardInterrupt:
        output.note("interrupted")
        return EXIT_INTERRUPTED
    except typer.TyperException as problem:
        usage = _usage(problem)
        output.error(usage, as_json=as_json)
        return usage.exit_status
    return result if isinstance(result, int) else EXIT_OK


def _usage(problem: typer.TyperException) -> UsageError:
    """What typer found wrong with the command line, as an error of ours."""
    command = getattr(getattr(problem, "ctx", None), "command_path", "argo-harbor")
    code = "unknown_flag_value" if isinstance(problem, typer.BadParameter) else "bad_usage"
    return UsageError(code, problem.format_message(), f"see {command} --help")
