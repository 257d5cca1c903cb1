"""gRPC clients generated from the downloadable contract alone: the README's program, and what callers rely on."""

import os
import re
import subprocess
import sys
from pathlib import Path

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from product import API_KEY, GEMINI_MODEL, IMAGE_MODEL

TARGET = os.environ["PARLEY_GRPC"]


@pytest.fixture(scope="module")
def channel(folder: Path):
    """A channel with the README's options."""
    config = (folder / "parley/v1/service_config.json").read_text()
    options = [("grpc.max_receive_message_length", 64 << 20), ("grpc.service_config", config)]
    with grpc.insecure_channel(TARGET, options=options) as channel:
        yield channel


KEY = [("authorization", f"Bearer {API_KEY}")]


def ask(contract, text: str, model: str = GEMINI_MODEL, **fields):
    part = contract.message.Part(text=text)
    message = contract.message.Message(role=contract.message.ROLE_USER, parts=[part])
    return contract.completion.CompletionRequest(model=model, messages=[message], **fields)


def test_runs_the_program_of_the_readme(folder: Path):
    program = re.search(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL).group(1)
    environment = {**os.environ, "PARLEY_GRPC": TARGET, "PARLEY_API_KEY": API_KEY}
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=environment, check=True, capture_output=True, text=True
    )
    assert "Tell me about tides." in ran.stdout


def test_gets_a_whole_completion_and_its_metadata(contract, channel):
    stub = contract.services.CompletionServiceStub(channel)
    completion, call = stub.Create.with_call(ask(contract, "hi"), metadata=KEY, timeout=30)
    assert completion.model == GEMINI_MODEL
    assert completion.choices[0].message.parts[0].text
    assert completion.usage.input_tokens > 0
    assert [attempt.outcome for attempt in completion.report.attempts] == [contract.report.ATTEMPT_OUTCOME_SERVED]
    assert dict(call.initial_metadata())["parley-served-model"] == GEMINI_MODEL


def test_streams_by_the_grammar(contract, channel):
    stub = contract.services.CompletionServiceStub(channel)
    chunks = list(stub.Stream(ask(contract, "hi"), metadata=KEY, timeout=30))
    events = [chunk.WhichOneof("event") for chunk in chunks]
    grammar = r"start( part_start( part_delta)* part_finish)+ choice_finish( usage)? report"
    assert re.fullmatch(grammar, " ".join(events))
    whole = stub.Create(ask(contract, "hi"), metadata=KEY, timeout=30).choices[0].message.parts[0].text
    assert "".join(chunk.part_delta.text for chunk in chunks) == whole


def test_gets_a_picture(contract, channel):
    stub = contract.services.CompletionServiceStub(channel)
    modalities = [contract.modality.MODALITY_TEXT, contract.modality.MODALITY_IMAGE]
    request = ask(contract, "Draw a lighthouse", IMAGE_MODEL, modalities=modalities)
    completion = stub.Create(request, metadata=KEY, timeout=30)
    parts = completion.choices[0].message.parts
    assert any(part.image.data for part in parts)


def test_reads_the_details_of_errors(contract, channel):
    stub = contract.services.CompletionServiceStub(channel)
    with pytest.raises(grpc.RpcError) as refused:
        stub.Create(ask(contract, "hi", temperature=9), metadata=KEY, timeout=30)
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    details = rpc_status.from_call(refused.value).details
    info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    assert details[0].Unpack(info)
    assert details[1].Unpack(bad)
    assert (info.reason, info.domain) == ("INVALID_REQUEST", "parley")
    assert bad.field_violations[0].field == "temperature"
    assert dict(refused.value.trailing_metadata())["grpc-retry-pushback-ms"] == "-1"


@pytest.mark.parametrize("credential", [[], [("authorization", "Bearer sk_parley_wrong")]])
def test_is_refused_without_a_valid_key(contract, channel, credential):
    stub = contract.models.ModelServiceStub(channel)
    with pytest.raises(grpc.RpcError) as refused:
        stub.List(contract.model.ListModelsRequest(), metadata=credential, timeout=30)
    assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED


def test_keeps_a_deadline(contract, channel):
    stub = contract.services.CompletionServiceStub(channel)
    with pytest.raises(grpc.RpcError) as late:
        stub.Create(ask(contract, "hi"), metadata=KEY, timeout=0.001)
    assert late.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED


def test_can_be_cancelled(contract, channel):
    stub = contract.services.CompletionServiceStub(channel)
    call = stub.Stream(ask(contract, "hi"), metadata=KEY, timeout=30)
    next(call)
    call.cancel()
    with pytest.raises(grpc.RpcError):
        list(call)
    assert call.code() == grpc.StatusCode.CANCELLED
