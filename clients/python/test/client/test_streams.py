"""Streamed completions."""

import re

import grpc
import pytest
from conftest import API_KEY, MIB, ask, upstream_calls, wait_for_close
from parley import Accumulator, Client, ParleyError, Stream
from parley.v1 import (
    MODALITY_IMAGE,
    MODALITY_TEXT,
    REASONING_EFFORT_HIGH,
    Completion,
    CompletionChunk,
    CompletionRequest,
    CompletionStart,
    FunctionTool,
    ReasoningOptions,
    Tool,
    ToolChoice,
)
from parley.v1.completion_pb2_grpc import CompletionServiceServicer

GRAMMAR = r"start( part_start( part_delta)* part_finish)+ choice_finish( usage)? report"


def read(stream: Stream) -> tuple[list[CompletionChunk], Completion]:
    whole, chunks = Accumulator(), list(stream)
    for chunk in chunks:
        whole.add(chunk)
    return chunks, whole.completion()


def test_stream_grammar(client: Client):
    chunks, whole = read(client.completions.stream(ask()))
    assert re.fullmatch(GRAMMAR, " ".join(str(chunk.WhichOneof("event")) for chunk in chunks))
    assert whole.choices[0].message.parts[0].text == "".join(chunk.part_delta.text for chunk in chunks)
    assert (whole.id, whole.model) == (chunks[0].start.id, "beta-3-flash")
    assert whole.report == chunks[-1].report


THINKS = ReasoningOptions(effort=REASONING_EFFORT_HIGH)
TOOLS = [Tool(function=FunctionTool(name=name)) for name in ("get_weather", "get_time")]


@pytest.mark.parametrize(
    ("kind", "request_"),
    [
        ("text", ask()),
        ("text", ask(model="alpha-haiku-4.5", max_output_tokens=5)),
        ("reasoning", ask(model="beta-3-flash", reasoning=THINKS)),
        ("reasoning", ask(model="alpha-haiku-4.5", reasoning=THINKS)),
        ("tool_call", ask(tools=TOOLS, tool_choice=ToolChoice(function="get_time"))),
        ("tool_call", ask("Weather and time?", "alpha-haiku-4.5", tools=TOOLS)),
        ("native", ask(model="coder")),
        ("image", ask("Draw", "beta-3-pro-image-preview", modalities=[MODALITY_TEXT, MODALITY_IMAGE])),
    ],
)
def test_accumulates_what_create_returns(client: Client, kind: str, request_: CompletionRequest):
    _, streamed = read(client.completions.stream(request_))
    created = client.completions.create(request_)
    assert kind in [part.WhichOneof("kind") for part in streamed.choices[0].message.parts]
    for completion in (streamed, created):
        # The only differences of two completions of the simulator.
        completion.ClearField("id")
        completion.ClearField("create_time")
        completion.report.ClearField("upstream_duration")
        for attempt in completion.report.attempts:
            attempt.ClearField("duration")
            attempt.ClearField("start_offset")
    assert streamed == created


def test_image_in_pieces(client: Client):
    request = ask("Draw", "painter", modalities=[MODALITY_TEXT, MODALITY_IMAGE])
    chunks, whole = read(client.completions.stream(request))
    assert max(chunk.ByteSize() for chunk in chunks) < MIB
    [part] = whole.choices[0].message.parts
    assert part.image.media_type == "image/png"
    assert part.image.data == (b"parley" * (6 * MIB // 6 + 1))[: 6 * MIB]


def test_cancels_when_the_loop_is_left(client: Client):
    calls = len(upstream_calls("endless")) + 1
    stream = client.completions.stream(ask(model="endless"))
    for chunk in stream:
        if chunk.part_delta.text:
            break
    wait_for_close("endless", calls)
    with pytest.raises(ParleyError) as cancelled:
        list(stream)
    assert cancelled.value.code is grpc.StatusCode.CANCELLED


def test_cancels_at_the_end_of_a_with_statement(client: Client):
    calls = len(upstream_calls("endless")) + 1
    with client.completions.stream(ask(model="endless")) as stream:
        chunks = iter(stream)
        assert next(chunks).HasField("start")
    wait_for_close("endless", calls)


def test_broken_stream(client: Client):
    whole = Accumulator()
    with pytest.raises(ParleyError) as broken:
        for chunk in client.completions.stream(ask(model="breaking"), request_id="broken.1"):
            whole.add(chunk)
    assert whole.completion().choices[0].message.parts[0].text == "The beginning of an answer"
    error = broken.value
    assert (error.code, error.reason) == (grpc.StatusCode.UNAVAILABLE, "UPSTREAM_UNAVAILABLE")
    assert error.request_id == "broken.1"
    assert str(error).count("broken.1") == 1
    assert [attempt.model for attempt in error.attempts] == ["breaking"]


class Truncated(CompletionServiceServicer):
    """Ends streams with OK and without a report."""

    def Stream(self, request, context):
        context.send_initial_metadata((("x-request-id", "truncated.1"),))
        yield CompletionChunk(start=CompletionStart(id="chatcmpl-1"))


def test_a_stream_without_its_report_is_an_error(serve):
    with serve(Truncated()) as address, Client(address, API_KEY, plaintext=True) as client:
        with pytest.raises(ParleyError, match="without its report") as truncated:
            list(client.completions.stream(ask()))
    assert truncated.value.code is grpc.StatusCode.DATA_LOSS
    assert truncated.value.request_id == "truncated.1"
