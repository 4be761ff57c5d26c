"""A model that answers well: for each agent a reply made from what the question holds."""

from __future__ import annotations

import json
from typing import Any

from scripted_server import Answer, Body, completion, node_of

Data = dict[str, Any]


def data_of(request: Body) -> Data:
    """The JSON that an agent was given."""
    found: Data = json.loads(request["messages"][1]["content"])
    return found


def answer(request: Body) -> Answer:
    """The reply to any agent's question."""
    node = node_of(request).removeprefix("# ").split(",")[0]
    reply = {"analyst": analyst, "retriever": retriever, "planner": planner, "critic": critic}
    return completion(json.dumps(reply[node](data_of(request))))


def analyst(data: Data) -> Data:
    first = data["causes"][0]
    fact = (first["facts"] or [data["facts"][0]["id"]])[0]
    return {
        "story": [
            {
                "cause": first["id"],
                "text": f"First comes {{cause:{first['id']}}}, and {{fact:{fact}}} shows it.",
            }
        ],
        "capture_next": [{"text": "Capture a few steady steps with the host thread."}],
    }


def retriever(data: Data) -> Data:
    return {
        "queries": [{"words": "overlap gathers with compute", "causes": [], "axes": ["fsdp"]}],
        "evidence": [
            {
                "recipe": recipe["id"],
                "keep": number < 3,
                "reason": f"See {{recipe:{recipe['id']}}}.",
            }
            for number, recipe in enumerate(data["recipes"])
        ],
    }


def planner(data: Data) -> Data:
    devices = data["job"]["devices"]
    return {
        "order": None,
        "cases": [
            {"layout": item["id"], "text": "A step of {term:step_time} in {term:hbm} of memory."}
            for item in data["layouts"]
        ],
        "extra": [extra(fsdp=devices), extra(tensor=64), extra(data=devices)],
    }


def extra(**axes: int) -> Data:
    names = ("data", "fsdp", "tensor", "pipeline", "expert", "context")
    knobs = dict.fromkeys(("microbatch", "gradient_accumulation", "remat"))
    return {name: axes.get(name, 1) for name in names} | knobs | {"reason": "Fewer collectives."}


def critic(data: Data) -> Data:
    return {
        "attacks": [
            {
                "layout": item["id"],
                "kind": "assumption",
                "text": "It assumes that gathers hide under compute.",
                "falsified_by": "A step longer than {term:step_high}.",
                "send_back": False,
            }
            for item in data["layouts"]
        ]
    }
