"""Failures that users of profilers reported, one test each, with the report's name.

The second part holds what was measured with damaged files, where other tools answer with zeros,
with nothing, or with yesterday's numbers.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest
from trace_samples import (
    ALL_REDUCE,
    GEMM,
    HLO_TEXT,
    chrome,
    chrome_event,
    chrome_names,
    copy,
    field,
    host,
    kernel,
    kineto,
    save,
    three_steps,
    xplane,
    xspace,
)

from prompts_agent.errors import (
    DamagedTraceError,
    EmptyTraceError,
    NotDiagnosableError,
    TraceError,
    TraceNotFoundError,
    WrongFormatError,
)
from prompts_agent.trace import events as events_module
from prompts_agent.trace import unpack as unpack_module
from prompts_agent.trace.discover import discover
from prompts_agent.trace.doctor import examine
from prompts_agent.trace.measure.profile import measure
from prompts_agent.trace.profile import Profile
from prompts_agent.trace.read import profile, read
from prompts_agent.trace.sniff import TraceFormat


def advice_of(path: Path) -> str:
    """All that the doctor says about a trace, as one text."""
    capture = read([path])
    sheet = examine(measure(capture), capture.file)
    return "\n".join(f"{item.what}: {item.why} {item.how}" for item in sheet.advice)


def step_s(measured: Profile) -> float:
    assert measured.step is not None
    return measured.step.median_s


# ---- reported by users


def test_no_step_markers_steps_come_from_program_runs(tmp_path: Path) -> None:
    """openxla/xprof#578, #571, #366: step time 0."""
    measured = profile([save(tmp_path / "vm.trace.json", chrome(steps=5))])
    assert step_s(measured) == pytest.approx(100e-6)
    assert measured.step is not None
    assert measured.step.program == "jit_step"
    assert measured.step.derived_from


def test_virtual_cpu_devices_give_structure_only(tmp_path: Path) -> None:
    """openxla/xprof#282: step time 0 on CPU. A compiled program alone is structure as well."""
    path = tmp_path / "step.txt"
    path.write_text(HLO_TEXT)
    measured = profile([path])
    assert measured.structure_only
    assert measured.step is None
    assert [axis.size for axis in measured.mesh] == [2]
    assert "Capture a run" in advice_of(path)


def test_command_buffers_fall_back_to_kernel_names(tmp_path: Path) -> None:
    """openxla/xprof#3070: kernels in command buffers lack their HLO op."""
    names = chrome_names(1, "GPU")
    work = [chrome_event(3, 3, f"kernel_{k % 2}", 10 * k, 5) for k in range(8)]
    path = save(tmp_path / "vm.trace.json", {"traceEvents": names + work})
    assert {op.name for op in profile([path]).top_ops} == {"kernel_0", "kernel_1"}
    assert "--xla_gpu_enable_command_buffer=" in advice_of(path)


def test_programs_without_their_proto_are_read_from_event_names(tmp_path: Path) -> None:
    """jax-ml/jax#37533: a CPU compilation drops the protos of TPU programs."""
    measured = profile([save(tmp_path / "vm.trace.json", chrome(devices=4, steps=5))])
    assert [(program.name, program.has_hlo) for program in measured.programs] == [
        ("jit_step", False)
    ]
    (use,) = measured.collectives
    assert (use.kind, use.group_size, use.bytes, use.count) == ("all-reduce", 4, 2048, 1)


def test_a_long_capture_without_device_events_says_what_to_do(tmp_path: Path) -> None:
    """jax-ml/jax#23446: a long capture holds host events only."""
    only_host = [*chrome_names(2), chrome_event(701, 1, "f", 0, 60e6)]
    with pytest.raises(NotDiagnosableError, match="2 to 5 steps"):
        read([save(tmp_path / "vm.trace.json", {"traceEvents": only_host})])


def test_json_cut_at_a_million_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """jax-ml/jax#21295, openxla/xla#21885: the converter stops in silence."""
    monkeypatch.setattr(events_module, "_NEAR_LIMIT", 10)
    path = save(tmp_path / "vm.trace.json", chrome())
    capture = read([path])
    assert any("it is probably cut" in caveat for caveat in capture.file.caveats)
    assert "fewer steps" in advice_of(path)
    save(tmp_path / "vm.xplane.pb", xspace())
    assert discover([path]).format is TraceFormat.XSPACE


def test_launches_without_kernels_are_a_refused_profiler(tmp_path: Path) -> None:
    """jax-ml/jax#13477: GPU rows without kernels."""
    launches = [host("cudaLaunchKernel", k, 1, cat="cuda_runtime") for k in range(30)]
    with pytest.raises(NotDiagnosableError) as caught:
        read([save(tmp_path / "r.json", kineto(launches))])
    assert "launched 30 kernels, but no kernel was recorded" in caught.value.value


def test_insufficient_privileges_are_named_as_the_cause(tmp_path: Path) -> None:
    """openxla/xprof#24: GPU planes stay empty."""
    empty = field(1, field(1, 1) + field(2, b"/device:GPU:0"))
    error = field(2, b"CUPTI_ERROR_INSUFFICIENT_PRIVILEGES")
    path = tmp_path / "vm.xplane.pb"
    path.write_bytes(empty + error)
    with pytest.raises(NotDiagnosableError, match="INSUFFICIENT_PRIVILEGES"):
        read([path])


def test_another_subscriber_of_cupti_is_named_as_the_cause(tmp_path: Path) -> None:
    """marin-community/marin#8052: CUPTI has one subscriber."""
    launches = [host("cudaLaunchKernel", 0, 1, cat="cuda_runtime")]
    with pytest.raises(NotDiagnosableError, match="one subscriber"):
        read([save(tmp_path / "r.json", kineto(launches))])


def test_gpus_and_tpus_are_both_measured(tmp_path: Path) -> None:
    """marin-community/marin#3345: an analyser that knows TPU lines only."""
    on_gpu = profile([save(tmp_path / "r.json", kineto(three_steps()))])
    on_tpu = profile([save(tmp_path / "vm.trace.json", chrome(steps=5))])
    for measured in (on_gpu, on_tpu):
        assert step_s(measured) == pytest.approx(100e-6)
        assert [use.kind for use in measured.collectives] == ["all-reduce"]
    # By hand, see three_steps: 10 of the 30 µs are under no kernel.
    (use,) = on_gpu.collectives
    assert use.total_s == pytest.approx(30e-6)
    assert use.exposed_s == pytest.approx(10e-6)
    # On the op line of a TPU a synchronous all-reduce is exposed as a whole.
    (use,) = on_tpu.collectives
    assert use.exposed_s == use.total_s == pytest.approx(30e-6)


def test_several_hosts_are_read_and_kept_apart(tmp_path: Path) -> None:
    """marin-community/marin#5617: several hosts in one directory."""
    for name in ("vm0", "vm1"):
        save(tmp_path / "run" / f"{name}.xplane.pb", xspace(2))
    capture = read([tmp_path])
    assert [(device.host, device.index) for device in capture.devices] == [
        ("vm0", 0),
        ("vm0", 1),
        ("vm1", 0),
        ("vm1", 1),
    ]
    assert profile([tmp_path]).hosts == 2


def test_memory_is_estimated_before_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """marin-community/marin#7590: killed for want of memory."""
    monkeypatch.setattr(unpack_module, "_physical_memory_bytes", lambda: 1000)
    with pytest.raises(TraceError, match="of memory"):
        read([save(tmp_path / "r.json", kineto(three_steps()))])


def test_a_large_capture_is_advised_to_be_smaller(tmp_path: Path) -> None:
    """marin-community/marin#5528: stop_trace takes minutes."""
    capture = read([save(tmp_path / "r.json", kineto(three_steps()))])
    large = capture.file.model_copy(update={"size_bytes": 900_000_000})
    sheet = examine(measure(capture), large)
    assert any("python_tracer_level = 0" in item.how for item in sheet.advice)


def test_a_file_whose_writer_crashed_is_salvaged(tmp_path: Path) -> None:
    """jax-ml/jax#40260: a segmentation fault in stop_trace."""
    path = tmp_path / "vm.xplane.pb"
    path.write_bytes(xspace(4)[:-100])
    capture = read([path])
    assert len(capture.devices) >= 3
    assert capture.file.caveats


def test_zero_flops_of_a_custom_call_are_unknown(tmp_path: Path) -> None:
    """openxla/xprof#1712: wrong utilisation. A count that the trace does not have is no count."""
    names = chrome_names(1)
    text = '%c = f32[8]{0} custom-call(f32[8]{0} %p), custom_call_target="tpu_custom_call"'
    call = chrome_event(3, 1, "c", 0, 5, long_name=text, model_flops="0")
    run = chrome_event(3, 0, "jit_f(1)", 0, 5)
    capture = read([save(tmp_path / "vm.trace.json", {"traceEvents": [*names, run, call]})])
    assert [op.flops for op in capture.events(capture.devices[0]).table] == [None]


def test_reading_needs_neither_xprof_nor_tensorflow_nor_jax(tmp_path: Path) -> None:
    """openxla/xprof#1846, #609, #1284: conflicts of protobuf versions on import."""
    save(tmp_path / "r.json", kineto(three_steps()))
    save(tmp_path / "vm.xplane.pb", xspace())
    code = (
        "import sys; from prompts_agent.trace.read import read; read(['r.json']);"
        "assert 'google.protobuf' not in sys.modules; read(['vm.xplane.pb'], deep=True);"
        "bad = {'xprof', 'tensorflow', 'jax', 'chromadb', 'langgraph'} & set(sys.modules);"
        "sys.exit(str(bad) if bad else 0)"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_any_directory_will_do_and_an_empty_one_says_what_it_holds(tmp_path: Path) -> None:
    """openxla/xprof#627, #602, #839, jax-ml/jax#13009: "no profile data"."""
    save(tmp_path / "good" / "vm.xplane.pb", xspace())
    assert read([tmp_path / "good"]).devices
    save(tmp_path / "bad" / "notes.txt", b"nothing here\n")
    with pytest.raises(TraceNotFoundError, match=r"1 × \.txt"):
        read([tmp_path / "bad"])


@pytest.mark.parametrize("url", ["gs://bucket/run", "s3://bucket/run"])
def test_object_stores_get_the_copy_command(url: str) -> None:
    """openxla/xprof#372, #499, jax-ml/jax#19263."""
    with pytest.raises(TraceError, match=f"Copy it first: .* {url}"):
        read([url])


def test_missing_memory_is_unknown_and_has_a_cure(tmp_path: Path) -> None:
    """jax-ml/jax#22890: no memory profile in some versions."""
    path = save(tmp_path / "r.json", kineto(three_steps()))
    assert profile([path]).hbm_peak_bytes is None
    assert "profile_memory=True" in advice_of(path)


def test_a_trailing_empty_event_is_passed_over(tmp_path: Path) -> None:
    """google/perfetto#6251: the JSON ends with `{}`."""
    document = chrome()
    assert document["traceEvents"][-1] == {}
    assert read([save(tmp_path / "vm.trace.json", document)]).file.caveats == ()


def test_invalid_json_of_kineto_is_mended(tmp_path: Path) -> None:
    """pytorch/kineto#336, pytorch/pytorch#136180: bare escapes and control bytes."""
    bad = (
        b'{"schemaVersion": 1, "traceEvents": [{"ph":"X","cat":"kernel","name":"a\\(b\x01","pid":0'
    )
    capture = read([save(tmp_path / "r.json", bad + b',"tid":1,"ts":1,"dur":2}]}')])
    assert any("invalid JSON" in caveat for caveat in capture.file.caveats)


def test_rank_from_the_file_name_and_steps_from_repetition(tmp_path: Path) -> None:
    """pytorch/kineto#974, HolisticTraceAnalysis#107, #238: no rank, no ProfilerStep."""
    events = [kernel(GEMM, 100 * k, 40) for k in range(5)]
    same = [save(tmp_path / f"job_rank{rank}.json", kineto(events, rank=None)) for rank in (4, 5)]
    capture = read(same)
    assert [device.host for device in capture.devices] == ["job_rank4", "job_rank5"]
    assert step_s(measure(capture)) == pytest.approx(100e-6)
    twice = save(tmp_path / "again" / "copy_of_rank4.json", kineto(events, rank=None))
    with pytest.raises(TraceError, match="rank 4 occurs twice"):
        read([same[0], twice])


def test_json_of_gigabytes_is_refused_with_a_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pytorch/kineto#595: 2.2 GB of JSON."""
    path = save(tmp_path / "r.json.gz", kineto(three_steps()))
    monkeypatch.setattr(unpack_module.read_json_bytes, "__kwdefaults__", {"limit_bytes": 500})
    with pytest.raises(TraceError, match="with_stack=False"):
        read([path])


def test_amd_gpus_without_name_and_copies_without_kind(tmp_path: Path) -> None:
    """openxla/xprof#3163, ROCm/xla#1106."""
    document = kineto([kernel(GEMM, 0, 5), copy("Memcpy Unknown (Unknown -> Unknown)", 6, 1)])
    document["deviceProperties"] = [
        {"id": 0, "name": "", "computeMajor": 9, "computeMinor": 4, "warpSize": 64}
    ]
    capture = read([save(tmp_path / "r.json", document)])
    assert capture.devices[0].label == "AMD gfx942"
    opcodes = [op.opcode for op in capture.events(capture.devices[0]).table]
    assert opcodes == ["kernel", "memcpy-unknown"]


def test_fewer_devices_in_the_trace_than_in_the_job(tmp_path: Path) -> None:
    """openxla/xprof#389, pytorch/xla#3965: planes missing."""
    document = chrome(devices=2, steps=5)
    for event in document["traceEvents"]:
        text = event.get("args", {}).get("long_name", "")
        if "all-reduce" in text:
            event["args"]["long_name"] = text.replace("[1,2]<=[2]", "[2,4]<=[8]")
    path = save(tmp_path / "vm.trace.json", document)
    measured = profile([path])
    assert (measured.devices_in_trace, measured.devices_in_job) == (2, 8)
    assert "2 of 8 devices" in advice_of(path)


# ---- measured with damaged files


@pytest.mark.parametrize("keep", [0.55, -100], ids=["half", "all but 100 bytes"])
def test_a_truncated_xspace_gives_its_whole_planes_and_a_warning(
    tmp_path: Path, keep: float
) -> None:
    data = xspace(4)
    path = tmp_path / "vm.xplane.pb"
    path.write_bytes(data[: int(len(data) * keep)] if keep > 0 else data[: int(keep)])
    capture = read([path], deep=True)
    assert capture.devices
    assert any("cut" in caveat for caveat in capture.file.caveats)


def test_an_empty_file_is_an_error_and_no_page_of_zeros(tmp_path: Path) -> None:
    path = tmp_path / "vm.xplane.pb"
    path.touch()
    with pytest.raises(EmptyTraceError):
        read([path])


def test_a_compressed_xspace_is_decompressed_in_private(tmp_path: Path) -> None:
    path = tmp_path / "vm.xplane.pb"
    path.write_bytes(gzip.compress(xspace(2)))
    capture = read([path], deep=True)
    assert len(capture.devices) == 2
    assert [entry.name for entry in tmp_path.iterdir()] == ["vm.xplane.pb"]


def test_a_text_mode_copy_cannot_be_repaired(tmp_path: Path) -> None:
    path = tmp_path / "vm.xplane.pb"
    path.write_bytes(xspace(4).decode("utf-8", "replace").encode())
    with pytest.raises(DamagedTraceError, match="cannot be repaired"):
        read([path])


def test_a_git_lfs_pointer(tmp_path: Path) -> None:
    path = tmp_path / "vm.xplane.pb"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")
    with pytest.raises(WrongFormatError, match="git lfs pull"):
        read([path])


def test_renamed_files_are_told_by_their_content(tmp_path: Path) -> None:
    json = tmp_path / "vm.xplane.pb"
    json.write_bytes(gzip.compress(save(tmp_path / "x.json", chrome()).read_bytes()))
    assert read([json]).file.format == "chrome"
    module = field(1, b"jit_f") + field(2, b"main") + field(3, field(1, b"main"))
    hlo = save(tmp_path / "other.xplane.pb", field(1, module))
    with pytest.raises(WrongFormatError, match="compiled program"):
        read([hlo])


def test_two_xspaces_in_one_file_are_not_one(tmp_path: Path) -> None:
    path = tmp_path / "vm.xplane.pb"
    path.write_bytes(xspace(2, 5) + xspace(2, 6))
    with pytest.raises(DamagedTraceError, match="two traces were put together"):
        read([path])
    path.write_bytes(xspace(2, 5) * 2)
    capture = read([path])
    assert len(capture.devices) == 2
    assert any("same trace twice" in caveat for caveat in capture.file.caveats)


def test_two_hosts_are_no_obstacle_to_memory(tmp_path: Path) -> None:
    for name in ("vm0", "vm1"):
        save(tmp_path / f"{name}.xplane.pb", xspace())
    assert profile([tmp_path]).hbm_peak_bytes is None


def test_a_replaced_file_gives_new_numbers(tmp_path: Path) -> None:
    path = save(tmp_path / "vm.xplane.pb", xspace(1, 5))
    (tmp_path / "ALL_HOSTS.op_stats_v2.pb").write_bytes(b"stale")
    before = profile([tmp_path])
    path.write_bytes(xspace(2, 9))
    after = profile([tmp_path])
    assert (before.devices_in_trace, after.devices_in_trace) == (1, 2)
    assert xplane(0, 5) != xplane(0, 9)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [
        "ALL_HOSTS.op_stats_v2.pb",
        "vm.xplane.pb",
    ]


def test_the_custom_all_reduce_of_serving_engines_is_communication(tmp_path: Path) -> None:
    """Kernels that are not called nccl are told by a list of names."""
    events = three_steps()
    for event in events:
        if event["name"] == ALL_REDUCE:
            event["name"] = "void vllm::cross_device_reduce_1stage<bf16, 8>(RankData*)"
            event["args"] = {"device": 0}
    measured = profile([save(tmp_path / "r.json", kineto(events))])
    (use,) = measured.collectives
    assert (use.kind, use.bytes, use.group_size) == ("all-reduce", None, None)
    assert use.exposed_s == pytest.approx(10e-6)
