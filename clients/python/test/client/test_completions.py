"""Whole completions."""

import pytest
from conftest import MIB, ask
from parley import Client, ParleyError, text_of, tool_result, user_text
from parley.v1 import (
    ATTEMPT_OUTCOME_FAILED,
    ATTEMPT_OUTCOME_SERVED,
    ERROR_REASON_UPSTREAM_UNAVAILABLE,
    MODALITY_IMAGE,
    MODALITY_TEXT,
    ROLE_ASSISTANT,
    ROLE_USER,
    CompletionRequest,
    FunctionTool,
    Image,
    Message,
    Part,
    Tool,
    ToolChoice,
)

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x07\0\0\0\x05\x08\2\0\0\0"
"""The beginning of a picture of 7 × 5 pixels."""

WEATHER = Tool(
    function=FunctionTool(
        name="get_weather", parameters_json='{"type":"object","properties":{"city":{"type":"string"}}}'
    )
)


def ask_about(picture: bytes) -> CompletionRequest:
    parts = [Part(text="What is this?"), Part(image=Image(data=picture, media_type="image/png"))]
    return CompletionRequest(model="beta-3-flash", messages=[Message(role=ROLE_USER, parts=parts)])


def test_unary(client: Client):
    completion = client.completions.create(ask())
    assert completion.id.startswith("chatcmpl-")
    assert completion.model == "beta-3-flash"
    assert completion.choices[0].message.role == ROLE_ASSISTANT
    assert '"hi"' in text_of(completion.choices[0].message)
    assert completion.usage.input_tokens > 0
    assert [attempt.outcome for attempt in completion.report.attempts] == [ATTEMPT_OUTCOME_SERVED]


def test_metadata(client: Client):
    completion, metadata = client.completions.create_with_metadata(ask(), request_id="my-call.1")
    assert metadata["x-request-id"] == "my-call.1"
    assert metadata["parley-requested-model"] == metadata["parley-served-model"] == completion.model
    assert metadata["parley-attempts"] == "1"
    stream = client.completions.stream(ask(), request_id="my-call.2")
    assert stream.metadata()["x-request-id"] == "my-call.2"
    assert [chunk.report for chunk in stream][-1].attempts


def test_count(client: Client):
    counted = client.completions.count(ask())
    assert counted.model == "beta-3-flash"
    assert 0 < counted.input_tokens < client.completions.count(ask("hi " * 1000)).input_tokens


def test_image_in(client: Client):
    completion = client.completions.create(ask_about(PNG))
    assert "image/png, 7 × 5 pixels" in text_of(completion.choices[0].message)


def test_image_out(client: Client):
    completion = client.completions.create(ask("Draw", "painter", modalities=[MODALITY_TEXT, MODALITY_IMAGE]))
    [part] = completion.choices[0].message.parts
    assert part.image.media_type == "image/png"
    assert part.image.data == (b"parley" * (6 * MIB // 6 + 1))[: 6 * MIB]


def test_keeps_the_response_limit_of_the_request(client: Client):
    request = ask("Draw", "painter", modalities=[MODALITY_TEXT, MODALITY_IMAGE], max_response_bytes=4 * MIB)
    with pytest.raises(ParleyError) as refused:
        client.completions.create(request)
    assert refused.value.reason == "RESPONSE_TOO_LARGE"


def test_does_not_change_the_request(client: Client):
    request = ask()
    client.completions.create(request)
    assert request == ask()


def test_large_request(client: Client):
    completion = client.completions.create(ask_about(PNG + bytes(6 * MIB)))
    assert f"{len(PNG) + 6 * MIB} bytes" in text_of(completion.choices[0].message)


@pytest.mark.parametrize("model", ["beta-3-flash", "alpha-haiku-4.5"])
def test_tool_round_trip(client: Client, model: str):
    messages = [user_text("What about Oslo?")]
    choice = ToolChoice(function="get_weather")
    asked = client.completions.create(
        CompletionRequest(model=model, messages=messages, tools=[WEATHER], tool_choice=choice)
    )
    answer = asked.choices[0].message
    [call] = [part.tool_call for part in answer.parts if part.HasField("tool_call")]
    assert (call.name, call.arguments_json) == ("get_weather", '{"city":"example city"}')
    messages += [answer, tool_result(call, "14 degrees")]
    told = client.completions.create(CompletionRequest(model=model, messages=messages, tools=[WEATHER]))
    assert "14 degrees" in text_of(told.choices[0].message)


def test_fallback(client: Client):
    completion, metadata = client.completions.create_with_metadata(ask(model="overloaded", fallback_models=["spare"]))
    assert completion.model == metadata["parley-served-model"] == "spare"
    assert text_of(completion.choices[0].message) == "From the spare model."
    failed, served = completion.report.attempts
    assert (failed.outcome, failed.failure_reason) == (ATTEMPT_OUTCOME_FAILED, ERROR_REASON_UPSTREAM_UNAVAILABLE)
    assert served.outcome == ATTEMPT_OUTCOME_SERVED
