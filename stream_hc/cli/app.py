"""The command line as a whole: global options, the commands, and what happens to errors."""

import os
import sys
from typing import Annotated

import typer

import stream_hc
from stream_hc.cli import (
    configuring,
    demo,
    doctor,
    evaluating,
    explaining,
    models,
    refitting,
    reporting,
    running,
    snapshots,
    taxonomies,
)
from stream_hc.cli.errors import DEBUG, EPILOG, Code, explain
from stream_hc.cli.plugins import ExtensibleGroup
from stream_hc.interrupts import plain_interrupts

__all__ = ["app", "main"]

app = typer.Typer(
    name="stream-hc",
    cls=ExtensibleGroup,
    help="File documents in a taxonomy while they stream by.",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,  # it would take the brackets in JSON for markup
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run", short_help="Predict a stream of documents, learn from its labels.", epilog=EPILOG)(
    running.run
)
app.command("evaluate", short_help="Judge one learner on a data set.")(evaluating.evaluate)
app.command("compare", short_help="Judge several learners on the same data set.")(evaluating.compare)
app.command("refit", short_help="Fit H-M³ to labelled documents, with several processes.")(refitting.refit)
app.command("demo", short_help="See everything once, on synthetic news.")(demo.demo)
app.add_typer(taxonomies.app, name="taxonomy")
app.add_typer(snapshots.app, name="snapshot")
app.add_typer(configuring.app, name="config")
app.command("models", short_help="List the models of a job.")(models.models)
app.command("promote", short_help="Let another model of a job answer.")(models.promote)
app.command("rollback", short_help="Let the model before answer again.")(models.rollback)
app.command("report", short_help="Write a page about a job or a model.")(reporting.report)
app.command("explain", short_help="Show which words led to a label.")(explaining.explain)
app.command("doctor", short_help="Check the installation.")(doctor.doctor)
app.command("warmup", short_help="Compile all kernels once.")(doctor.warmup)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"stream-hc {stream_hc.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help=f"Show tracebacks (also: {DEBUG}=1).")] = False,
) -> None:
    """File documents in a taxonomy while they stream by."""
    if debug:
        os.environ[DEBUG] = "1"  # as a variable it reaches other processes too


def main() -> None:
    """Run the command in `sys.argv` and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal without Unicode is no reason to stop
    code = _run()
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        _forget_stdout()
    sys.exit(code)


def _run() -> int:
    try:
        with plain_interrupts():
            code = typer.main.get_command(app).main(prog_name="stream-hc", standalone_mode=False)
        return code if isinstance(code, int) else Code.FINE
    except BrokenPipeError:  # `| head` has seen enough
        _forget_stdout()
        return Code.FINE
    except (KeyboardInterrupt, typer.Abort):
        return Code.INTERRUPTED
    except SystemExit as request:  # from the completion, or from Typer for a closed pipe
        if isinstance(request.__context__, BrokenPipeError):
            _forget_stdout()
            return Code.FINE
        return request.code if isinstance(request.code, int) else Code.FINE
    except Exception as error:
        return explain(error)


def _forget_stdout() -> None:
    """Send what is left to nowhere: the interpreter would complain about the closed pipe when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
