"""The Open Responses specification: what its own tests ask for, checked against the types generated from its document."""

import json

import httpx
import openresponses_types.types as specification
import pytest
from openresponses_types.types import ResponseResource
from product import ANTHROPIC_MODEL, API_KEY, BASE_URL, GEMINI_MODEL, OPENAI_MODEL
from samples import RED_PIXEL_URL

MODELS = [ANTHROPIC_MODEL, GEMINI_MODEL, OPENAI_MODEL]
TOOL = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather in a town",
    "parameters": {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]},
}


def say(role: str, content: object) -> dict:
    return {"type": "message", "role": role, "content": content}


SCENARIOS = {
    "a text": {"input": [say("user", "Say hello in three words.")]},
    "a system prompt": {"input": [say("system", "Talk like a pirate."), say("user", "Say hello.")]},
    "a tool": {"input": [say("user", "What is the weather in Brest?")], "tools": [TOOL]},
    "a picture": {
        "input": [
            say(
                "user",
                [
                    {"type": "input_text", "text": "What do you see?"},
                    {"type": "input_image", "image_url": RED_PIXEL_URL},
                ],
            )
        ]
    },
    "several turns": {
        "input": [
            say("user", "My name is Alice."),
            say("assistant", "Hello Alice!"),
            say("user", "What is my name?"),
        ]
    },
}

EVENTS = {
    next(iter(kind.model_fields["type"].annotation)).value: kind
    for name, kind in vars(specification).items()
    if name.endswith("StreamingEvent") and "type" in kind.model_fields
}


def post(model: str, scenario: str, *, stream: bool) -> str:
    answer = httpx.post(
        f"{BASE_URL}/responses",
        headers={"authorization": f"Bearer {API_KEY}"},
        json={"model": model, "stream": stream, **SCENARIOS[scenario]},
        timeout=60,
    )
    assert answer.status_code == 200, answer.text
    return answer.text


def check(response: dict, scenario: str) -> None:
    found = ResponseResource.model_validate(response)
    assert found.status == "completed"
    assert found.output
    if scenario == "a tool":
        assert "function_call" in [item["type"] for item in response["output"]]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_whole_response_is_one_of_the_specification(model: str, scenario: str) -> None:
    check(json.loads(post(model, scenario, stream=False)), scenario)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_event_of_a_stream_is_one_of_the_specification(model: str, scenario: str) -> None:
    lines = post(model, scenario, stream=True).splitlines()
    events = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
    for event in events:
        EVENTS[event["type"]].model_validate(event)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert events[-1]["type"] == "response.completed"
    check(events[-1]["response"], scenario)
    types = [event["type"] for event in events]
    if scenario == "a tool":
        assert {
            "response.output_item.added",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.output_item.done",
        } <= set(types)
