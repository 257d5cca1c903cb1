"""The client for asyncio."""

import asyncio
import time

import grpc
import pytest
from conftest import ADDRESS, API_KEY, MIB, ask, upstream_calls, wait_for_close
from parley import Accumulator, AsyncClient, DeadlineExceededError, ParleyError, text_of
from parley.v1 import MODALITY_IMAGE, MODALITY_TEXT, ListModelsRequest
from test_streams import Truncated


async def test_creates(async_client: AsyncClient):
    completion, metadata = await async_client.completions.create_with_metadata(ask(), request_id="async.1")
    assert '"hi"' in text_of(completion.choices[0].message)
    assert metadata["x-request-id"] == "async.1"
    assert metadata["parley-served-model"] == "beta-3-flash"


async def test_streams(async_client: AsyncClient):
    whole, stream = Accumulator(), async_client.completions.stream(ask(), request_id="async.2")
    assert (await stream.metadata())["x-request-id"] == "async.2"
    async for chunk in stream:
        whole.add(chunk)
    created = await async_client.completions.create(ask())
    assert whole.completion().choices == created.choices
    assert whole.completion().usage == created.usage


async def test_counts(async_client: AsyncClient):
    assert (await async_client.completions.count(ask())).input_tokens > 0


async def test_gets_pictures(async_client: AsyncClient):
    request = ask("Draw", "painter", modalities=[MODALITY_TEXT, MODALITY_IMAGE])
    created = await async_client.completions.create(request)
    assert len(created.choices[0].message.parts[0].image.data) == 6 * MIB
    whole = Accumulator()
    async for chunk in async_client.completions.stream(request):
        whole.add(chunk)
    assert whole.completion().choices == created.choices


async def test_tells_models_and_key(async_client: AsyncClient):
    models = [model async for model in async_client.models.list()]
    assert models == [model async for model in async_client.models.list(ListModelsRequest(page_size=2))]
    assert await async_client.models.get("painter") in models
    assert (await async_client.key.get()).id.startswith("key_")


async def test_raises_errors(async_client: AsyncClient):
    with pytest.raises(ParleyError) as refused:
        await async_client.completions.create(ask(temperature=9), request_id="async.3")
    error = refused.value
    assert (error.code, error.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST")
    assert (error.field_violations[0].field, error.request_id) == ("temperature", "async.3")
    assert isinstance(error.__cause__, grpc.aio.AioRpcError)


async def test_raises_the_error_of_a_broken_stream(async_client: AsyncClient):
    whole = Accumulator()
    with pytest.raises(ParleyError) as broken:
        async for chunk in async_client.completions.stream(ask(model="breaking"), request_id="async.4"):
            whole.add(chunk)
    assert whole.completion().choices[0].message.parts[0].text == "The beginning of an answer"
    assert (broken.value.reason, broken.value.request_id) == ("UPSTREAM_UNAVAILABLE", "async.4")


async def test_a_stream_without_its_report_is_an_error(serve):
    with serve(Truncated()) as address:
        async with AsyncClient(address, API_KEY, plaintext=True) as client:
            with pytest.raises(ParleyError, match="without its report"):
                async for _ in client.completions.stream(ask()):
                    pass


async def test_keeps_a_deadline(async_client: AsyncClient):
    calls = len(upstream_calls("silent")) + 1
    start = time.monotonic()
    with pytest.raises(DeadlineExceededError):
        await async_client.completions.create(ask(model="silent"), timeout=0.3)
    assert time.monotonic() - start < 2
    wait_for_close("silent", calls)


async def test_cancels_when_the_loop_is_left(async_client: AsyncClient):
    calls = len(upstream_calls("endless")) + 1
    stream = async_client.completions.stream(ask(model="endless"))
    async for chunk in stream:
        if chunk.part_delta.text:
            break
    await asyncio.sleep(0)
    await asyncio.to_thread(wait_for_close, "endless", calls)


async def test_cancels_at_the_end_of_a_with_statement(async_client: AsyncClient):
    calls = len(upstream_calls("endless")) + 1
    async with async_client.completions.stream(ask(model="endless")) as stream:
        chunks = aiter(stream)
        assert (await anext(chunks)).HasField("start")
    await asyncio.to_thread(wait_for_close, "endless", calls)


async def test_cancels_the_call_of_a_cancelled_task(async_client: AsyncClient):
    calls = len(upstream_calls("silent")) + 1
    task = asyncio.create_task(async_client.completions.create(ask(model="silent")))
    while len(upstream_calls("silent")) < calls:
        await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.to_thread(wait_for_close, "silent", calls)


async def test_does_not_show_the_key(async_client: AsyncClient):
    assert repr(async_client) == f"AsyncClient('{ADDRESS}')"


def test_is_made_in_an_event_loop():
    with pytest.raises(RuntimeError, match="no running event loop"):
        AsyncClient(ADDRESS, API_KEY, plaintext=True)
