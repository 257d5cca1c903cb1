"""The client for programs without asyncio."""

from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

import grpc

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

if TYPE_CHECKING:
    from grpc import _CallIterator  # A name of its types only.

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")


class Client:
    """Calls Parley at an address with an API key. Safe to share between threads.

    The connection uses TLS; `plaintext=True` turns it off, as for a Parley on the same machine. `root_certificates` are
    PEM of the authorities to trust instead of gRPC's own.

    All calls raise `ParleyError`. They take a `timeout` in seconds (by default 15 minutes for completions and
    embeddings, 30 seconds for the rest), which bounds all attempts together, and a `request_id`, which is otherwise
    made by Parley.
    """

    completions: "Completions"
    """Runs completions."""
    embeddings: "Embedder"
    """Makes embeddings."""
    models: "Models"
    """Tells which models the key may use."""
    key: "CurrentKey"
    """Tells about the API key."""
    channel: grpc.Channel
    """The connection, for other services of the same address, such as `grpc.health.v1`."""

    def __init__(
        self, address: str, api_key: str, *, plaintext: bool = False, root_certificates: bytes | None = None
    ) -> None:
        self._address = check_address(address)
        credentials = Credentials(api_key)
        tls = channel_credentials(plaintext=plaintext, root_certificates=root_certificates)
        self.channel = (
            grpc.insecure_channel(address, OPTIONS) if tls is None else grpc.secure_channel(address, tls, OPTIONS)
        )
        self.completions = Completions(self.channel, credentials)
        self.embeddings = Embedder(self.channel, credentials)
        self.models = Models(self.channel, credentials)
        self.key = CurrentKey(self.channel, credentials)

    def __repr__(self) -> str:
        return f"Client({self._address!r})"

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection and cancels its calls."""
        self.channel.close()


class Stream:
    """The chunks of a completion while it is made: iterate over it once.

    Leaving the loop early cancels the call. A loop that ends without an error has seen the whole completion.
    """

    def __init__(self, call: "_CallIterator[CompletionChunk]") -> None:
        self._call = call

    def __iter__(self) -> Iterator[CompletionChunk]:
        is_complete = False
        try:
            for chunk in self._call:
                is_complete = chunk.HasField("report")
                yield chunk
            if not is_complete:
                raise truncated(self.metadata().get("x-request-id", ""))
        except grpc.RpcError as error:
            raise to_error(error) from error
        finally:
            self.close()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Cancels the call, unless it has ended."""
        self._call.cancel()

    def metadata(self) -> Mapping[str, str]:
        """Waits for the first chunk, and returns the metadata that came with it."""
        return to_text(self._call.initial_metadata())


class Completions:
    """Runs completions, see `Client.completions`."""

    def __init__(self, channel: grpc.Channel, credentials: Credentials) -> None:
        self._stub = CompletionServiceStub(channel)
        self._credentials = credentials

    def create(
        self, request: CompletionRequest, *, timeout: float | None = None, request_id: str | None = None
    ) -> Completion:
        """Runs one completion to its end and returns it whole.

        Without `max_response_bytes` of the request, a completion of up to 64 MiB is received.
        """
        return self.create_with_metadata(request, timeout=timeout, request_id=request_id)[0]

    def create_with_metadata(
        self, request: CompletionRequest, *, timeout: float | None = None, request_id: str | None = None
    ) -> tuple[Completion, Mapping[str, str]]:
        """As `create`, with the metadata of the response: `x-request-id`, `parley-…` and `x-ratelimit-…`."""
        metadata = self._credentials.metadata(request_id)
        return _call(self._stub.Create, with_response_limit(request), timeout, metadata)

    def stream(
        self, request: CompletionRequest, *, timeout: float | None = None, request_id: str | None = None
    ) -> Stream:
        """Runs one completion and returns it in chunks while it is made. `Accumulator` puts them together.

        It returns at once: a failure is raised by the loop over the stream.
        """
        metadata = self._credentials.metadata(request_id)
        return Stream(self._stub.Stream(request, timeout=timeout, metadata=metadata))

    def count(
        self, request: CompletionRequest, *, timeout: float | None = None, request_id: str | None = None
    ) -> TokenCount:
        """Counts the input tokens of a request without running it."""
        metadata = self._credentials.metadata(request_id)
        return _call(self._stub.Count, request, timeout, metadata)[0]


class Embedder:
    """Makes embeddings, see `Client.embeddings`."""

    def __init__(self, channel: grpc.Channel, credentials: Credentials) -> None:
        self._stub = EmbeddingServiceStub(channel)
        self._credentials = credentials

    def create(
        self, request: EmbeddingRequest, *, timeout: float | None = None, request_id: str | None = None
    ) -> Embeddings:
        """Returns one vector for each input, in the order of the inputs."""
        metadata = self._credentials.metadata(request_id)
        return _call(self._stub.Create, request, timeout, metadata)[0]


class Models:
    """Tells which models the key may use, see `Client.models`."""

    def __init__(self, channel: grpc.Channel, credentials: Credentials) -> None:
        self._stub = ModelServiceStub(channel)
        self._credentials = credentials

    def list(
        self,
        request: ListModelsRequest | None = None,
        *,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> Iterator[Model]:
        """Lists the models in the order of the registry, and asks for the next page when it is needed.

        `timeout` and `request_id` are those of each page.
        """
        page = ListModelsRequest()
        page.MergeFrom(request or page)
        metadata = self._credentials.metadata(request_id)
        while True:
            response, _ = _call(self._stub.List, page, timeout, metadata)
            yield from response.models
            if not response.next_page_token:
                return
            page.page_token = response.next_page_token

    def get(self, id: str, *, timeout: float | None = None, request_id: str | None = None) -> Model:
        """Returns one model."""
        metadata = self._credentials.metadata(request_id)
        return _call(self._stub.Get, GetModelRequest(id=id), timeout, metadata)[0]


class CurrentKey:
    """Tells about the API key, see `Client.key`."""

    def __init__(self, channel: grpc.Channel, credentials: Credentials) -> None:
        self._stub = KeyServiceStub(channel)
        self._credentials = credentials

    def get(self, *, timeout: float | None = None, request_id: str | None = None) -> Key:
        """Returns the key that the client calls with: which one it is, and what it may do."""
        metadata = self._credentials.metadata(request_id)
        return _call(self._stub.GetCurrent, GetCurrentKeyRequest(), timeout, metadata)[0]


def _call(
    method: "grpc.UnaryUnaryMultiCallable[_Request, _Response]",
    request: _Request,
    timeout: float | None,
    metadata: tuple[tuple[str, str], ...],
) -> tuple[_Response, Mapping[str, str]]:
    try:
        response, call = method.with_call(request, timeout=timeout, metadata=metadata)
    except grpc.RpcError as error:
        raise to_error(error) from error
    return response, to_text(call.initial_metadata())
