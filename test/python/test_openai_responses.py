"""The unmodified openai package and the Responses API."""

import base64
import json
from functools import cache

import openai
import pytest
from client_tests import ClientTests, DrawingTests
from openai import AsyncOpenAI
from openai.resources.responses import AsyncResponses
from product import ANTHROPIC_MODEL, API_KEY, BASE_URL
from samples import RED_PIXEL_URL, GetWeather, Lighthouse, get_weather

TOOL = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather in a town",
    "parameters": GetWeather.model_json_schema(),
    "strict": False,
}


@cache
def connect(key: str = API_KEY) -> AsyncResponses:
    return AsyncOpenAI(base_url=BASE_URL, api_key=key).responses


class TestResponses(ClientTests, DrawingTests):
    errors = {
        400: openai.BadRequestError,
        401: openai.AuthenticationError,
        404: openai.NotFoundError,
        429: openai.RateLimitError,
    }

    async def ask(self, model, question, key=API_KEY):
        return (await connect(key).create(model=model, input=question)).output_text

    async def stream(self, model, question):
        async with connect().stream(model=model, input=question) as stream:
            return [event.delta async for event in stream if event.type == "response.output_text.delta"]

    async def use_tool(self, model, question):
        conversation = [{"role": "user", "content": question}]
        asking = await connect().create(model=model, input=conversation, tools=[TOOL])
        conversation += asking.output
        for call in (item for item in asking.output if item.type == "function_call"):
            output = await get_weather(**json.loads(call.arguments))
            conversation.append({"type": "function_call_output", "call_id": call.call_id, "output": output})
        return (await connect().create(model=model, input=conversation, tools=[TOOL])).output_text

    async def parse(self, model, question):
        return (await connect().parse(model=model, input=question, text_format=Lighthouse)).output_parsed

    async def look(self, model, question):
        picture = {"type": "input_image", "image_url": RED_PIXEL_URL, "detail": "auto"}
        content = [{"type": "input_text", "text": question}, picture]
        return (await connect().create(model=model, input=[{"role": "user", "content": content}])).output_text

    async def draw(self, model, question):
        answer = await connect().create(model=model, input=question, tools=[{"type": "image_generation"}])
        [picture] = [item.result for item in answer.output if item.type == "image_generation_call"]
        return base64.b64decode(picture)


async def test_has_the_name_of_the_wrong_field_and_the_request():
    with pytest.raises(openai.BadRequestError) as raised:
        await connect().create(model=ANTHROPIC_MODEL, input="Hello", temperature=3)
    assert raised.value.param == "temperature"
    assert raised.value.request_id.startswith("req_")
