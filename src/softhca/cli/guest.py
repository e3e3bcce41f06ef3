"""`softhca guest`: a virtual machine whose unmodified Linux driver runs on our card."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from softhca.cli import DEFAULT_PROFILE
from softhca.cli.cards import build_cards
from softhca.cli.faults import answer_faults
from softhca.cli.figures import answer_figures
from softhca.cli.signals import terminable
from softhca.cli.watch import observed, observing

if TYPE_CHECKING:
    from softhca.guest.cache import Cache
    from softhca.guest.options import Options, Served, Streams
    from softhca.guest.verdict import Verdict
    from softhca.hca.device import Hca
    from softhca.vfio_user import Loop

_COMMAND = "softhca.guest.command"


class GuestGroup(click.Group):
    """A group that takes everything after `--` as the guest's command, whatever the words are."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Set the command aside, then parse what stands before it."""
        if "--" in args:
            at = args.index("--")
            command, args = args[at + 1 :], args[:at]
            if not command:
                raise click.UsageError("a command has to follow the --; without a -- you get a shell", ctx)
            ctx.meta[_COMMAND] = command
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the sub-command; a word that is none is most likely a command without its `--`."""
        if args and self.get_command(ctx, args[0]) is None:
            names = ", ".join(self.list_commands(ctx))
            hint = f"for a command in the guest write: {ctx.command_path} -- {shlex.join(args)}"
            ctx.fail(f"{args[0]!r} is none of {names}; {hint}")
        if _COMMAND in ctx.meta:
            ctx.fail(f"{args[0]} takes no command after --")
        return super().resolve_command(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """How it is called."""
        return ["[OPTIONS] [-- COMMAND...]", "|", "build|clean|info"]


def _split(context: click.Context, parameter: click.Parameter, value: str | None) -> list[str]:
    del context, parameter
    return [name for name in (value or "").replace(",", " ").split() if name]


def _copy_pairs(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> list[tuple[str, Path]]:
    pairs = []
    for value in values:
        inside, separator, outside = value.partition(":")
        if not (separator and inside and outside):
            raise click.BadParameter(f"{value!r} is not GUESTFILE:HOSTFILE", context, parameter)
        pairs.append((inside, Path(outside)))
    return pairs


def _seconds(context: click.Context, parameter: click.Parameter, value: float) -> float:
    if not value > 0:
        raise click.BadParameter(f"{value} is not a number above 0", context, parameter)
    return value


_kernel = click.option(
    "--kernel",
    default="stable",
    show_default=True,
    metavar="stable|newest|VMLINUZ:MODULES_DIR",
    help="The distribution's stable or newest kernel, or your own: its image, and its folder of /lib/modules.",
)
_packages = click.option(
    "--packages", callback=_split, metavar="LIST", help="More packages for the image, with commas between."
)
_mirror = click.option("--mirror", metavar="URL", help="Package mirror. Default: the one that this machine's apt uses.")


@click.group(cls=GuestGroup, invoke_without_command=True)
@click.option(
    "--profile",
    default=DEFAULT_PROFILE,
    show_default=True,
    metavar="NAME|FILE.toml",
    help="Which card to be (a name that does not exist lists all).",
)
@click.option("--devices", default=1, show_default=True, type=click.IntRange(0, 16), help="How many cards a guest has.")
@click.option(
    "--guests",
    type=click.IntRange(1, 16),
    metavar="N",
    help="How many guests, on one fabric; their lines are numbered.",
)
@_kernel
@_packages
@click.option("--memory", default=1024, show_default=True, type=click.IntRange(min=256), help="MiB of guest memory.")
@click.option("--boot", is_flag=True, help="Boot really, instead of starting from the saved state of a booted guest.")
@_mirror
@click.option(
    "--timeout", default=300.0, show_default=True, callback=_seconds, help="Seconds that the command may take."
)
@click.option(
    "--grace",
    default=30.0,
    show_default=True,
    callback=_seconds,
    help="Seconds that the other guests may go on when one has failed.",
)
@click.option("--keep", type=click.Path(file_okay=False, path_type=Path), help="Folder to copy the run's logs to.")
@click.option(
    "--copy-in", multiple=True, metavar="FILE", type=click.Path(path_type=Path), help="Put a file beside the command."
)
@click.option(
    "--copy-out", multiple=True, callback=_copy_pairs, metavar="GUESTFILE:HOSTFILE", help="Fetch a file afterwards."
)
@click.option("--no-modules", is_flag=True, help="Leave loading the driver to the command.")
@click.option(
    "--allow-kernel",
    multiple=True,
    metavar="driver|fatal|REGEX",
    help="Kernel complaints that do not fail the run: a class of them, or lines that match.",
)
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the verdict there.")
@click.option("--control", type=click.Path(path_type=Path), help="Socket for questions during the run (lines of JSON).")
@observed
@click.pass_context
def guest(ctx: click.Context, /, **given: Any) -> None:
    """Run a command in a Linux guest that has the card, or in several; without a command a shell.

    The first run builds the lab from the distribution's packages, as an ordinary user, into your cache. The command
    starts when mlx5_core has bound and mlx5_ib, ib_uverbs and ib_umad are loaded; files of --copy-in lie in its working
    folder. One word after the -- is a bash script, several are a program and its arguments. Without a command and
    without a terminal the script comes from standard input.

    \b
    softhca guest -- ibv_devinfo
    softhca guest -- 'dmesg | grep mlx5'
    softhca guest --copy-in test.sh -- bash test.sh
    softhca guest --kernel ./bzImage:/tmp/out/lib/modules/6.17.0 -- ibv_devices
    softhca guest --guests 2 -- 'softhca-barrier; echo I am guest $GUEST of $GUESTS'

    With --guests N the command runs in N guests at the same time. Their cards reach each other; GUEST has the guest's
    number, from 0. softhca-barrier [-t SECONDS] [NAME] waits in a guest until all others have called it too, and fails
    when one of them has ended. Each line of output begins with [number]; --copy-out adds .number to the file.

    The exit status is the command's, or 126 if the guest's kernel complained, 124 if the command took too long, 125 if
    the lab itself failed; of several guests that of the first with the gravest failure. --json tells these apart for
    certain.
    """  # noqa: D301
    if ctx.invoked_subcommand is not None:
        _refuse_options_before(ctx, ctx.invoked_subcommand)
        return
    verdict_file: Path | None = given["json_file"]
    if verdict_file is not None and not verdict_file.absolute().parent.is_dir():
        raise click.BadParameter(f"there is no folder {verdict_file.absolute().parent}", param_hint="--json")
    from softhca.guest.options import Options
    from softhca.guest.verdict import EXIT_LAB

    options = Options(
        kernel=given["kernel"],
        packages=given["packages"],
        memory=given["memory"],
        boot=given["boot"],
        mirror=given["mirror"],
        timeout=given["timeout"],
        grace=given["grace"],
        keep=given["keep"],
        copy_in=list(given["copy_in"]),
        copy_out=given["copy_out"],
        load_modules=not given["no_modules"],
        allow_kernel=list(given["allow_kernel"]),
    )
    script = _script(ctx.meta.get(_COMMAND))
    guests: int | None = given["guests"]
    if script is None and guests is not None and guests > 1:
        raise click.UsageError(
            "a shell is for one guest: give the guests a command after --, or on standard input", ctx
        )
    cards = build_cards(given["profile"], (guests or 1) * given["devices"])
    with terminable(), observing(given["observation"], cards):
        verdict = _run(options, cards, guests, given["control"], script)
    _explain(verdict)
    if verdict_file is not None:
        try:
            verdict_file.write_text(json.dumps(verdict.as_json(), indent=1) + "\n")
        except OSError as error:
            click.echo(f"softhca guest: the verdict {verdict.verdict!r} cannot be written: {error}", err=True)
            sys.exit(EXIT_LAB)
    sys.exit(verdict.exit)


def _refuse_options_before(ctx: click.Context, name: str) -> None:
    """An option before a sub-command would have no effect; it is most likely meant for the sub-command.

    Raises:
        click.UsageError: there is one.
    """
    for parameter in ctx.command.params:
        if parameter.name and ctx.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{parameter.opts[0]} has to follow {name}, if {name} takes it", ctx)


def _script(words: list[str] | None) -> str | None:
    """The bash script to run; None for an interactive shell."""
    if words is not None:
        return words[0] if len(words) == 1 else shlex.join(words)
    return None if sys.stdin.isatty() else sys.stdin.read()


def _run(options: Options, cards: list[Hca], guests: int | None, control: Path | None, command: str | None) -> Verdict:
    """Carry out a run of guests, to which the cards are dealt; None guests: one, whose lines are not numbered."""
    from softhca.guest.progress import to_stderr
    from softhca.guest.run import Run
    from softhca.vfio_user import Loop

    with closing(Loop()) as loop, ExitStack() as stack:
        devices = _deal(cards, guests or 1)
        stack.enter_context(_questions(loop, control, devices, cards))
        streams = [stack.enter_context(_streams(None if guests is None else number)) for number in range(guests or 1)]
        return Run(options, devices, streams, to_stderr, loop=loop).carry_out(command)


@contextmanager
def _streams(number: int | None) -> Iterator[Streams]:
    """This process's standard output and error, for a guest; a number stands before each of its lines."""
    from softhca.guest.options import Streams
    from softhca.guest.streams import Prefixed

    output, error = _writer(sys.stdout.buffer), _writer(sys.stderr.buffer)
    if number is None:
        yield Streams(output, error)
        return
    both = [Prefixed(sink, b"[%d] " % number) for sink in (output, error)]
    yield Streams(*both)
    for prefixed in both:
        with suppress(BrokenPipeError):
            prefixed.flush()


def _deal(cards: list[Hca], guests: int) -> list[list[Served]]:
    """Equally many cards for each guest, in order."""
    from softhca.guest.options import Served

    count = len(cards) // guests
    served = [Served(card, card.summary) for card in cards]
    return [served[guest * count : (guest + 1) * count] for guest in range(guests)]


@contextmanager
def _questions(loop: Loop, path: Path | None, devices: list[list[Served]], cards: list[Hca]) -> Iterator[None]:
    """Answer questions about the devices of each guest at a control socket, if one is wanted."""
    if path is None:
        yield
        return
    from softhca.vfio_user.control import Control

    try:
        control = Control(loop, path)
    except (OSError, ValueError) as error:
        raise click.BadParameter(f"{path}: {error}", param_hint="--control") from error
    with closing(control):
        control.register("summary", lambda _: {"devices": [served.summary() for own in devices for served in own]})
        answer_faults(control, cards)
        answer_figures(control, cards)
        yield


def _writer(stream: Any) -> Any:
    def write(data: bytes) -> None:
        stream.write(data)
        stream.flush()

    return write


def _explain(verdict: Verdict) -> None:
    """Say on standard error why a run did not go well, unless the command's own output says it."""
    reasons = {outcome.reason for outcome in verdict.guests}
    common = reasons.pop() if len(reasons) == 1 else None
    several = len(verdict.guests) > 1
    for number, outcome in enumerate(verdict.guests):
        name = f"softhca guest: guest {number}" if several else "softhca guest"
        for complaint in outcome.complaints:
            click.echo(f"{name}: kernel complaint ({complaint.kind}): {complaint.line}", err=True)
        if outcome.reason is not None and (common is None or not several):
            click.echo(f"{name}: {outcome.reason}", err=True)
        elif several and outcome.verdict == "command":
            click.echo(f"{name}: the command's exit status was {outcome.exit}", err=True)
    if common is not None and several:
        click.echo(f"softhca guest: {common}", err=True)


@contextmanager
def _cache() -> Iterator[Cache]:
    """The lab's cache; when work in it fails, say why and end with the status of the lab."""
    from softhca.guest.cache import Cache
    from softhca.guest.errors import LabError
    from softhca.guest.progress import to_stderr
    from softhca.guest.verdict import EXIT_LAB

    try:
        yield Cache(progress=to_stderr)
    except (LabError, OSError) as error:
        click.echo(f"softhca guest: the lab failed: {error}", err=True)
        sys.exit(EXIT_LAB)


@guest.command()
@_kernel
@_packages
@_mirror
def build(kernel: str, packages: list[str], mirror: str | None) -> None:
    """Build what is missing of the lab, so that the next run starts at once."""
    from softhca.guest import lab
    from softhca.guest.accelerator import accelerator
    from softhca.guest.machine import Hardware
    from softhca.guest.progress import to_stderr

    with _cache() as cache:
        parts = lab.obtain(cache, mirror, kernel, packages, to_stderr)
        if kernel == "stable" and not packages:
            lab.snapshot(cache, parts, Hardware(accelerator()), to_stderr)
    click.echo(f"The lab is ready in {cache.root} (kernel {parts.kernel.version}).")


@guest.command()
def clean() -> None:
    """Remove the lab from the cache."""
    with _cache() as cache:
        click.echo(f"{cache.clean()} parts removed from {cache.root}.")


@guest.command()
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def info(as_json: bool) -> None:
    """Show what the cache holds, and how guests would be run here."""
    from softhca.guest.accelerator import accelerator
    from softhca.guest.cache import disk_usage
    from softhca.guest.errors import LabError
    from softhca.guest.mirror import find_mirror

    with _cache() as cache:
        parts = [(path.name, disk_usage(path)) for path in cache.artefacts()]
    try:
        mirror: str | None = find_mirror()
    except LabError:
        mirror = None
    answer = {
        "cache": str(cache.root),
        "mirror": mirror,
        "accelerator": accelerator(),
        "parts": [{"name": name, "bytes": size} for name, size in parts],
    }
    if as_json:
        click.echo(json.dumps(answer, indent=1))
        return
    click.echo(f"cache        {answer['cache']}")
    click.echo(f"mirror       {mirror or 'unknown: use --mirror'}")
    click.echo(f"accelerator  {answer['accelerator']}")
    for name, size in parts:
        click.echo(f"{size / 1e6:9.1f} MB  {name}")


if __name__ == "__main__":
    guest(prog_name="softhca guest")
