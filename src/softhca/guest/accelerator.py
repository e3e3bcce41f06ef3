"""Whether this machine can run guests with hardware help: it is tried, since the node /dev/kvm alone says nothing."""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

_KVM_GET_API_VERSION = 0xAE00
_KVM_CREATE_VM = 0xAE01
_KVM_GET_VCPU_MMAP_SIZE = 0xAE04
_KVM_CREATE_VCPU = 0xAE41
_KVM_SET_USER_MEMORY_REGION = 0x4020AE46
_KVM_RUN = 0xAE80
_KVM_SET_REGS = 0x4090AE82
_KVM_GET_SREGS = 0x8138AE83
_KVM_SET_SREGS = 0x4138AE84
_API_VERSION = 12
_EXIT_HLT = 5
_EXIT_REASON = 8
"""Offset of the exit reason in the shared page of a virtual CPU (struct kvm_run)."""
_CODE_AT = 0x1000
_CODE = b"\xf4"
"""The instruction HLT."""
_PATIENCE = 5.0
"""Seconds that one instruction may take."""


def kvm_usable(device: Path = Path("/dev/kvm")) -> bool:
    """Whether guests run with /dev/kvm.

    The processor must have the feature (there are machines whose KVM does without: one instruction runs there, but a
    whole guest hangs), and a virtual machine of one instruction must run to its end, in a process of its own.
    """
    if not (os.access(device, os.R_OK | os.W_OK) and _processor_has_feature()):
        return False
    try:
        done = subprocess.run(
            [sys.executable, "-S", __file__, str(device)],
            timeout=_PATIENCE,
            check=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def accelerator() -> str:
    """`kvm` where it is usable, else `tcg`."""
    return "kvm" if kvm_usable() else "tcg"


def _processor_has_feature() -> bool:
    return re.search(r"^flags\s*:.*\b(vmx|svm)\b", Path("/proc/cpuinfo").read_text(), re.M) is not None


def _run_one_instruction(device: str) -> bool:
    kvm = os.open(device, os.O_RDWR | os.O_CLOEXEC)
    if fcntl.ioctl(kvm, _KVM_GET_API_VERSION) != _API_VERSION:
        return False
    machine = fcntl.ioctl(kvm, _KVM_CREATE_VM, 0)
    memory = mmap.mmap(-1, mmap.PAGESIZE)
    memory[: len(_CODE)] = _CODE
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    region = struct.pack("<IIQQQ", 0, 0, _CODE_AT, mmap.PAGESIZE, address)
    fcntl.ioctl(machine, _KVM_SET_USER_MEMORY_REGION, region)
    processor = fcntl.ioctl(machine, _KVM_CREATE_VCPU, 0)
    shared = mmap.mmap(processor, fcntl.ioctl(kvm, _KVM_GET_VCPU_MMAP_SIZE))
    special = bytearray(0x138)
    fcntl.ioctl(processor, _KVM_GET_SREGS, special)
    special[0:8] = bytes(8)  # cs.base
    special[12:14] = bytes(2)  # cs.selector
    fcntl.ioctl(processor, _KVM_SET_SREGS, special)
    registers = bytearray(0x90)
    struct.pack_into("<QQ", registers, 0x80, _CODE_AT, 2)  # rip, rflags
    fcntl.ioctl(processor, _KVM_SET_REGS, registers)
    fcntl.ioctl(processor, _KVM_RUN, 0)
    (reason,) = struct.unpack_from("<I", shared, _EXIT_REASON)
    return bool(reason == _EXIT_HLT)


if __name__ == "__main__":
    sys.exit(0 if _run_one_instruction(sys.argv[1]) else 1)
