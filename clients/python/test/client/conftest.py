"""What the tests share: clients of the running Parley, and a server of a service that each test scripts."""

import json
import os
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import grpc
import pytest
from parley import AsyncClient, Client, ParleyError, user_text
from parley.v1 import CompletionRequest
from parley.v1.completion_pb2_grpc import add_CompletionServiceServicer_to_server

ADDRESS = os.environ["PARLEY_GRPC"]
API_KEY = os.environ["PARLEY_API_KEY"]
MIB = 1024 * 1024


def ask(text: str = "hi", model: str = "beta-3-flash", **fields: object) -> CompletionRequest:
    return CompletionRequest(model=model, messages=[user_text(text)], **fields)


def upstream_calls(model: str) -> list[str]:
    """The states of a model's upstream calls, in order."""
    with urllib.request.urlopen(f"{os.environ['PARLEY_UPSTREAM']}/calls/{model}") as response:
        return json.load(response)


def wait_for_close(model: str, calls: int) -> None:
    """Waits until the model has had so many upstream calls and none is open, or fails after 2 s."""
    deadline = time.monotonic() + 2
    while len(states := upstream_calls(model)) < calls or "open" in states:
        assert time.monotonic() < deadline, states
        time.sleep(0.02)


@pytest.fixture(scope="session")
def client() -> Iterator[Client]:
    with Client(ADDRESS, API_KEY, plaintext=True) as client:
        yield client


@pytest.fixture
async def async_client():
    async with AsyncClient(ADDRESS, API_KEY, plaintext=True) as client:
        yield client


@pytest.fixture(scope="session", autouse=True)
def overload(client: Client) -> Iterator[Callable[[], tuple[ParleyError, float]]]:
    """The error of a call that fails on each retry, and its seconds. It waits for 7 s twice, beside the other tests."""

    def fail() -> tuple[ParleyError, float]:
        start = time.monotonic()
        with pytest.raises(ParleyError) as failed:
            client.completions.create(ask(model="overloaded-too"))
        return failed.value, time.monotonic() - start

    with ThreadPoolExecutor(1) as executor:
        failure: Future[tuple[ParleyError, float]] = executor.submit(fail)
        yield failure.result


@pytest.fixture
def serve():
    """Starts a server of a service, which `add` registers, and returns its address."""

    @contextmanager
    def start(
        service: object,
        credentials: grpc.ServerCredentials | None = None,
        add: Callable[[object, grpc.Server], None] = add_CompletionServiceServicer_to_server,
    ) -> Iterator[str]:
        server = grpc.server(ThreadPoolExecutor(2))
        add(service, server)
        port = (
            server.add_secure_port("127.0.0.1:0", credentials)
            if credentials is not None
            else server.add_insecure_port("127.0.0.1:0")
        )
        server.start()
        try:
            yield f"127.0.0.1:{port}"
        finally:
            server.stop(None).wait()

    return start
