"""`softhca layout`: the bits of a structure, and dumps decoded."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from softhca.prm.layout import Layout


@click.command()
@click.argument("name", required=False)
@click.option("--list", "list_all", is_flag=True, help="List the structures, in place of showing one.")
@click.option(
    "--hex",
    "hex_file",
    metavar="FILE|-",
    type=click.Path(path_type=Path, allow_dash=True, dir_okay=False),
    help="Decode the dump in this file, - for standard input.",
)
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def layout(name: str | None, list_all: bool, hex_file: Path | None, as_json: bool) -> None:
    """Show where the fields of a structure are, or decode a dump of it.

    NAME is the name in Linux without its affixes: eqc is mlx5_ifc_eqc_bits, cqe64 is mlx5_cqe64, create_eq_in is the
    input of CREATE_EQ. A name of a class (CreateEqIn) or an opcode's (CREATE_EQ for its input) is understood too.

    A dump may be plain hex, or the output of xxd, hexdump, the kernel's print_hex_dump or the mlx5 driver: with time
    stamps, prefixes, offsets and an ASCII column. Several structures in a row are decoded one by one. Reserved bits
    that are set are listed last.

    \b
    softhca layout eqc
    softhca layout --list
    dmesg | grep 'cqe_dump' | softhca layout err_cqe --hex -
    echo 0303 0000 0000 0000 0000 0003 0000 0000 | softhca layout query_eq_in --hex -
    """  # noqa: D301
    if list_all:
        if name is not None or hex_file is not None:
            raise click.UsageError("--list stands alone: it takes no NAME and no --hex")
        _list(as_json)
        return
    if name is None:
        raise click.UsageError("a NAME is missing; --list shows all names")
    structure = _find(name)
    if hex_file is None:
        _table(structure, as_json)
    else:
        _decode(structure, hex_file, as_json)


def _find(name: str) -> type[Layout]:
    """The structure that is meant by a name.

    Raises:
        click.BadParameter: there is none; it names what is near.
    """
    from difflib import get_close_matches

    from softhca.prm.catalogue import LAYOUTS
    from softhca.prm.layout import snake_case

    bare = name.removeprefix("struct ").removeprefix("mlx5_").removeprefix("ifc_").removesuffix("_bits")
    lower = bare.lower()
    for candidate in (bare, lower, snake_case(bare), f"{lower}_in", f"{lower}_reg"):
        if candidate in LAYOUTS:
            return LAYOUTS[candidate]
    near = get_close_matches(lower, LAYOUTS, 5, 0.5) or [known for known in LAYOUTS if lower in known][:5]
    hint = f"near it are {', '.join(near)}" if near else "softhca layout --list shows all"
    raise click.BadParameter(f"no structure {name!r}; {hint}", param_hint="NAME")


def _list(as_json: bool) -> None:
    from softhca.prm.catalogue import LAYOUTS
    from softhca.prm.show import columns

    def module(structure: type[Layout]) -> str:
        return structure.__module__.rpartition(".")[2]

    def what(structure: type[Layout]) -> str:
        return (structure.__doc__ or "").strip().splitlines()[0]

    found = sorted(LAYOUTS.values(), key=lambda structure: (module(structure), structure.NAME))
    if as_json:
        names = [{"name": one.NAME, "bytes": one.SIZE, "module": module(one), "what": what(one)} for one in found]
        click.echo(json.dumps(names, indent=1))
        return
    head: tuple[str, ...] = ("module", "name", "bytes", "what")
    click.echo(columns([head, *((module(one), one.NAME, str(one.SIZE), what(one)) for one in found)]))


def _table(structure: type[Layout], as_json: bool) -> None:
    from softhca.prm import show

    if not as_json:
        click.echo(show.table(structure))
        return
    fields: list[dict[str, Any]] = []
    for field in structure.FIELDS.values():
        where = show.place(field.bit, field.bits or field.width)
        fields.append(
            {
                "name": field.name,
                "offset": where.offset,
                "high": where.high,
                "low": where.low,
                "width": field.width,
                "count": field.count,
                "structure": field.layout.NAME if field.layout is not None else None,
                "values": {item.name: item.value for item in field.enum} if field.enum is not None else {},
            }
        )
    described = {"name": structure.NAME, "bytes": structure.SIZE, "manual": structure.MANUAL, "fields": fields}
    click.echo(json.dumps(described, indent=1))


def _decode(structure: type[Layout], hex_file: Path, as_json: bool) -> None:
    from softhca.prm import show
    from softhca.prm.hexdump import MAX_TEXT, HexError, parse_hex
    from softhca.prm.layout import LayoutError

    try:
        with nullcontext(sys.stdin) if str(hex_file) == "-" else hex_file.open() as file:
            text = file.read(MAX_TEXT + 1)
        views = show.views(structure, parse_hex(text))
    except (OSError, UnicodeDecodeError, HexError, LayoutError) as error:
        raise click.ClickException(f"{hex_file}: {error}") from error
    if as_json:
        click.echo(json.dumps([_json(structure, view) for view in views], indent=1))
        return
    click.echo(show.summary(structure))
    for number, view in enumerate(views):
        click.echo(f"\n[{number}]" if len(views) > 1 else "")
        click.echo(show.dump(view))


def _json(structure: type[Layout], view: Layout) -> dict[str, Any]:
    from softhca.prm import show

    fields = []
    for item in show.decode(view):
        value = item.value.hex() if isinstance(item.value, bytes) else item.value
        place = item.place
        fields.append(
            {
                "name": item.name,
                "offset": place.offset,
                "high": place.high,
                "low": place.low,
                "width": item.width,
                "value": value,
                "meaning": item.meaning,
            }
        )
    return {"name": structure.NAME, "fields": fields}
