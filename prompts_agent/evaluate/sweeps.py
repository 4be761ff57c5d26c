"""The published sweeps of a directory, as workloads with everything that was run of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from prompts_agent.errors import InputError
from prompts_agent.evaluate.sweep import Sweep
from prompts_agent.evaluate.sweep_others import pools, tpu_trials
from prompts_agent.evaluate.sweep_training import amp, bigscience, internevo, nanotron, vtrain
from prompts_agent.evaluate.sweep_workers import decoding_workers

__all__ = ["LEFT_OUT", "read_sweeps"]

_READERS: dict[str, tuple[str, Callable[[Path], Iterable[Sweep]]]] = {
    "nanotron_ultrascale": ("training/sweeps/nanotron_ultrascale.csv", nanotron),
    "vtrain_single": ("training/sweeps/vtrain_single.csv", vtrain),
    "bigscience": ("training/sweeps/bigscience.csv", bigscience),
    "internevo": ("training/sweeps/internevo.csv", internevo),
    "amp_t4_v100": ("training/sweeps/amp_t4_v100.csv", amp),
    "tpu_v6e_autoresearch": ("training/sweeps/tpu_v6e_autoresearch.csv", tpu_trials),
    "fixed_pool_rankings": ("serving/sweeps/fixed_pool_rankings.csv", pools),
    "aic_silicon_sample": ("serving/sweeps/aic_silicon_sample.csv", decoding_workers),
}

LEFT_OUT = {
    "libai_megatron_small": "the GPU is not stated",
    "llm_foundry_mpt": "the global batch may differ between the two runs",
    "mlperf_training": "submitters and rounds differ, and software with them",
    "issues_config_reports": "models without dims, or figures whose batch or code differ",
    "amp_t4_v100, mixed cluster and transgan": "two kinds of GPU, and no language model",
    "bigscience, V100 trials": "models without dims",
}
"""Sweeps of the collection that are not read, and why."""


def read_sweeps(directory: Path) -> list[Sweep]:
    """Every sweep below `directory`, which holds `training/sweeps` or `serving/sweeps` or both.

    The order is that of the readers and of the files. Groups without a row are dropped. Raises
    `InputError` where the directory has no sweep that is known.
    """
    found: list[Sweep] = []
    known = False
    for file, reader in _READERS.values():
        path = directory / file
        if path.is_file():
            known = True
            found += [sweep for sweep in reader(path.parent) if sweep.rows]
    if not known:
        raise InputError(
            str(directory),
            rule="a directory of sweeps holds training/sweeps/*.csv or serving/sweeps/*.csv",
            cure=f"Give the directory above them; files that are read: {', '.join(_READERS)}.",
        )
    return found
