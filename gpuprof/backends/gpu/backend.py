# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Runs cases on a real GPU: verify first, then time cold and warm."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import cached_property, partial
from time import perf_counter, sleep

from gpuprof import timeline
from gpuprof.backends.base import NOT_COUNTED, Backend, Findings, Functions
from gpuprof.backends.gpu import ahead
from gpuprof.backends.gpu.arrays import ArrayKeeper, ProblemArrays
from gpuprof.backends.gpu.constant_meter import ConstantMeter
from gpuprof.backends.gpu.context import Arguments, DeviceBuffer, GpuContext, link_ptx
from gpuprof.backends.gpu.device_code import compiled_code, compiled_rates
from gpuprof.backends.gpu.driver import call, driver, driver_versions, query_device
from gpuprof.backends.gpu.launch_checks import LaunchChecks, verify_again
from gpuprof.backends.gpu.libraries import Libraries, TorchLaunch
from gpuprof.backends.gpu.loaded_case import LoadedCase
from gpuprof.backends.gpu.nvml import DISTURBING, ClockReader, conditions
from gpuprof.backends.gpu.rate_meter import RateMeter, kept_rates
from gpuprof.backends.gpu.timer import EventTimer, L2Flush, Launch
from gpuprof.backends.verification import incorrect, prove
from gpuprof.devices.device import Device
from gpuprof.errors import BackendUnavailable, CaseFailure
from gpuprof.kernels.shape import ConfiguredCase
from gpuprof.machine import compute_in_all_threads
from gpuprof.problems.problem import Problem
from gpuprof.problems.references import Array, HostCall
from gpuprof.records import replace
from gpuprof.results import BackendName, Clocks, Timing, TimingPair, Verification
from gpuprof.statistics import SamplingBudget, fewest_samples, percentile, sample_until, summarise
from gpuprof.toolchain.nvrtc import supported_archs

#: Why it is not known what the device reaches: that is measured behind the cases.
_ENDED_BEFORE = "not measured: the run ended before"
_NO_SPEED = "a wrong kernel gets no speed"


_MOST_HOST_SAMPLES = 50


def time_on_host(compute: HostCall, seconds: float) -> tuple[Array, list[float]]:
    """Compute several times.

    Returns:
        The flat result in storage order, and microseconds of each call.
    """
    result = compute()  # wakes the thread pool
    samples: list[float] = []
    while len(samples) < fewest_samples(max(samples, default=0.0)) or (
        sum(samples) < seconds * 1e6 and len(samples) < _MOST_HOST_SAMPLES
    ):
        start = perf_counter()
        result = compute()
        samples.append(1e6 * (perf_counter() - start))
    return result, samples


#: A warm sample averages enough launches that the events' own cost and resolution (about 1 us) vanish.
_WARM_SAMPLE_US = 100.0
#: Samples of each algorithm that a library proposes.
_TRIALS = 5
#: A rest after them, for no other case comes from under load: at the limit of power clocks fall by a tenth.
_REST_S = 0.1
#: Bytes of each side of the copy that measures the reachable bandwidth; many times any L2 cache.
_COPY_BYTES = 1 << 30
_COPY_SAMPLES = 9
#: Launches that follow each other with nothing between but what changes the outputs. Of a long one there is
#: one, which tells its warm time, and that with its memory as it left it: the L2 cache makes no difference.
_BACK_TO_BACK = 4
#: Samples that tell whether a kernel is faster where it finds its own memory as it left it, what they may
#: take as a part of what cold ones may, and what is faster: this part of the time, and beyond what two events
#: differ by.
_FEW_SAMPLES, _FEW_SHARE = 16, 1 / 16
_MUCH_FASTER = 0.8
#: What warm launches may take of kernel time, as a part of what cold ones may.
_ASIDE = 0.25
#: What one launch may take with inputs that the kernel has not seen, of nearly the slowest with others.
_SLOWER = 1.25
#: Launches that are timed again with inputs that it has seen, where one with others took longer.
_SEEN_AGAIN = 5


class _Tried:
    """What is tried of a case's launches beside its times: once and verified, behind each other, with others.

    `others` are inputs that the kernel has not seen.
    """

    def __init__(
        self,
        context: GpuContext,
        timer: EventTimer,
        arrays: ProblemArrays,
        checks: LaunchChecks,
        launch: Launch,
        launches: int,
    ) -> None:
        self._context, self._timer, self._arrays, self._checks = context, timer, arrays, checks
        self._launch, self._launches = launch, launches
        #: Of the last launch that was verified, by the host's clock.
        self.elapsed_s = 0.0
        self.is_long = False
        self.follow_us: list[float] = []
        self._cold: Timing | None = None
        self._seen_us: list[float] = []

    def verify(self, unread: float | None) -> Verification:
        self._arrays.prepare(unread)
        start = perf_counter()
        if self._checks.restores_always:
            self._checks.restore()
        self._launch()
        self._context.synchronize()
        self.elapsed_s = perf_counter() - start
        self._deliver()
        return self._arrays.verify()

    def _deliver(self) -> None:
        self._checks.deliver()
        self._context.synchronize()  # copies to the host do not wait for the stream

    def timed(self, cold: Timing | None, slow_us: float) -> None:
        """Take the times that what follows is held against."""
        self._cold, self._seen_us = cold, [cold.p95_us] if cold else []
        self.is_long = cold is not None and cold.median_us >= slow_us

    def time_again(self) -> None:
        around = self._checks.around()
        few = min(_SEEN_AGAIN, self._timer.max_batch(self._launches, around))
        again = self._timer.cold(self._launch, few, settle=0, launches=self._launches, around=around)
        # Where others share the card, their slices of time fall into some of these, as below.
        self._seen_us.append(percentile(sorted(again), 0.75))

    def with_others(self) -> str:
        """Time one launch with the others; what is suspicious of its time, else nothing."""
        # Another process may have had the card while the gate was closed: bring the code back.
        around = None
        if not self.is_long:
            stream = self._context.stream
            around = self._arrays.first_before_others(self._launch, self._launches, stream)
        if self._timer.max_batch(self._launches, around) == 1:
            around = None
        (unseen_us,) = self._timer.cold(self._launch, 1, settle=0, launches=self._launches, around=around)
        self._deliver()
        noise_us = 2 * (self._timer.floor_us + self._timer.pair_us)
        if self._cold is None or unseen_us <= _SLOWER * max(self._seen_us) + noise_us:
            return ""
        return (
            f"with inputs that it had not seen it takes {unseen_us:.4g} µs instead of"
            f" {self._cold.median_us:.4g} µs, so it reuses earlier results"
        )

    def follow(self) -> None:
        """Time launches that follow each other."""
        count, around = 1 if self.is_long else _BACK_TO_BACK, self._checks.around(whole=True)
        self.follow_us[:] = self._timer.warm(
            self._launch, count, group=1, launches=self._launches, settle=0, around=around
        )
        self._context.synchronize()


def unmeasured_device(ordinal: int) -> Device:
    """A device as it is known before it is opened."""
    device = query_device(ordinal)
    return replace(device, measured_copy_bandwidth_reason=_ENDED_BEFORE, measured_rates_reason=_ENDED_BEFORE)


class GpuBackend(Backend):
    """One GPU, opened for a run.

    Raises:
        BackendUnavailable: There is no such device, or NVRTC cannot compile for it.
    """

    name: BackendName = "gpu"

    def __init__(
        self,
        ordinal: int,
        seed: int,
        budget: SamplingBudget,
        libraries: tuple[str, ...] = (),
        flush: str = "read",
    ) -> None:
        self._flushes_by = flush
        self._seed = seed
        self._budget = budget
        with timeline.span("context"):
            self.device = unmeasured_device(ordinal)
            self._arch = self.device.arch
            ahead.begin(compiled_code, self._arch, "f32", None)
            ahead.begin(compiled_rates, self._arch)  # wanted last, and takes longest
            self._context = GpuContext(ordinal)
        _check_arch(self.device, ahead.result(supported_archs))
        self.bus_id = self._context.pci_bus_id
        #: Before anything of ours runs, so that a load is somebody else's.
        self.conditions = tuple(conditions(self.bus_id))
        self._clocks = ClockReader(self.bus_id)
        self.assemble = partial(link_ptx, self._context.context)
        self._arrays = ArrayKeeper(self._context, self._arch, seed)
        self._libraries = Libraries(self._context)
        self._measured_libraries = libraries

    @property
    def environment(self) -> Mapping[str, str]:
        """Versions of the driver."""
        return {
            **driver_versions(),
            "driver": self._clocks.driver_version or f"unknown ({self._clocks.reason})",
        }

    @property
    def memory_budget_bytes(self) -> int:
        """Free device memory, with a margin for modules and local memory."""
        return int(self._context.free_bytes() * 0.95)

    def problem_bytes(self, problem: Problem) -> int:
        """Arrays, reference and magnitudes on the device."""
        return ProblemArrays.device_bytes(problem)

    def measured_device(self) -> Device:
        """The device with what a copy and small kernels reach."""
        if self.device.measured_copy_bandwidth_gbps is None:
            with timeline.span("rates"):
                self._flush.writes = False  # what a device reaches is kept for other runs too
                self.device = self._with_measured_rates(self._with_copy_bandwidth(self.device))
                self._flush.writes = self._flushes_by == "write"
        return self.device

    def foresee(self, problems: Sequence[Problem]) -> Mapping[str, str]:
        """Begin to make inputs; versions of the libraries that are measured, and how launches are queued."""
        self._arrays.foresee(problems)
        with timeline.span("libraries"):
            versions = self._libraries.versions(self._measured_libraries)
        gate = self._timer.gate
        return {
            **versions,
            "launch_gate": "stream wait" if gate.available else "none: launch gaps may show",
            "l2_flush": self._flushes_by,
        }

    @cached_property
    def _flush(self) -> L2Flush:
        """Its code is loaded at its first launch, which must not happen behind a closed gate."""
        flush = L2Flush(self._arrays.code("f32"), self.device.l2_bytes, self._context.stream)
        flush.queue()
        self._context.synchronize()
        flush.writes = self._flushes_by == "write"
        return flush

    @cached_property
    def _timer(self) -> EventTimer:
        """The empty kernel's code is loaded at its first launch, too."""
        function, stream = self._arrays.code("f32").load("nothing"), self._context.stream
        timer, arguments = EventTimer(stream, self._flush.queue), Arguments([])

        def empty() -> None:
            function.launch((1, 1, 1), (32, 1, 1), 0, stream, arguments)

        empty()
        self._context.synchronize()
        with timeline.span("calibrate"):
            timer.calibrate(empty)
        return timer

    def _arrays_of(self, problem: Problem) -> ProblemArrays:
        """Those of a problem, behind all that times launches: no kernel runs before that is there."""
        _ = self._timer
        return self._arrays.of(problem)

    def run(self, case: ConfiguredCase, compiled: Functions) -> Findings:
        """Verify one case, then time it cold and warm; several launches are timed as one."""
        arrays = self._arrays_of(case.problem)
        stream = self._context.stream
        with closing(LoadedCase(case, compiled, arrays, self.device, stream)) as loaded:
            checks = LaunchChecks(arrays, self._arrays.code, stream, loaded, self.device)
            with closing(checks):
                poison_inout = case.kernel.poison_inout
                return self._verify_and_time(arrays, checks, loaded.queue, len(loaded), poison_inout)

    def outputs(self, case: ConfiguredCase, compiled: Functions) -> Mapping[str, Array]:
        arrays = self._arrays_of(case.problem)
        with closing(LoadedCase(case, compiled, arrays, self.device, self._context.stream)) as loaded:
            arrays.prepare()
            loaded.queue()
            loaded.deliver()
            self._context.synchronize()
            return arrays.outputs()

    def run_reference(self, name: str, problem: Problem) -> Findings:
        arrays = self._arrays_of(problem)
        reference = next(one for one in problem.operation.references if one.id == name)
        if reference.on_host:
            return self._run_on_host(name, arrays)
        launch = self._fastest(self._libraries.launchers(problem.library_call(name), arrays))
        deliver = launch.deliver if isinstance(launch, TorchLaunch) else None
        checks = LaunchChecks(arrays, self._arrays.code, self._context.stream, deliver=deliver)
        with closing(checks):
            findings = self._verify_and_time(arrays, checks, launch)
        return replace(findings, counters_reason="a library's kernels are not counted")

    def _fastest(self, launchers: Sequence[Launch]) -> Launch:
        """Of launchers that compute the same, the one that takes the least; no result of them is kept."""
        if len(launchers) == 1:
            return launchers[0]
        start = perf_counter()
        times = [self._cold_us(launch, _TRIALS, settle=1) for launch in launchers]
        sleep(min(perf_counter() - start, _REST_S))
        return launchers[times.index(min(times))]

    def _cold_us(self, launch: Launch, samples: int, *, settle: int) -> float:
        """The median of some cold samples; the first launch, which loads code, is none of them."""
        launch()
        self._context.synchronize()
        self._timer.reset()
        return percentile(sorted(self._timer.cold(launch, samples, settle=settle)), 0.5)

    def _run_on_host(self, name: str, arrays: ProblemArrays) -> Findings:
        problem = arrays.problem
        compute_in_all_threads()
        compute = problem.host_call(name, problem.inputs(self._seed))
        result, samples = time_on_host(compute, self._budget.seconds)
        arrays.prepare()
        arrays.buffer(problem.outputs[0].name).upload(result)
        verification = arrays.verify()
        no_cache = "the CPU's caches are not the GPU's"
        return Findings(
            "ok" if verification.passed else "incorrect",
            reason=verification.detail or None,
            verification=verification,
            timing=TimingPair(summarise(samples), None),
            event_floor_reason="timed by the host's clock",
            clocks_reason=no_cache,
            counters_reason=no_cache,
        )

    def _verify_and_time(
        self,
        arrays: ProblemArrays,
        checks: LaunchChecks,
        launch: Launch,
        launches: int = 1,
        poison_inout: bool = True,
    ) -> Findings:
        tried = _Tried(self._context, self._timer, arrays, checks, launch, launches)
        arrays.begin_others()
        with timeline.span("verify"):
            proof = prove(arrays.problem, poison_inout, tried.verify)
        verification = proof.verification
        if not verification.passed:
            return incorrect(verification, _NO_SPEED, later=False)
        before = self._clocks.read()
        self._timer.reset()
        with timeline.span("time"):
            timing, faster = self._time(launch, launches, 1e6 * tried.elapsed_s, checks)
        after = self._clocks.read()
        tried.timed(timing.cold, self._budget.slow_us)
        with timeline.span("verify again"):
            anew = partial(tried.verify, proof.unread)
            again, untried = verify_again(
                arrays, checks, tried.follow, anew, tried.time_again, tried.with_others
            )
        if tried.is_long and timing.cold is not None and tried.follow_us:
            faster = self._faster_keeping(checks, timing.cold.median_us, tried.follow_us)
            timing = replace(timing, warm=None if faster else summarise(tried.follow_us))
        if self._flush.written_to() and again.passed:
            again = replace(again, detail="the kernel wrote to memory that it was not given", array="")
        if not again.passed:
            return incorrect(again, _NO_SPEED, later=True)
        return Findings(
            "ok",
            remarks=(*proof.remarks, *faster, *self._gaps(), *untried),
            verification=verification,
            timing=timing,
            event_floor_us=self._timer.floor_us,
            event_pair_us=self._timer.pair_us or None,
            clocks=Clocks(before, after) if before and after else None,
            clocks_reason=self._clocks.reason,
            counters_reason="hardware counters were not asked for: add --ncu",
            lines_reason=NOT_COUNTED,
        )

    def _time(
        self, launch: Launch, launches: int, estimate_us: float, checks: LaunchChecks
    ) -> tuple[TimingPair, tuple[str, ...]]:
        """The times, of a long launch only the cold ones, and what to say of them."""
        timer = self._timer
        aside_s = _ASIDE * self._budget.seconds
        most = timer.max_batch(launches, checks.around())
        # The host's clock tells a long launch well enough; a short one is lost in it.
        first, settle = estimate_us, 0 if checks.restores_always else 2
        if first < self._budget.slow_us:
            first = timer.cold(launch, 1, settle=settle // 2, launches=launches, around=checks.around())[0]
        cold_with = partial(timer.cold, launch, settle=settle if first < 1000.0 else 0, launches=launches)

        def take_cold(count: int) -> tuple[list[float], bool]:
            return cold_with(count, around=checks.around()), self._undisturbed()

        cold = sample_until(take_cold, first, self._budget, most)
        estimate, cold_only = cold.median_us, TimingPair(cold, None)
        if estimate >= self._budget.slow_us:
            return cold_only, ()
        if checks.remembers:
            few_s = _FEW_SHARE * self._budget.seconds
            few = max(1, min(most, _FEW_SAMPLES, int(1e6 * few_s / max(estimate, 0.5))))
            keeping = cold_with(few, around=checks.around(keeping=True))
            if faster := self._faster_keeping(checks, estimate, keeping):
                return cold_only, faster
        if checks.restores_always:
            return cold_only, ("Each launch goes on from what it finds: arrays are restored before it",)
        most = timer.max_batch(launches)
        group = max(1, min(most, round(_WARM_SAMPLE_US / max(estimate, 0.5))))

        def take_warm(count: int) -> tuple[list[float], bool]:
            return timer.warm(launch, count, group=group, launches=launches), self._undisturbed()

        # Where a cold launch takes far longer than the cache holds, warm tells little: spend less on it.
        warm_budget = replace(self._budget, seconds=aside_s, long_us=1e6 * aside_s)
        warm = sample_until(take_warm, estimate, warm_budget, most, group)
        return TimingPair(cold, warm), ()

    def _faster_keeping(
        self, checks: LaunchChecks, cold_us: float, keeping_us: Sequence[float]
    ) -> tuple[str, ...]:
        """What to say of a kernel that is faster where it finds its own memory as it left it."""
        kept_us = percentile(sorted(keeping_us), 0.5)
        noise_us = 2 * (self._timer.floor_us + self._timer.pair_us)
        if not checks.remembers or kept_us >= _MUCH_FASTER * cold_us - noise_us:
            return ()
        return (
            f"Launched again without its memory being restored, it takes {kept_us:.4g} µs instead of"
            f" {cold_us:.4g} µs: each timed launch finds it restored, and no time is warm",
        )

    def _gaps(self) -> tuple[str, ...]:
        """What to say of times between whose launches the GPU may have waited for the host."""
        if not self._timer.ungated:
            return ()
        return (
            f"Launch gaps may show: its launches do not wait until all are queued, {self._timer.ungated}",
        )

    def _undisturbed(self) -> bool:
        state = self._clocks.read()
        return state is None or not DISTURBING.intersection(state.throttle_reasons)

    def _with_copy_bandwidth(self, device: Device) -> Device:
        """Measure the reachable bandwidth: a device-to-device copy by the driver, bytes read plus written."""
        nbytes = min(_COPY_BYTES, self._context.free_bytes() // 4)
        try:
            source, target = DeviceBuffer(nbytes), DeviceBuffer(nbytes)
        except CaseFailure as error:
            return replace(device, measured_copy_bandwidth_reason=f"no room for a copy: {error.what}")

        def launch() -> None:
            result = driver().cuMemcpyDtoDAsync(target.address, source.address, nbytes, self._context.stream)
            call("copying on the device", result)

        median_us = self._cold_us(launch, _COPY_SAMPLES, settle=2)
        source.free()
        target.free()
        gbps = 2 * nbytes / median_us / 1e3
        return replace(device, measured_copy_bandwidth_gbps=gbps, measured_copy_bandwidth_reason=None)

    def model_constants(self) -> Iterator[tuple[str, dict[str, float], str]]:
        """Measure what a modelled time needs beside the rates; see `ConstantMeter.measure`."""
        return ConstantMeter(self._context, self.device, self._timer).measure()

    def _with_measured_rates(self, device: Device) -> Device:
        """What small kernels reach on this device, from now or from an earlier run."""

        def measure() -> dict[str, float]:
            code = ahead.result(compiled_rates, self._arch)
            return RateMeter(self._context, device, self._timer, *code).measure()

        identity = f"{self._context.pci_bus_id} {self._clocks.driver_version}"
        try:
            rates = kept_rates(device, identity, measure)
        except CaseFailure as error:
            return replace(device, measured_rates_reason=f"not measured: {error.what}")
        ahead.forget(compiled_rates, self._arch)
        rates["launch_floor_us"] = self._timer.floor_us
        return replace(device, measured_rates=rates, measured_rates_reason=None)


def _check_arch(device: Device, archs: Sequence[int]) -> None:
    major, minor = device.capability
    if 10 * major + minor not in archs:
        raise BackendUnavailable(
            f"This NVRTC cannot compile for {device.name} ({device.arch}); it knows sm_{min(archs)} to"
            f" sm_{max(archs)}.",
            fix="Older GPUs need the cu12 extra, newer ones a newer nvidia-cuda-nvrtc.",
        )
