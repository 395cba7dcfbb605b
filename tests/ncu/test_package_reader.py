# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Reading reports with `ncu_report`: a stand-in answers the calls that gpuprof makes, as documented."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import pytest
from ncu_support import install, table

from gpuprof.counters import OPCODES
from gpuprof.ncu.diagnosis import NcuReadError
from gpuprof.ncu.find import Ncu
from gpuprof.ncu.metrics import CopyMetrics, requested
from gpuprof.ncu.outcome import profile_of
from gpuprof.ncu.read import find_package, parse_raw_csv, read_report, read_with_package

SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
REPORT = Path("run.ncu-rep")


@dataclass
class Metric:
    """One metric of one launch; instances by name, and the unit as the reader gives it."""

    total: object
    of_unit: str | None = ""
    instances: dict[str, int] = field(default_factory=dict)

    def value(self, index=None):
        return self.total if index is None else list(self.instances.values())[index]

    def as_uint64(self):
        return self.total

    def unit(self):
        return self.of_unit

    def num_instances(self):
        return len(self.instances)

    def has_correlation_ids(self):
        return bool(self.instances)

    def correlation_ids(self):
        names = Metric(None)
        names.value = lambda index: list(self.instances)[index]
        return names


@dataclass
class Action:
    """One launch."""

    kernel: str
    metrics: dict[str, Metric]

    def __post_init__(self):
        for kind, extent in (("block", (32, 8, 2)), ("grid", (7, 5, 3))):
            for axis, size in zip("xyz", extent, strict=True):
                self.metrics[f"launch__{kind}_dim_{axis}"] = Metric(size)

    def name(self):
        return self.kernel

    def metric_names(self):
        return tuple(self.metrics)

    def metric_by_name(self, name):
        return self.metrics.get(name)


class Sequence:
    """A context of ranges, or a range of actions: counted, and indexed strictly."""

    def __init__(self, *items):
        self._items = items

    def _count(self):
        return len(self._items)

    def _by_index(self, index):
        if not 0 <= index < len(self._items):
            raise IndexError(index)
        return self._items[index]

    num_ranges = num_actions = _count
    range_by_idx = action_by_idx = _by_index


def capability(major, minor):
    prefix = "device__attribute_compute_capability"
    return {f"{prefix}_major": Metric(major), f"{prefix}_minor": Metric(minor)}


@pytest.fixture
def reports(monkeypatch):
    """What the stand-in for the package loads, by path."""
    package, held = ModuleType("ncu_report"), {}

    def load_report(path):
        if path not in held:
            raise RuntimeError("not a report")
        return held[path]

    package.load_report = load_report
    monkeypatch.setitem(sys.modules, "ncu_report", package)
    return held


def only(reports, **metrics):
    reports[str(REPORT)] = Sequence(Sequence(Action("k", {**metrics})))
    (launch,) = read_with_package(REPORT)
    return launch


def test_every_launch_of_every_range_is_read_in_order(reports):
    names = [["a", "b"], [], ["c"], ["d", "e", "f"]]
    reports[str(REPORT)] = Sequence(*(Sequence(*(Action(name, {}) for name in part)) for part in names))
    launches = read_with_package(REPORT)
    assert [launch.kernel for launch in launches] == list("abcdef")
    assert {(launch.block, launch.grid) for launch in launches} == {((32, 8, 2), (7, 5, 3))}
    reports[str(REPORT)] = Sequence()
    assert read_with_package(REPORT) == []


def test_capability_is_known_only_whole(reports):
    assert only(reports, **capability(9, 0)).compute_capability == "9.0"
    assert only(reports).compute_capability is None
    for half in capability(9, 0):
        assert only(reports, **{half: Metric(9)}).compute_capability is None


def test_only_the_metrics_asked_for_are_kept(reports):
    assert {SECTORS, OCCUPANCY} <= set(requested().split(","))
    launch = only(
        reports, **{SECTORS: Metric(12.0, "sector"), OCCUPANCY: Metric(62.5, "%"), "other": Metric(1)}
    )
    assert launch.cells.keys() == {SECTORS, OCCUPANCY}
    sectors, occupancy = launch.cells[SECTORS], launch.cells[OCCUPANCY]
    assert (sectors.value, type(sectors.value), sectors.unit, sectors.why) == (12, int, "sector", None)
    assert (occupancy.value, occupancy.unit, occupancy.why) == (62.5, "%", None)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "did not collect"),
        ("n/a", "did not collect"),
        (float("nan"), "reports nan"),
        (float("inf"), "reports inf"),
        (float("-inf"), "reports -inf"),
    ],
)
def test_what_is_no_number_has_a_reason(reports, value, reason):
    cell = only(reports, **{SECTORS: Metric(value, None)}).cells[SECTORS]
    assert (cell.value, cell.unit) == (None, "")
    assert reason in cell.why


def test_instructions_by_opcode_are_read_and_must_add_up(reports):
    launch = only(reports, **{OPCODES: Metric(7, "inst", {"BAR": 2, "EXIT": 5})})
    assert launch.cells[OPCODES].parts == {"BAR": 2, "EXIT": 5}
    assert profile_of(launch, CopyMetrics()).counters["barriers"].value == 2
    assert only(reports, **{OPCODES: Metric(7)}).cells[OPCODES].parts is None
    assert only(reports, **{SECTORS: Metric(7, "", {"x": 1})}).cells[SECTORS].parts is None
    with pytest.raises(NcuReadError, match="add up"):
        only(reports, **{OPCODES: Metric(8, "inst", {"BAR": 2, "EXIT": 5})})


def test_file_that_the_package_refuses_is_named(reports):
    with pytest.raises(NcuReadError, match=r"run\.ncu-rep cannot be read: not a report\. .*newer ncu-report"):
        read_with_package(REPORT)


def shipped(tmp_path, text):
    """An Nsight Compute whose directory holds a package of its own."""
    program = Path(install(tmp_path / "nsight", ""))
    folder = program.parent / "extras" / "python"
    folder.mkdir(parents=True)
    (folder / "ncu_report.py").write_text(text)
    return Ncu(str(program)), str(folder)


@pytest.fixture
def no_package(monkeypatch):
    """Neither an installed package nor one imported before."""
    monkeypatch.delitem(sys.modules, "ncu_report", raising=False)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if "site-packages" not in entry])
    yield
    sys.modules.pop("ncu_report", None)


def test_reader_that_ships_with_nsight_compute_is_found_and_leaves_no_trace(no_package, tmp_path):
    ncu, folder = shipped(tmp_path, "here = __file__")
    assert find_package(ncu).here.startswith(folder)
    assert folder not in sys.path


def test_reader_that_cannot_be_imported_says_so(no_package, tmp_path):
    ncu, folder = shipped(tmp_path, "import a_library_that_is_not_there")
    with pytest.raises(NcuReadError, match="own ncu_report cannot be imported: No module named"):
        find_package(ncu)
    assert folder not in sys.path


def test_without_any_reader_the_fix_is_an_installation(no_package, tmp_path):
    for ncu in (None, Ncu(install(tmp_path, ""))):
        with pytest.raises(NcuReadError, match=r"Nothing here reads .* pip install ncu-report"):
            find_package(ncu)


def test_report_is_read_by_ncu_first_then_by_the_package(reports, tmp_path):
    launches = [{"kernel": "k", "block": "(32, 1, 1)", "grid": "(4, 1, 1)"}]
    report = tmp_path / "run.ncu-rep"
    report.write_text('[{"kernel": "k", "block": "(32, 1, 1)", "grid": "(4, 1, 1)"}]')
    ncu = Ncu(install(tmp_path / "bin", ""))
    assert read_report(report, ncu) == parse_raw_csv(table(launches))
    reports[str(report)] = Sequence(Sequence(Action("of the package", {})))
    assert read_report(report, None)[0].kernel == "of the package"
    broken = Ncu(str(tmp_path / "none"))
    assert read_report(report, broken)[0].kernel == "of the package"
    reports.clear()
    with pytest.raises(NcuReadError, match=r"Nsight Compute cannot read run\.ncu-rep: .*No such file"):
        read_report(report, broken)
