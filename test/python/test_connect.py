"""The official Connect client for Python, which compresses each request with gzip by default.

It takes the classes of google.protobuf with a codec of its own."""

import pytest
from connectrpc.client import ConnectClientSync
from connectrpc.code import Code
from connectrpc.compat import google_protobuf_binary_codec
from connectrpc.errors import ConnectError
from connectrpc.method import IdempotencyLevel, MethodInfo, StreamType
from product import API_KEY, BASE_URL, GEMINI_MODEL
from test_grpc import ask

HEADERS = {"authorization": f"Bearer {API_KEY}"}


@pytest.fixture
def client():
    with ConnectClientSync(BASE_URL.removesuffix("/v1"), codec=google_protobuf_binary_codec()) as client:
        yield client


@pytest.fixture
def create(contract):
    return method("Create", StreamType.UNARY, contract.completion, "Completion")


@pytest.fixture
def stream(contract):
    return method("Stream", StreamType.SERVER_STREAM, contract.completion, "CompletionChunk")


def method(name: str, stream_type: StreamType, messages, output: str) -> MethodInfo:
    return MethodInfo(
        name=name,
        service_name="parley.v1.CompletionService",
        input=messages.CompletionRequest,
        output=getattr(messages, output),
        idempotency_level=IdempotencyLevel.UNKNOWN,
        stream_type=stream_type,
    )


def test_gets_a_whole_completion(contract, client, create):
    completion = client.execute_unary(request=ask(contract, "hi " * 1_000), method=create, headers=HEADERS)
    assert completion.model == GEMINI_MODEL
    assert completion.choices[0].message.parts[0].text


def test_gets_a_stream(contract, client, stream):
    chunks = client.execute_server_stream(request=ask(contract, "hi"), method=stream, headers=HEADERS)
    events = [chunk.WhichOneof("event") for chunk in chunks]
    assert (events[0], events[-1]) == ("start", "report")


def test_reads_errors(contract, client, create):
    with pytest.raises(ConnectError) as refused:
        client.execute_unary(request=ask(contract, "hi", temperature=9), method=create, headers=HEADERS)
    assert refused.value.code == Code.INVALID_ARGUMENT
    types = [detail.type_name for detail in refused.value.details]
    assert types == ["google.rpc.ErrorInfo", "google.rpc.BadRequest"]
