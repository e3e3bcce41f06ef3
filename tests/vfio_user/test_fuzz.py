"""Whatever bytes come: no exception reaches the loop, nothing leaks, and the next client is served."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from softhca.vfio_user.protocol import (
    Command,
    DeviceInfo,
    DmaMap,
    DmaUnmap,
    Header,
    IrqInfo,
    IrqSet,
    MultiEntry,
    RegionAccess,
    RegionInfo,
    Structure,
    Version,
    WriteMulti,
)
from tests.vfio_user.client import Closed
from tests.vfio_user.conftest import Rig, open_fds

NUMBERS = st.one_of(
    st.sampled_from([0, 1, 2, 3, 4, 7, 8, 16, 20, 24, 32, 0x21, 0x24, 0x1000, 0x10000, 2**32 - 1, 2**63, 2**64 - 1]),
    st.integers(0, 2**64 - 1),
)
BODIES: list[tuple[int, type[Structure]]] = [
    (Command.VERSION, Version),
    (Command.DMA_MAP, DmaMap),
    (Command.DMA_UNMAP, DmaUnmap),
    (Command.DEVICE_GET_INFO, DeviceInfo),
    (Command.DEVICE_GET_REGION_INFO, RegionInfo),
    (Command.DEVICE_GET_IRQ_INFO, IrqInfo),
    (Command.DEVICE_SET_IRQS, IrqSet),
    (Command.REGION_READ, RegionAccess),
    (Command.REGION_WRITE, RegionAccess),
    (Command.REGION_WRITE_MULTI, WriteMulti),
    (Command.REGION_WRITE_MULTI, MultiEntry),
]
WIDTHS = {"H": 0xFFFF, "I": 0xFFFFFFFF, "Q": 0xFFFFFFFFFFFFFFFF}


@st.composite
def bodies(draw: st.DrawFn) -> tuple[int, bytes]:
    """A known command with any values in its fields, and any bytes behind."""
    command, kind = draw(st.sampled_from(BODIES))
    values = [draw(NUMBERS) & WIDTHS[letter] for letter in kind.layout.format[1:]]
    return command, kind.layout.pack(*values) + draw(st.binary(max_size=40))


@st.composite
def messages(draw: st.DrawFn) -> tuple[bytes, int]:
    """A message, well-formed or not, and how many descriptors come with it."""
    command, body = draw(st.one_of(bodies(), st.tuples(st.integers(0, 0xFFFF), st.binary(max_size=80))))
    size = draw(st.one_of(st.just(16 + len(body)), st.just(16 + len(body)), NUMBERS))
    flags = draw(st.one_of(st.sampled_from([0, 0, 0, 0x10]), st.integers(0, 0xFFFFFFFF)))
    header = Header(draw(st.integers(0, 0xFFFF)), command, size & 0xFFFFFFFF, flags, 0)
    return header.pack() + body, draw(st.sampled_from([0, 0, 1, 1, 2, 16]))


def converse(sent: list[tuple[bytes, int]], *, negotiated: bool) -> None:
    before = open_fds()
    with tempfile.TemporaryDirectory() as folder:
        rig = Rig(Path(folder) / "s")
        client = rig.client(negotiated=negotiated)
        memory, event = os.memfd_create("guest"), os.eventfd(0)
        os.truncate(memory, 0x10000)
        try:
            for data, fds in sent:
                client.send_raw(data, [memory if number % 2 else event for number in range(1, fds + 1)])
                client.silent()
        except (ConnectionError, Closed):
            pass
        os.close(memory)
        os.close(event)
        client.close()
        client.pump(4)
        rig.serves()
        rig.close()
    del rig, client
    assert open_fds() == before


@settings(max_examples=60, deadline=None)
@given(st.lists(messages(), max_size=12), st.booleans())
def test_any_messages(sent: list[tuple[bytes, int]], negotiated: bool) -> None:
    converse(sent, negotiated=negotiated)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.binary(min_size=1, max_size=200), st.sampled_from([0, 1, 5])), max_size=6), st.booleans())
def test_any_bytes(sent: list[tuple[bytes, int]], negotiated: bool) -> None:
    converse(sent, negotiated=negotiated)
