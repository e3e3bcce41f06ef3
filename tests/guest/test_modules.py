from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import pytest

from softhca.guest import modules
from softhca.guest.errors import LabError
from softhca.guest.programs import Programs


class _Programs(Programs):
    """Stands in for the unpacked tools."""

    def __init__(self) -> None:
        super().__init__(Path("/nowhere"))
        self.depmods: list[tuple[Path, str]] = []

    def depmod(self, base: Path, version: str) -> None:
        self.depmods.append((base, version))

    def decompress_zstd(self, data: bytes) -> bytes:
        return data.removeprefix(b"zstd:")


def _module(depends: str, softdep: str = "") -> bytes:
    info = f"\0license=GPL\0depends={depends}\0" + (f"softdep=pre: {softdep}\0" if softdep else "")
    return b"\x7fELF" + info.encode() + b"name=x\0"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("kernel/a/b-c.ko.xz", "b_c"),
        ("x.ko", "x"),
        ("d/y.ko.zst", "y"),
        ("z.ko.gz", "z"),
    ],
)
def test_name(path: str, name: str) -> None:
    assert modules.name_of(path) == name


def test_dependencies_are_read_from_the_module() -> None:
    assert modules.depends_of(_module("ib_core,mlx5-core", "crc32c")) == ["ib_core", "mlx5_core", "crc32c"]
    assert modules.depends_of(_module("")) == []


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("kernel/drivers/infiniband/hw/mlx5/mlx5_ib.ko.xz", True),
        ("kernel/drivers/block/virtio_blk.ko.xz", True),
        ("kernel/drivers/block/virtio_blk2.ko.xz", False),
        ("kernel/drivers/gpu/drm/i915/i915.ko.xz", False),
        ("updates/dkms/anything.ko", True),
    ],
)
def test_which_modules_are_kept(path: str, kept: bool) -> None:
    assert modules.kept(path) is kept


def test_copy_takes_what_is_needed_decompressed(tmp_path: Path) -> None:
    source, target = tmp_path / "6.1", tmp_path / "base/lib/modules/6.1"
    files = {
        "kernel/drivers/infiniband/core/ib_core.ko.xz": lzma.compress(_module("strange")),
        "kernel/sound/strange.ko.gz": gzip.compress(_module("deep")),
        "kernel/sound/deep.ko.zst": b"zstd:" + _module(""),
        "kernel/sound/other.ko": _module(""),
        "extra/mine.ko": _module(""),
        "modules.builtin": b"kernel/fs/x.ko\n",
    }
    for name, data in files.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(data)
    programs = _Programs()
    modules.copy(source, target, programs)
    found = {str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()}
    assert found == {
        "kernel/drivers/infiniband/core/ib_core.ko",
        "kernel/sound/strange.ko",
        "kernel/sound/deep.ko",
        "extra/mine.ko",
        "modules.builtin",
    }
    assert (target / "kernel/sound/deep.ko").read_bytes() == _module("")
    assert programs.depmods == [(tmp_path / "base", "6.1")]


@pytest.mark.parametrize("suffix", [".xz", ".gz"])
def test_a_damaged_module_is_named(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"6.1/kernel/lib/crc16.ko{suffix}"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"no archive")
    with pytest.raises(LabError, match=f"crc16.ko{suffix}: the module does not decompress"):
        modules.copy(tmp_path / "6.1", tmp_path / "base/lib/modules/6.1", _Programs())


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="no kernel module"):
        modules.copy(tmp_path, tmp_path / "t", _Programs())


def test_starting_order_loads_dependencies_first() -> None:
    table = {
        "kernel/fs/erofs/erofs.ko": ["kernel/lib/b.ko", "kernel/lib/a.ko"],
        "kernel/lib/a.ko": [],
        "kernel/lib/b.ko": ["kernel/lib/a.ko"],
        "kernel/fs/overlayfs/overlay.ko": [],
    }
    builtin = {"virtio_pci", "virtio_console", "virtio_blk"}
    assert modules.starting_order(table, builtin) == [
        "kernel/lib/a.ko",
        "kernel/lib/b.ko",
        "kernel/fs/erofs/erofs.ko",
        "kernel/fs/overlayfs/overlay.ko",
    ]


def test_a_kernel_without_a_needed_driver_is_refused() -> None:
    with pytest.raises(LabError, match="no virtio_pci"):
        modules.starting_order({}, {"virtio_blk"})


def test_a_kernel_that_does_not_tell_what_is_built_in_is_trusted() -> None:
    assert modules.starting_order({}, None) == []
