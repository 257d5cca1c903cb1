"""The official Connect clients at their defaults, with the messages of the package: they compress requests with gzip."""

import os

import pytest
from connectrpc.client import ConnectClient, ConnectClientSync
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from connectrpc.method import IdempotencyLevel, MethodInfo
from parley import Accumulator, text_of, user_text
from parley.v1 import Completion, CompletionChunk, CompletionRequest, ListModelsRequest, ListModelsResponse

try:
    # connectrpc, which otherwise takes the messages of protobuf-py.
    from connectrpc.compat import google_protobuf_binary_codec
    from connectrpc.method import StreamType

    OPTIONS = {"codec": google_protobuf_binary_codec()}
    UNARY, SERVER_STREAM = ({"stream_type": kind} for kind in (StreamType.UNARY, StreamType.SERVER_STREAM))
except ImportError:
    # connect-python
    OPTIONS, UNARY, SERVER_STREAM = {}, {}, {}

ADDRESS = os.environ["PARLEY_HTTP"]
HEADERS = {"authorization": f"Bearer {os.environ['PARLEY_API_KEY']}"}


def method(service: str, name: str, request: type, response: type, level=IdempotencyLevel.UNKNOWN, **options):
    return MethodInfo(
        service_name=f"parley.v1.{service}",
        name=name,
        input=request,
        output=response,
        idempotency_level=level,
        **options,
    )


CREATE = method("CompletionService", "Create", CompletionRequest, Completion, **UNARY)
STREAM = method("CompletionService", "Stream", CompletionRequest, CompletionChunk, **SERVER_STREAM)
LIST = method(
    "ModelService", "List", ListModelsRequest, ListModelsResponse, IdempotencyLevel.NO_SIDE_EFFECTS, **UNARY
)


@pytest.fixture
def client():
    with ConnectClientSync(ADDRESS, **OPTIONS) as client:
        yield client


def ask(text: str = "hi " * 1000, model: str = "beta-3-flash", **fields: object) -> CompletionRequest:
    return CompletionRequest(model=model, messages=[user_text(text)], **fields)


def test_creates(client: ConnectClientSync):
    completion = client.execute_unary(request=ask(), method=CREATE, headers=HEADERS)
    assert completion.model == "beta-3-flash"
    assert "simulat" in text_of(completion.choices[0].message)


def test_streams(client: ConnectClientSync):
    whole = Accumulator()
    for chunk in client.execute_server_stream(request=ask(), method=STREAM, headers=HEADERS):
        whole.add(chunk)
    created = client.execute_unary(request=ask(), method=CREATE, headers=HEADERS)
    assert whole.completion().choices == created.choices


@pytest.mark.parametrize("use_get", [False, True])
def test_lists_models(client: ConnectClientSync, use_get: bool):
    response = client.execute_unary(request=ListModelsRequest(), method=LIST, headers=HEADERS, use_get=use_get)
    assert "painter" in [model.id for model in response.models]


def test_reads_errors(client: ConnectClientSync):
    with pytest.raises(ConnectError) as refused:
        client.execute_unary(request=ask(temperature=9), method=CREATE, headers=HEADERS)
    assert refused.value.code == Code.INVALID_ARGUMENT
    # A type of its own in connectrpc, Any of google.protobuf in connect-python.
    names = [getattr(detail, "type_name", None) or detail.TypeName() for detail in refused.value.details]
    assert names == ["google.rpc.ErrorInfo", "google.rpc.BadRequest"]


def test_reads_the_error_of_a_broken_stream(client: ConnectClientSync):
    whole = Accumulator()
    with pytest.raises(ConnectError) as broken:
        for chunk in client.execute_server_stream(request=ask(model="breaking"), method=STREAM, headers=HEADERS):
            whole.add(chunk)
    assert whole.completion().choices[0].message.parts[0].text == "The beginning of an answer"
    assert broken.value.code == Code.UNAVAILABLE


def test_keeps_a_deadline(client: ConnectClientSync):
    with pytest.raises(ConnectError) as late:
        client.execute_unary(request=ask(model="silent"), method=CREATE, headers=HEADERS, timeout_ms=300)
    assert late.value.code == Code.DEADLINE_EXCEEDED


async def test_works_with_asyncio():
    async with ConnectClient(ADDRESS, **OPTIONS) as client:
        completion = await client.execute_unary(request=ask(), method=CREATE, headers=HEADERS)
        chunks = client.execute_server_stream(request=ask(), method=STREAM, headers=HEADERS)
        events = [chunk.WhichOneof("event") async for chunk in chunks]
    assert completion.model == "beta-3-flash"
    assert (events[0], events[-1]) == ("start", "report")
