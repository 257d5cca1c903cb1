"""The client for programs with asyncio. It is documented at `parley.client`."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import TypeVar

import grpc
import grpc.aio

from parley._channel import OPTIONS, Credentials, channel_credentials, check_address, to_text, with_response_limit
from parley.errors import to_error, truncated
from parley.v1 import (
    Completion,
    CompletionChunk,
    CompletionRequest,
    EmbeddingRequest,
    Embeddings,
    GetCurrentKeyRequest,
    GetModelRequest,
    Key,
    ListModelsRequest,
    Model,
    TokenCount,
)
from parley.v1.completion_pb2_grpc import CompletionServiceStub
from parley.v1.embedding_pb2_grpc import EmbeddingServiceStub
from parley.v1.key_pb2_grpc import KeyServiceStub
from parley.v1.model_pb2_grpc import ModelServiceStub

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")


class AsyncClient:
    """`Client` for asyncio. It belongs to the event loop that it is made in.

    Cancelling a task cancels its call.
    """

    completions: "AsyncCompletions"
    """Runs completions."""
    embeddings: "AsyncEmbedder"
    """Makes embeddings."""
    models: "AsyncModels"
    """Tells which models the key may use."""
    key: "AsyncCurrentKey"
    """Tells about the API key."""
    channel: grpc.aio.Channel
    """The connection, for other services of the same address, such as `grpc.health.v1`."""

    def __init__(
        self, address: str, api_key: str, *, plaintext: bool = False, root_certificates: bytes | None = None
    ) -> None:
        # Raises where there is none: a channel made there would wait in another loop than its calls.
        asyncio.get_running_loop()
        self._address = check_address(address)
        credentials = Credentials(api_key)
        tls = channel_credentials(plaintext=plaintext, root_certificates=root_certificates)
        self.channel = (
            grpc.aio.insecure_channel(address, OPTIONS)
            if tls is None
            else grpc.aio.secure_channel(address, tls, OPTIONS)
        )
        self.completions = AsyncCompletions(self.channel, credentials)
        self.embeddings = AsyncEmbedder(self.channel, credentials)
        self.models = AsyncModels(self.channel, credentials)
        self.key = AsyncCurrentKey(self.channel, credentials)

    def __repr__(self) -> str:
        return f"AsyncClient({self._address!r})"

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connection and cancels its calls."""
        await self.channel.close()


class AsyncStream:
    """`Stream` for asyncio.

    Leaving the loop early cancels the call as soon as the event loop runs; `async with` cancels it at once.
    """

    def __init__(self, call: "grpc.aio.UnaryStreamCall[CompletionRequest, CompletionChunk]") -> None:
        self._call = call

    async def __aiter__(self) -> AsyncIterator[CompletionChunk]:
        is_complete = False
        try:
            async for chunk in self._call:
                is_complete = chunk.HasField("report")
                yield chunk
            if not is_complete:
                raise truncated((await self.metadata()).get("x-request-id", ""))
        except grpc.RpcError as error:
            raise to_error(error) from error
        finally:
            self.close()

    async def __aenter__(self) -> "AsyncStream":
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Cancels the call, unless it has ended."""
        self._call.cancel()

    async def metadata(self) -> Mapping[str, str]:
        """Waits for the first chunk, and returns the metadata that came with it."""
        return to_text(await self._call.initial_metadata())


class AsyncCompletions:
    """Runs completions, see `AsyncClient.completions`."""

    def __init__(self, channel: grpc.aio.Channel, credentials: Credentials) -> None:
        self._stub = CompletionServiceStub(channel)
        self._credentials = credentials

    async def create(
        self, request: CompletionRequest, *, timeout: float | None = None, request_id: str | None = None
    ) -> Completion:
        """As `Completions.create`."""
        completion, _ = await self.create_with_metadata(request, timeout=timeout, request_id=request_id)
        return completion

    async def create_with_metadata(
        self, request: CompletionRequest, *, timeout: float | None = None, request_id: str | None = None
    ) -> tuple[Completion, Mapping[str, str]]:
        """As `Completions.create_with_metadata`."""
        metadata = self._credentials.metadata(request_id)
        return await _call(self._stub.Create, with_response_limit(request), timeout, metadata)

    def stream(
        self, request: CompletionRequest, *, timeout: float | None = None, request_id: str | None = None
    ) -> AsyncStream:
        """As `Completions.stream`, without await: a failure is raised by the loop over the stream."""
        metadata = self._credentials.metadata(request_id)
        return AsyncStream(self._stub.Stream(request, timeout=timeout, metadata=metadata))

    async def count(
        self, request: CompletionRequest, *, timeout: float | None = None, request_id: str | None = None
    ) -> TokenCount:
        """As `Completions.count`."""
        metadata = self._credentials.metadata(request_id)
        return (await _call(self._stub.Count, request, timeout, metadata))[0]


class AsyncEmbedder:
    """Makes embeddings, see `AsyncClient.embeddings`."""

    def __init__(self, channel: grpc.aio.Channel, credentials: Credentials) -> None:
        self._stub = EmbeddingServiceStub(channel)
        self._credentials = credentials

    async def create(
        self, request: EmbeddingRequest, *, timeout: float | None = None, request_id: str | None = None
    ) -> Embeddings:
        """As `Embedder.create`."""
        metadata = self._credentials.metadata(request_id)
        return (await _call(self._stub.Create, request, timeout, metadata))[0]


class AsyncModels:
    """Tells which models the key may use, see `AsyncClient.models`."""

    def __init__(self, channel: grpc.aio.Channel, credentials: Credentials) -> None:
        self._stub = ModelServiceStub(channel)
        self._credentials = credentials

    async def list(
        self,
        request: ListModelsRequest | None = None,
        *,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> AsyncIterator[Model]:
        """As `Models.list`."""
        page = ListModelsRequest()
        page.MergeFrom(request or page)
        metadata = self._credentials.metadata(request_id)
        while True:
            response, _ = await _call(self._stub.List, page, timeout, metadata)
            for model in response.models:
                yield model
            if not response.next_page_token:
                return
            page.page_token = response.next_page_token

    async def get(self, id: str, *, timeout: float | None = None, request_id: str | None = None) -> Model:
        """As `Models.get`."""
        metadata = self._credentials.metadata(request_id)
        return (await _call(self._stub.Get, GetModelRequest(id=id), timeout, metadata))[0]


class AsyncCurrentKey:
    """Tells about the API key, see `AsyncClient.key`."""

    def __init__(self, channel: grpc.aio.Channel, credentials: Credentials) -> None:
        self._stub = KeyServiceStub(channel)
        self._credentials = credentials

    async def get(self, *, timeout: float | None = None, request_id: str | None = None) -> Key:
        """As `CurrentKey.get`."""
        metadata = self._credentials.metadata(request_id)
        return (await _call(self._stub.GetCurrent, GetCurrentKeyRequest(), timeout, metadata))[0]


async def _call(
    method: "grpc.aio.UnaryUnaryMultiCallable[_Request, _Response]",
    request: _Request,
    timeout: float | None,
    metadata: tuple[tuple[str, str], ...],
) -> tuple[_Response, Mapping[str, str]]:
    call = method(request, timeout=timeout, metadata=metadata)
    try:
        return await call, to_text(await call.initial_metadata())
    except grpc.RpcError as error:
        raise to_error(error) from error
