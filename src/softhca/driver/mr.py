"""Memory regions: which memory a key opens, and for what (source 1.4, 2.5, A9, G4)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Flag, auto

from softhca.driver.cmd import CommandChannel
from softhca.driver.memory import Buffer, HcaAddress
from softhca.driver.pd import ProtectionDomain
from softhca.prm.mkey import ANY_QP, AccessMode, CreateMkeyIn, CreateMkeyOut, DestroyMkeyIn, DestroyMkeyOut
from softhca.prm.opcodes import Opcode

_LOG_PAGE = 12
_KEY_BYTE = 0x5A


class Access(Flag):
    """What a key allows."""

    LOCAL_READ = auto()
    LOCAL_WRITE = auto()
    REMOTE_READ = auto()
    REMOTE_WRITE = auto()


ALL_ACCESS = Access.LOCAL_READ | Access.LOCAL_WRITE | Access.REMOTE_READ | Access.REMOTE_WRITE


@dataclass(frozen=True)
class MemoryRegion:
    """Registered memory.

    Attributes:
        key: lkey and rkey in one: index << 8 | key byte.
        address: HCA virtual address of its first byte.
        length: bytes.
        life: of the function, in which the key means something (F8).
    """

    key: int
    address: HcaAddress
    length: int
    life: int

    @classmethod
    def register(
        cls,
        channel: CommandChannel,
        pd: ProtectionDomain,
        buffer: Buffer,
        *,
        access: Access = ALL_ACCESS,
        address: HcaAddress | None = None,
    ) -> MemoryRegion:
        """CREATE_MKEY with a translation entry (MTT) for each page of `buffer`.

        Args:
            channel: runs the command.
            pd: which domain may use the key.
            buffer: the memory; it stays mapped until after :meth:`deregister` (A10).
            access: what the key allows.
            address: HCA virtual address of the first byte; None: the same number as its DMA address.
        """
        channel.same_life("CREATE_MKEY", pd.life)
        first = HcaAddress(buffer.iova) if address is None else address
        pages = buffer.pages
        octwords = (len(pages) + 1) // 2
        words = [half for page in pages for half in (page >> 32, page & 0xFFFF_FFFF)]
        words += [0] * (octwords * 4 - len(words))
        request = CreateMkeyIn.new(
            memory_key_mkey_entry={
                "access_mode_1_0": AccessMode.MTT,
                "lr": Access.LOCAL_READ in access,
                "lw": Access.LOCAL_WRITE in access,
                "rr": Access.REMOTE_READ in access,
                "rw": Access.REMOTE_WRITE in access,
                "pd": pd.number,
                "qpn": ANY_QP,
                "mkey_7_0": _KEY_BYTE,
                "start_addr": first,
                "len": len(buffer),
                "log_page_size": _LOG_PAGE,
                "translations_octword_size": octwords,
            },
            translations_octword_actual_size=octwords,
            klm_pas_mtt=words,
        )
        reply = channel.execute(Opcode.CREATE_MKEY, request, CreateMkeyOut)
        return cls(reply.mkey_index << 8 | _KEY_BYTE, first, len(buffer), channel.life)

    def deregister(self, channel: CommandChannel) -> None:
        """DESTROY_MKEY: after this the key opens nothing."""
        channel.execute(Opcode.DESTROY_MKEY, DestroyMkeyIn.new(mkey_index=self.key >> 8), DestroyMkeyOut)
