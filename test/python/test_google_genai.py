"""The unmodified google-genai package."""

from functools import cache

import pytest
from client_tests import ClientTests, DrawingTests
from google import genai
from google.genai import errors, types
from product import API_KEY, GEMINI_MODEL, ORIGIN
from samples import RED_PIXEL, Lighthouse, get_weather


@cache
def connect(key: str = API_KEY) -> genai.client.AsyncClient:
    return genai.Client(api_key=key, http_options={"base_url": ORIGIN}).aio


class TestGoogleGenAi(ClientTests, DrawingTests):
    errors = dict.fromkeys([400, 401, 404, 429], errors.ClientError)

    async def ask(self, model, question, key=API_KEY):
        return (await connect(key).models.generate_content(model=model, contents=question)).text

    async def stream(self, model, question):
        stream = await connect().models.generate_content_stream(model=model, contents=question)
        return [chunk.text async for chunk in stream if chunk.text]

    async def use_tool(self, model, question):
        config = {"tools": [get_weather]}
        return (await connect().models.generate_content(model=model, contents=question, config=config)).text

    async def parse(self, model, question):
        config = {"response_mime_type": "application/json", "response_schema": Lighthouse}
        return (await connect().models.generate_content(model=model, contents=question, config=config)).parsed

    async def look(self, model, question):
        picture = types.Part.from_bytes(data=RED_PIXEL, mime_type="image/png")
        return (await connect().models.generate_content(model=model, contents=[question, picture])).text

    async def draw(self, model, question):
        config = {"response_modalities": ["TEXT", "IMAGE"]}
        answer = await connect().models.generate_content(model=model, contents=question, config=config)
        [picture] = [part.inline_data for part in answer.candidates[0].content.parts if part.inline_data]
        return picture.data

    def status_of(self, error):
        return error.code


async def test_has_the_name_of_the_wrong_field():
    with pytest.raises(errors.ClientError) as raised:
        await connect().models.generate_content(model=GEMINI_MODEL, contents="Hello", config={"temperature": 3})
    assert raised.value.status == "INVALID_ARGUMENT"
    assert raised.value.message.startswith("generationConfig.temperature: ")


async def test_counts_tokens():
    assert (await connect().models.count_tokens(model=GEMINI_MODEL, contents="Hello")).total_tokens > 0


async def test_lists_the_models(dialect_model):
    assert f"models/{dialect_model}" in [model.name async for model in await connect().models.list()]
