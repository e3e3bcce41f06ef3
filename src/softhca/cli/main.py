"""The `softhca` command: a group that imports a sub-command only when it is used, so that help comes at once."""

from __future__ import annotations

import importlib
from typing import cast

import click

from softhca import __version__

SUMMARIES = {
    "run": "Bring a card up in this process, move data over it, close it: the whole story in a minute.",
    "serve": "Serve one card to any virtual machine monitor (vfio-user).",
    "fabric": "Serve several cards of one subnet, each for a virtual machine of its own.",
    "guest": "Run a command in Linux guests that have the card and the unmodified mlx5 driver.",
    "fault": "Show what can be made to go wrong with a card (--fault), and check rules.",
    "trace": "Show what happened to a card (--trace) as a story; export it for other programs.",
    "top": "Watch running cards: commands, packets, objects, pages, health.",
    "layout": "Show the bits of a structure of the programmer's reference; decode a dump with it.",
}
"""Sub-command -> its line in the help. The object `name` of module `softhca.cli.name` is the command."""

EPILOG = """\b
Examples:
  softhca run                                   see what a driver does, step by step
  softhca guest -- ibv_devinfo                  ask the real driver about the card
  softhca guest --copy-in t.sh -- bash t.sh     your own test, in a guest with the card
  softhca serve --socket /tmp/hca.sock          a card for your own QEMU
  softhca layout eqc                            the bits of an event queue context
  softhca layout cqe64 --hex dump.txt           a dump, field by field

`softhca COMMAND --help` explains each command."""


class LazyGroup(click.Group):
    """A group whose commands are listed here, and imported on their use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order a newcomer meets them."""
        del ctx
        return list(SUMMARIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command."""
        del ctx
        if cmd_name not in SUMMARIES:
            return None
        return cast(click.Command, getattr(importlib.import_module(f"softhca.cli.{cmd_name}"), cmd_name))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name what is near a command that does not exist."""
        if args[0] not in SUMMARIES and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], SUMMARIES, 1)
            hint = f"did you mean {near[0]}?" if near else f"the commands are {', '.join(SUMMARIES)}."
            ctx.fail(f"no command {args[0]!r}; {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(SUMMARIES.items()))


@click.group(cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="softhca", message="%(prog)s %(version)s")
def main() -> None:
    """A ConnectX-class RDMA card in software: the unmodified Linux mlx5 driver runs on it as if it were the card.

    Use it to test driver code without hardware, to learn how a card works by watching one, and to read what real cards
    print.
    """


if __name__ == "__main__":
    main(prog_name="softhca")
