"""The client's memory, as DMA_MAP and DMA_UNMAP describe it (A9, A10)."""

from __future__ import annotations

import errno
import mmap
import os
import stat

from softhca.bus.dma import ADDRESS_END, DmaSpace
from softhca.vfio_user.protocol import MAX_DMA_MAPS, PAGE_SIZE, DmaFlags, DmaMap, DmaUnmap, ProtocolError, UnmapFlags

_FLAGS = int(DmaFlags.READ | DmaFlags.WRITE)


class GuestMemory:
    """Fills a :class:`DmaSpace` with the files that a client passes.

    Ranges that come without a file (ROM, flash, other devices) are only remembered: a device that reaches for them
    gets a DmaFault. A mapping's pages are given back when the last view of them goes, so that a device that holds a
    view too long never touches memory that is not there.
    """

    def __init__(self) -> None:
        self.space = DmaSpace()
        self._without_file: dict[int, int] = {}
        """IOVA -> size."""

    def map(self, request: DmaMap, fd: int | None) -> None:
        """Carry out a DMA_MAP. The descriptor stays the caller's.

        Raises:
            ProtocolError: EINVAL, EEXIST (overlap), ENOSPC (too many), or what the system says of the file.
        """
        end = request.iova + request.size
        if request.size == 0 or end > ADDRESS_END:
            raise ProtocolError(errno.EINVAL, f"{request}: size allowed is 1 up to the end of 64-bit addresses")
        if request.flags == 0 or request.flags & ~_FLAGS:
            raise ProtocolError(errno.EINVAL, f"{request}: flags allowed are READ (1) and WRITE (2)")
        if len(self.space) + len(self._without_file) >= MAX_DMA_MAPS:
            raise ProtocolError(errno.ENOSPC, f"{request}: {MAX_DMA_MAPS} mappings are there already")
        if any(iova < end and request.iova < iova + size for iova, size in self._without_file.items()):
            raise ProtocolError(errno.EEXIST, f"{request}: overlaps a mapping")
        if fd is None:
            self._remember(request)
            return
        memory = _map_file(request, fd)
        try:
            self.space.map(request.iova, memory, writable=bool(request.flags & DmaFlags.WRITE))
        except ValueError as error:
            raise ProtocolError(errno.EEXIST, str(error)) from error

    def _remember(self, request: DmaMap) -> None:
        if self.space.overlaps(request.iova, request.size):
            raise ProtocolError(errno.EEXIST, f"{request}: overlaps a mapping")
        self._without_file[request.iova] = request.size

    def unmap(self, request: DmaUnmap) -> int:
        """Carry out a DMA_UNMAP; return the bytes that are no longer mapped.

        Raises:
            ProtocolError: EOPNOTSUPP (dirty pages), EINVAL (cuts a mapping), ENOENT (nothing is mapped there).
        """
        if request.flags & UnmapFlags.GET_DIRTY_BITMAP:
            raise ProtocolError(errno.EOPNOTSUPP, f"{request}: dirty pages are not tracked")
        if request.flags & ~int(UnmapFlags.ALL):
            raise ProtocolError(errno.EINVAL, f"{request}: flags allowed are 0 and ALL (2)")
        if request.flags & UnmapFlags.ALL:
            if request.iova or request.size:
                raise ProtocolError(errno.EINVAL, f"{request}: ALL goes with iova 0 and size 0 only")
            return self.clear()
        if request.size == 0:
            raise ProtocolError(errno.EINVAL, f"{request}: size 0 goes with ALL only")
        start, end = request.iova, request.iova + request.size
        inside = [iova for iova in self._without_file if start <= iova < end]
        if any(
            iova < end and start < iova + size and not (start <= iova and iova + size <= end)
            for iova, size in self._without_file.items()
        ):
            raise ProtocolError(errno.EINVAL, f"{request}: cuts a mapping")
        try:
            removed = self.space.unmap(start, request.size)
        except ValueError as error:
            raise ProtocolError(errno.EINVAL, str(error)) from error
        removed += sum(self._without_file.pop(iova) for iova in inside)
        if not removed:
            raise ProtocolError(errno.ENOENT, f"{request}: nothing is mapped there")
        return removed

    def clear(self) -> int:
        """Forget every mapping; return their bytes."""
        removed = sum(self._without_file.values()) + self.space.clear()
        self._without_file.clear()
        return removed


def _map_file(request: DmaMap, fd: int) -> memoryview:
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        raise ProtocolError(errno.EINVAL, f"{request}: the descriptor is no regular file and no memfd")
    if request.offset % PAGE_SIZE or request.offset + request.size > status.st_size:
        raise ProtocolError(
            errno.EINVAL,
            f"{request}: offset is no multiple of {PAGE_SIZE}, or beyond the file's {status.st_size} bytes",
        )
    protection = mmap.PROT_READ | (mmap.PROT_WRITE if request.flags & DmaFlags.WRITE else 0)
    try:
        return memoryview(mmap.mmap(fd, request.size, mmap.MAP_SHARED, protection, offset=request.offset))
    except OSError as error:
        raise ProtocolError(error.errno or errno.EINVAL, f"{request}: {error.strerror}") from error
    except ValueError as error:  # the client has cut the file since its size was looked at
        raise ProtocolError(errno.EINVAL, f"{request}: {error}") from error
