"""What a trace holds, what it lacks, and how to capture it so that it holds more."""

from __future__ import annotations

from collections.abc import Iterator

from prompts_agent.record import Record
from prompts_agent.trace.profile import Profile, TraceFile
from prompts_agent.trace.sniff import TraceFormat
from prompts_agent.units import format_bytes, format_seconds

__all__ = ["Advice", "Examination", "examine"]

ENOUGH_STEPS = 3
"""Below this the first and last step, which may be cut off, leave none in between."""

LARGE_BYTES = 500_000_000

_JAX_STEPS = """\
options = jax.profiler.ProfileOptions()
options.python_tracer_level = 0
options.host_tracer_level = 1
jax.profiler.start_trace(log_dir, profiler_options=options)
for _ in range(5):
    state = step(state, next(batches))
jax.block_until_ready(state)
jax.profiler.stop_trace()"""

_TORCH_STEPS = """\
schedule = torch.profiler.schedule(wait=5, warmup=2, active=5)
with torch.profiler.profile(
    schedule=schedule,
    on_trace_ready=torch.profiler.tensorboard_trace_handler(log_dir, use_gzip=True),
    profile_memory=True,
) as profiler:
    for batch in batches:
        step(batch)
        profiler.step()"""

_NSYS_STEPS = """\
nsys profile --trace=cuda,nvtx --capture-range=cudaProfilerApi ...
# around five steps: torch.cuda.profiler.start(), one NVTX range "step" each, .stop()
nsys export --type sqlite report.nsys-rep"""


class Advice(Record):
    """One change to the next capture."""

    what: str
    why: str
    how: str
    """Code, a flag or a command."""


class Examination(Record):
    """The doctor's sheet of one trace."""

    file: TraceFile
    holds: tuple[str, ...]
    lacks: tuple[str, ...]
    advice: tuple[Advice, ...]


def examine(profile: Profile, file: TraceFile) -> Examination:
    """Lists what `profile` could and could not say, and what to change in the next capture.

    `file` is the `file` of the Capture that was measured. Advice comes in the order of its worth.
    """
    return Examination(
        file=file,
        holds=tuple(_holds(profile)),
        lacks=profile.missing,
        advice=tuple(_advice(profile, file)),
    )


def _holds(profile: Profile) -> Iterator[str]:
    job = f" of {profile.devices_in_job}" if profile.devices_in_job else ""
    if profile.devices_in_trace:
        yield (
            f"{profile.devices_in_trace}{job} devices on {profile.hosts} hosts "
            f"({profile.device_label})"
        )
    if profile.step is not None:
        step = profile.step
        yield f"step time {format_seconds(step.median_s)}: {step.derived_from}"
    if profile.mesh:
        axes = ", ".join(f"{axis.name}={axis.size}" for axis in profile.mesh)
        yield f"mesh {axes}" + (f": {profile.mesh_source}" if profile.mesh_source else "")
    if profile.collectives:
        sized = sum(use.bytes is not None for use in profile.collectives)
        yield f"{len(profile.collectives)} kinds of collectives, {sized} with their sizes"
    if profile.programs:
        with_hlo = sum(program.has_hlo for program in profile.programs)
        yield f"{len(profile.programs)} programs, {with_hlo} with their HLO"
    if profile.parameters:
        yield f"{len(profile.parameters)} parameters with shapes and shardings"
    if profile.hbm_peak_bytes is not None:
        yield f"peak memory {format_bytes(profile.hbm_peak_bytes)}"


def _advice(profile: Profile, file: TraceFile) -> Iterator[Advice]:
    yield from _about_devices(profile, file)
    yield from _about_steps(profile, file)
    yield from _about_programs(profile, file)
    yield from _about_job(profile, file)
    yield from _about_size(file)


def _says(profile: Profile, file: TraceFile, *words: str) -> bool:
    """Whether anything that the reader or the measurements remarked contains one of `words`."""
    remarks = " ".join((*profile.missing, *file.caveats)).lower()
    return any(word.lower() in remarks for word in words)


def _about_devices(profile: Profile, file: TraceFile) -> Iterator[Advice]:
    if profile.structure_only and file.format != TraceFormat.HLO_TEXT:
        yield Advice(
            what="Capture on the real devices",
            why="Times of virtual CPU devices say nothing about a TPU or GPU; only mesh, "
            "collectives and shapes were used.",
            how=_JAX_STEPS,
        )
    if _says(profile, file, "CUPTI", "INSUFFICIENT_PRIVILEGES"):
        yield Advice(
            what="Let the profiler use the GPU's counters",
            why="CUPTI refused (CUPTI_ERROR_INSUFFICIENT_PRIVILEGES), or another profiler held "
            "it: it has one subscriber.",
            how="options nvidia NVreg_RestrictProfilingToAdminUsers=0   # /etc/modprobe.d, reboot\n"
            "docker run --cap-add=SYS_ADMIN ...                     # or in a container\n"
            "and stop nsys, DCGM and JAX's profile-guided optimisation during the capture",
        )
    elif profile.devices_in_trace == 0 and not profile.structure_only:
        yield Advice(
            what="Capture while the devices work",
            why="The trace holds no device events: the work ended before the capture began, or "
            "the capture was so long that the device's buffer was dropped.",
            how=_steps_for(file) + "\n# options.raise_error_on_start_failure = True tells why",
        )
    if _says(profile, file, "command buffer", "hlo_op"):
        yield Advice(
            what="Switch command buffers off for one capture",
            why="Kernels in a command buffer do not say which HLO op they belong to.",
            how="XLA_FLAGS=--xla_gpu_enable_command_buffer=",
        )


def _steps_for(file: TraceFile) -> str:
    if file.format == TraceFormat.KINETO:
        return _TORCH_STEPS
    return _NSYS_STEPS if file.format == TraceFormat.NSIGHT else _JAX_STEPS


def _about_steps(profile: Profile, file: TraceFile) -> Iterator[Advice]:
    if file.format == TraceFormat.HLO_TEXT:
        yield Advice(
            what="Capture a run of this program",
            why="A compiled program shows structure; what it waits for shows only when it runs.",
            how=_JAX_STEPS,
        )
    elif profile.step is None:
        yield Advice(
            what="Capture 2 to 5 whole steps",
            why="No step could be told apart, so nothing can be given per step.",
            how=_steps_for(file),
        )
    elif profile.step.count < ENOUGH_STEPS:
        yield Advice(
            what="Capture 5 steps, and wait for the last inside the traced region",
            why=f"Only {profile.step.count} whole steps were measured; work that is still queued "
            "when the trace stops is cut off.",
            how=_steps_for(file),
        )
    if profile.recompilations:
        yield Advice(
            what="Run two steps before the capture",
            why=f"The program was compiled {profile.recompilations} times inside the trace.",
            how="step(state, batch); jax.block_until_ready(...)   # then start_trace",
        )


def _about_programs(profile: Profile, file: TraceFile) -> Iterator[Advice]:
    if file.format == TraceFormat.CHROME:
        yield Advice(
            what="Give the *.xplane.pb of the same capture",
            why="The JSON holds neither device kind, peaks, memory nor programs.",
            how="prompts diagnose LOG_DIR   # plugins/profile/<run>/<host>.xplane.pb",
        )
    elif file.format == TraceFormat.XSPACE and any(not p.has_hlo for p in profile.programs):
        yield Advice(
            what="Keep the HLO of the programs",
            why="Shapes, shardings and replica groups come from it. A CPU compilation during "
            "the capture drops the protos of the TPU's programs.",
            how="options.enable_hlo_proto = True   # jax.profiler.ProfileOptions, the default\n"
            "XLA_FLAGS=--xla_dump_to=DIR          # or dump it beside",
        )
    unsized = any(use.bytes is None for use in profile.collectives)
    if unsized and file.format == TraceFormat.KINETO:
        yield Advice(
            what="Profile with PyTorch 2.4 or later, after init_process_group",
            why="Sizes and ranks of collectives are written since then, for NCCL's kernels.",
            how="torch.profiler.profile(activities=[CPU, CUDA], record_shapes=True)",
        )
    elif unsized and file.format == TraceFormat.NSIGHT:
        yield Advice(
            what="Add a profile of torch.profiler or jax.profiler",
            why="Nsight's export has sizes and groups of NCCL calls in NVTX payloads only.",
            how=_TORCH_STEPS,
        )


def _about_job(profile: Profile, file: TraceFile) -> Iterator[Advice]:
    job = profile.devices_in_job
    if job is not None and 0 < profile.devices_in_trace < job:
        yield Advice(
            what="Capture on every host at the same steps",
            why=f"{profile.devices_in_trace} of {job} devices are in the trace; a straggler among "
            "the others looks like slow communication here.",
            how="Call start_trace and stop_trace in every process, with one log directory.",
        )
    if profile.hbm_peak_bytes is None and profile.devices_in_trace:
        how = (
            "torch.profiler.profile(profile_memory=True)"
            if file.format == TraceFormat.KINETO
            else "print(jitted.lower(...).compile().memory_analysis())"
        )
        yield Advice(
            what="Record memory",
            why="Without its peak a layout is known to fit only by estimate.",
            how=how,
        )


def _about_size(file: TraceFile) -> Iterator[Advice]:
    cut = any("1,000,000" in caveat and "cut" in caveat for caveat in file.caveats)
    if cut or file.size_bytes > LARGE_BYTES:
        yield Advice(
            what="Capture less: fewer steps, no Python stacks",
            why="The trace is cut or large, and most of it is the host's: stopping such a "
            "capture takes minutes and can take the job down.",
            how="options.python_tracer_level = 0; options.host_tracer_level = 1",
        )
