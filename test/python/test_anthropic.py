"""The unmodified anthropic package."""

from functools import cache

import anthropic
import pytest
from anthropic import AsyncAnthropic, beta_async_tool
from anthropic.types import Message
from client_tests import ClientTests
from product import ANTHROPIC_MODEL, API_KEY, ORIGIN
from samples import RED_PIXEL_BASE64, Lighthouse, get_weather


@cache
def connect(key: str = API_KEY) -> AsyncAnthropic:
    return AsyncAnthropic(base_url=ORIGIN, api_key=key)


def asked(model: str, content: str | list) -> dict:
    return {"model": model, "max_tokens": 1000, "messages": [{"role": "user", "content": content}]}


def text_of(message: Message) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


class TestAnthropic(ClientTests):
    errors = {
        400: anthropic.BadRequestError,
        401: anthropic.AuthenticationError,
        404: anthropic.NotFoundError,
        429: anthropic.RateLimitError,
    }

    async def ask(self, model, question, key=API_KEY):
        return text_of(await connect(key).messages.create(**asked(model, question)))

    async def stream(self, model, question):
        async with connect().messages.stream(**asked(model, question)) as stream:
            return [text async for text in stream.text_stream]

    async def use_tool(self, model, question):
        tools = [beta_async_tool(get_weather)]
        return text_of(await connect().beta.messages.tool_runner(**asked(model, question), tools=tools).until_done())

    async def parse(self, model, question):
        message = await connect().messages.parse(**asked(model, question), output_format=Lighthouse)
        return message.parsed_output

    async def look(self, model, question):
        source = {"type": "base64", "media_type": "image/png", "data": RED_PIXEL_BASE64}
        content = [{"type": "text", "text": question}, {"type": "image", "source": source}]
        return text_of(await connect().messages.create(**asked(model, content)))


async def test_has_the_name_of_the_wrong_field_and_the_request():
    with pytest.raises(anthropic.BadRequestError) as raised:
        await connect().messages.create(**asked(ANTHROPIC_MODEL, "Hello"), extra_body={"temperature": 3})
    assert raised.value.body["error"]["message"].startswith("temperature: ")
    assert raised.value.request_id.startswith("req_")


async def test_counts_tokens():
    messages = [{"role": "user", "content": "Hello"}]
    assert (await connect().messages.count_tokens(model=ANTHROPIC_MODEL, messages=messages)).input_tokens > 0


async def test_lists_the_models(dialect_model):
    assert dialect_model in [model.id async for model in connect().models.list()]
