from __future__ import annotations

from typing import Any

import pytest
from recipe_build import make_recipe

from prompts_agent.errors import HardwareError
from prompts_agent.hardware.topology import parse_topology
from prompts_agent.knowledge.query import Query, matched, unmet
from prompts_agent.knowledge.vocabulary import Architecture, FindingKind
from prompts_agent.layout.mesh import Axis
from prompts_agent.model.catalog import find_model
from prompts_agent.workload.workload import Objective, Phase, Workload


def query(**changed: Any) -> Query:
    known: dict[str, Any] = {
        "phase": "pretrain",
        "chip": "v5p",
        "architecture": ("dense", "kv_heads"),
        "findings": ("exposed_collective",),
        "axes": ("tensor",),
        "devices": 64,
        "sequence": 4096,
    }
    return Query.model_validate({**known, **changed})


@pytest.mark.parametrize(
    ("recipe", "asked", "expected"),
    [
        ({}, {}, ()),
        ({"phases": ["decode"]}, {}, ("phase",)),
        ({}, {"phase": None}, ("phase",)),
        ({"phases": ["pretrain", "posttrain", "prefill", "decode", "serve"]}, {"phase": None}, ()),
        ({"chips": ["v5p"]}, {}, ()),
        ({"chips": ["tpu"]}, {}, ()),
        ({"chips": ["gpu", "v5e"]}, {}, ("chip",)),
        ({"chips": ["tpu"]}, {"chip": None}, ("chip",)),
        ({"chips": ["gpu"]}, {"chip": "NVIDIA H100 80GB HBM3"}, ()),
        ({"architectures": ["moe"]}, {}, ("architecture",)),
        ({"architectures": ["moe", "kv_heads"]}, {}, ()),
        ({"architectures": ["moe"]}, {"architecture": ("moe", "mla")}, ()),
        ({"architectures": ["dense"]}, {"architecture": ()}, ("architecture",)),
        ({"min_devices": 64, "max_devices": 64}, {}, ()),
        ({"min_devices": 65}, {}, ("devices",)),
        ({"max_devices": 63}, {}, ("devices",)),
        ({"min_devices": 2}, {"devices": None}, ("devices",)),
        ({"min_sequence": 8192}, {}, ("sequence",)),
        ({"max_sequence": 4096}, {}, ()),
        ({"objectives": ["latency"]}, {}, ("objective",)),
        ({"objectives": ["latency"]}, {"objective": "latency"}, ()),
        ({"findings": ["straggler"]}, {}, ("findings",)),
        ({"axes": ["tensor"]}, {}, ()),
        ({"axes": ["fsdp"]}, {}, ("axes",)),
        ({"axes": ["fsdp"]}, {"axes": ()}, ()),
        # It treats another finding of the job, for which the axis is of no account.
        (
            {"axes": ["fsdp"], "findings": ["exposed_collective", "straggler"]},
            {"findings": ("exposed_collective", "straggler")},
            (),
        ),
        # Nothing was measured: only what moves the layout.
        ({"sharding": True}, {"findings": ()}, ()),
        ({"sharding": False, "changes": []}, {"findings": ()}, ("findings",)),
        ({"phases": ["decode"], "chips": ["gpu"]}, {}, ("phase", "chip")),
    ],
)
def test_a_recipe_applies_only_if_all_it_states_holds(
    recipe: dict[str, Any],
    asked: dict[str, Any],
    expected: tuple[str, ...],
) -> None:
    assert unmet(make_recipe(**recipe), query(**asked)) == expected


def test_matched_findings_keep_the_order_of_the_query() -> None:
    recipe = make_recipe(findings=["straggler", "exposed_collective"])
    asked = query(findings=("none", "exposed_collective", "straggler", "exposed_collective"))
    assert matched(recipe, asked) == (FindingKind.EXPOSED_COLLECTIVE, FindingKind.STRAGGLER)


def test_a_chip_is_known_by_any_of_its_names() -> None:
    assert query(chip="TPU v5 lite").chip == "v5e"
    with pytest.raises(HardwareError, match="no such chip is known"):
        query(chip="v99")


def test_a_workload_says_what_is_known() -> None:
    workload = Workload(
        name="w",
        model=find_model("deepseek-v3"),
        topology=parse_topology("v5p:4x4x4"),
        phase=Phase.PRETRAIN,
        global_batch=256,
        sequence=4096,
        objective=Objective.LATENCY,
    )
    asked = Query.of(workload, (FindingKind.STRAGGLER,), (Axis.FSDP,), "slow")
    assert asked == Query(
        phase=Phase.PRETRAIN,
        chip="v5p",
        architecture=(Architecture.MOE, Architecture.MLA),
        findings=(FindingKind.STRAGGLER,),
        axes=(Axis.FSDP,),
        devices=64,
        sequence=4096,
        objective=Objective.LATENCY,
        text="slow",
    )
