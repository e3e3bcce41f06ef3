"""Profiles: the five models, and what a profile may not be."""

from __future__ import annotations

from pathlib import Path

import pytest

from softhca.hca.caps import IMPLEMENTED, SELECTABLE, Capabilities
from softhca.hca.profile import PAGES, ProfileError, load_profile, names
from softhca.prm.hca_cap import PortType
from softhca.prm.layout import Layout

DEVICES = {
    "connectx-5-ib": 0x1017,
    "connectx-6-ib": 0x101B,
    "connectx-6dx-eth": 0x101D,
    "connectx-7-eth": 0x1021,
    "connectx-7-ib": 0x1021,
    "connectx-7-ib-odp": 0x1021,
}


def test_the_models_that_there_are() -> None:
    assert names() == sorted(DEVICES)


@pytest.mark.parametrize("name", sorted(DEVICES))
def test_identity(name: str) -> None:
    profile = load_profile(name)
    assert profile.name == name
    assert (profile.pci.vendor_id, profile.pci.device_id) == (0x15B3, DEVICES[name])
    assert profile.port.port_type is (PortType.ETH if name.endswith("-eth") else PortType.IB)
    assert profile.firmware.command_interface == 5
    assert profile.pci.class_code == (0x020000 if name.endswith("-eth") else 0x020700)


@pytest.mark.parametrize("name", sorted(DEVICES))
def test_every_group_says_where_it_comes_from(name: str) -> None:
    sources = load_profile(name).sources
    assert {"pci", "firmware", "addresses", "port", "icm", "pages", "command_queue"} <= set(sources)
    assert "capabilities.general" in sources
    assert all(source.strip() for source in sources.values())


@pytest.mark.requirement("B2")
@pytest.mark.parametrize("name", sorted(DEVICES))
def test_entry_sizes_and_limits_of_the_reference(name: str) -> None:
    profile = load_profile(name)
    icm = profile.icm
    assert (icm.qpc, icm.srqc, icm.cqc, icm.eqc, icm.mkc, icm.mtt, icm.klm) == (256, 32, 64, 64, 128, 8, 16)
    general = profile.capabilities["general"]
    limits = {"log_max_qp": 24, "log_max_srq": 24, "log_max_cq": 24, "log_max_eq": 9, "log_max_mkey": 24}
    assert all(general[key] <= limit for key, limit in limits.items())


@pytest.mark.requirement("D1")
@pytest.mark.parametrize("name", sorted(DEVICES))
def test_command_queue_of_the_reference(name: str) -> None:
    queue = load_profile(name).command_queue
    assert (1 << queue.log_size, 1 << queue.log_stride) == (32, 64)


def test_the_default() -> None:
    assert load_profile() == load_profile("connectx-6-ib")


def test_firmware_version_as_ibv_devinfo_prints_it() -> None:
    assert load_profile("connectx-6-ib").firmware.version == "20.26.1040"


def test_guid_of_a_mac() -> None:
    # b8:59:9f:4e:bd:14 and b859:9f03:004e:bd14: a public ibv_devinfo of a ConnectX-6
    addresses = load_profile().addresses
    assert type(addresses)(0xB8599F4EBD14).guid == 0xB8599F03004EBD14


def test_cards_of_a_model_have_addresses_of_their_own() -> None:
    cards = [load_profile().numbered(index) for index in range(8)]
    assert len({card.addresses.mac for card in cards}) == 8
    assert len({card.addresses.guid for card in cards}) == 8
    assert cards[0] == load_profile()
    with pytest.raises(ProfileError, match="0 to 65535"):
        load_profile().numbered(-1)


def test_names_of_the_mask_are_fields_of_the_pages() -> None:
    for name, fields in (*IMPLEMENTED.items(), *SELECTABLE.items()):
        for path in fields:
            layout: type[Layout] | None = PAGES[name]
            for part in path.split("."):
                assert layout is not None, path
                layout = layout.FIELDS[part].layout
            assert layout is None, path
    for name, selectable in SELECTABLE.items():
        assert set(selectable) <= set(IMPLEMENTED[name])


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(f'extends = "connectx-6-ib"\n{text}', encoding="utf-8")
    return path


def test_a_profile_of_ones_own(tmp_path: Path) -> None:
    path = written(tmp_path, '[capabilities.general]\nsource = "mine"\nlog_max_cq = 10\nxrc = false\n')
    profile = load_profile(path)
    assert profile.name == "mine"
    assert profile.capabilities["general"]["log_max_cq"] == 10
    assert profile.capabilities["general"]["xrc"] == 0
    assert profile.sources["capabilities.general"] == "mine"
    assert Capabilities(profile).general.log_max_cq == 10


BROKEN = {
    "unknown group": ('[pcie]\nsource = "x"\n', r"the profile: unknown key pcie; allowed are title"),
    "unknown key": ('[pci]\nsource = "x"\ncolour = 1\n', r"pci: unknown key colour; allowed are vendor_id"),
    "unknown page": ('[capabilities.qos]\nsource = "x"\n', r"capabilities: unknown key qos; allowed are general"),
    "unknown capability": (
        '[capabilities.general]\nsource = "x"\nlog_max_qpp = 1\n',
        r"capabilities.general: unknown key log_max_qpp; allowed are page_request_disable",
    ),
    "capability too wide": (
        '[capabilities.general]\nsource = "x"\nlog_max_qp = 32\n',
        r"capabilities.general.log_max_qp = 32: .* 5 bits",
    ),
    "capability of a wrong kind": (
        '[capabilities.general]\nsource = "x"\nlog_max_qp = "many"\n',
        r"capabilities.general.log_max_qp = 'many'",
    ),
    "no source": ("[port]\nmtu = 2048\n", r"port: the key source is missing"),
    "text for a number": ('[pci]\nsource = "x"\ndevice_id = "0x101b"\n', r"pci.device_id = '0x101b': an integer"),
    "number for a text": ('[firmware]\nsource = "x"\nboard_id = 7\n', r"firmware.board_id = 7: a text"),
    "bool for a number": ('[pci]\nsource = "x"\nrevision = true\n', r"pci.revision = True: an integer"),
    "out of range": ('[pci]\nsource = "x"\nvectors = 8\n', r"pci.vectors = 0x8: 0x9 to 0x800"),
    "bad port type": ('[port]\nsource = "x"\ntype = "fc"\n', r"port.type = 'fc': ib or eth"),
    "bad lanes": ('[port]\nsource = "x"\nvl_hw_cap = 3\n', r"port.vl_hw_cap = 3: 1, 2, 4, 8 and 15"),
    "mtu above maximum": ('[port]\nsource = "x"\nmtu = 9000\n', r"port.mtu = 9000: at most"),
    "queue too large": ('[command_queue]\nsource = "x"\nlog_stride = 8\n', r"do not fit 4096 bytes"),
    "board id too long": (
        '[firmware]\nsource = "x"\nboard_id = "MT_00000000000222"\n',
        r"firmware.board_id = .*: 1 to 16 ASCII",
    ),
    "type and capability differ": (
        '[capabilities.general]\nsource = "x"\nport_type = 1\n',
        r"capabilities.general.port_type = 1: port.type says",
    ),
}


@pytest.mark.parametrize("case", sorted(BROKEN))
def test_a_broken_profile_is_refused_by_file_and_key(tmp_path: Path, case: str) -> None:
    text, message = BROKEN[case]
    with pytest.raises(ProfileError, match=message) as caught:
        load_profile(written(tmp_path, text))
    assert "mine.toml" in str(caught.value)


def test_a_group_that_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "empty.toml"
    path.write_text('title = "nothing"\n', encoding="utf-8")
    with pytest.raises(ProfileError, match=r"key pci: a table \[pci\] is needed"):
        load_profile(path)


def test_a_key_that_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "half.toml"
    path.write_text('title = "half"\n[pci]\nsource = "x"\nvendor_id = 1\n', encoding="utf-8")
    with pytest.raises(ProfileError, match=r"pci: the key device_id is missing"):
        load_profile(path)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("title = \n", encoding="utf-8")
    with pytest.raises(ProfileError, match=r"broken\.toml"):
        load_profile(broken)
    with pytest.raises(ProfileError, match=r"absent\.toml"):
        load_profile(tmp_path / "absent.toml")
    with pytest.raises(ProfileError, match="allowed are connectx-5-ib"):
        load_profile("connectx-4")


def test_a_profile_does_not_extend_itself(tmp_path: Path) -> None:
    path = tmp_path / "loop.toml"
    path.write_text(f'extends = "{path}"\n', encoding="utf-8")
    with pytest.raises(ProfileError, match="extends itself"):
        load_profile(path)


def test_files_that_the_parser_cannot_take(tmp_path: Path) -> None:
    path = tmp_path / "deep.toml"
    path.write_text("a = " + "[" * 100_000, encoding="utf-8")
    with pytest.raises(ProfileError, match=r"deep\.toml"):
        load_profile(path)
    path.write_text("a = " + "9" * 5000, encoding="utf-8")
    with pytest.raises(ProfileError, match=r"deep\.toml"):
        load_profile(path)


def test_figures_that_the_device_cannot_do_without(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'extends = "connectx-6-ib"\n[capabilities.general]\nsource = "x"\ndevice_frequency_khz = 0\n', encoding="utf-8"
    )
    with pytest.raises(ProfileError, match="device_frequency_khz"):
        load_profile(path)
    path.write_text('extends = "connectx-6-ib"\n[port]\nsource = "x"\nmtu = 1500\n', encoding="utf-8")
    with pytest.raises(ProfileError, match=r"256, 512, 1024, 2048, 4096 are allowed"):
        load_profile(path)
