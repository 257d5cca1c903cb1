"""The unmodified openai package against the running product, for a model of each dialect."""

import json

import openai
import pytest
from openai import AsyncOpenAI, OpenAI, pydantic_function_tool
from product import ANTHROPIC_MODEL, API_KEY, BASE_URL, IMAGE_MODEL, SPENT_KEY
from samples import RED_PIXEL_URL, GetWeather, Lighthouse


@pytest.fixture(scope="module")
def client():
    with OpenAI(base_url=BASE_URL, api_key=API_KEY, max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
async def async_client():
    async with AsyncOpenAI(base_url=BASE_URL, api_key=API_KEY, max_retries=0) as client:
        yield client


def ask(text: str) -> list:
    return [{"role": "user", "content": text}]


def test_gets_a_whole_completion(client, dialect_model):
    completion = client.chat.completions.create(model=dialect_model, messages=ask("Tell me about tides"))
    assert completion.object == "chat.completion"
    assert completion.model == dialect_model
    assert completion.choices[0].finish_reason == "stop"
    assert "Tell me about tides" in completion.choices[0].message.content
    usage = completion.usage
    assert usage.prompt_tokens > 0
    assert usage.completion_tokens > 0
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


def test_reads_the_same_answer_and_usage_from_a_stream(client, dialect_model):
    asked = {"model": dialect_model, "messages": ask("Tell me about tides")}
    whole = client.chat.completions.create(**asked)
    chunks = list(client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].choices == []
    assert chunks[-1].usage == whole.usage


def test_puts_a_stream_together_with_the_stream_helper(client, dialect_model):
    with client.chat.completions.stream(model=dialect_model, messages=ask("Tell me about tides")) as stream:
        heard = "".join(event.delta for event in stream if event.type == "content.delta")
        final = stream.get_final_completion()
    assert final.choices[0].message.content == heard
    assert "Tell me about tides" in heard


def test_calls_a_tool_and_answers_with_its_result(client, dialect_model):
    tools = [pydantic_function_tool(GetWeather, name="get_weather")]
    messages = ask("Use get_weather for Bergen")
    asking = client.chat.completions.create(model=dialect_model, messages=messages, tools=tools)
    assert asking.choices[0].finish_reason == "tool_calls"
    [call] = asking.choices[0].message.tool_calls
    assert call.function.name == "get_weather"
    arguments = GetWeather.model_validate_json(call.function.arguments, strict=True)
    result = {"role": "tool", "tool_call_id": call.id, "content": f"Fog for {arguments.days} days"}
    answer = client.chat.completions.create(
        model=dialect_model, messages=[*messages, asking.choices[0].message, result], tools=tools
    )
    assert answer.choices[0].finish_reason == "stop"
    assert f"Fog for {arguments.days} days" in answer.choices[0].message.content


def test_puts_the_streamed_calls_of_two_tools_together(client, dialect_model):
    tools = [pydantic_function_tool(GetWeather, name=name) for name in ("get_weather", "get_tides")]
    asked = {"model": dialect_model, "messages": ask("Use get_weather and get_tides"), "tools": tools}
    with client.chat.completions.stream(**asked) as stream:
        message = stream.get_final_completion().choices[0].message
    assert [call.function.name for call in message.tool_calls] == ["get_weather", "get_tides"]
    assert len({call.id for call in message.tool_calls}) == 2
    assert all(isinstance(call.function.parsed_arguments, GetWeather) for call in message.tool_calls)


def test_parses_an_answer_into_a_pydantic_model(client, dialect_model):
    completion = client.chat.completions.parse(
        model=dialect_model, messages=ask("Describe a lighthouse"), response_format=Lighthouse
    )
    lighthouse = completion.choices[0].message.parsed
    assert isinstance(lighthouse, Lighthouse)
    assert len(lighthouse.keepers) > 0


def test_gets_json_without_a_schema(client, dialect_model):
    completion = client.chat.completions.create(
        model=dialect_model, messages=ask("Some JSON, please"), response_format={"type": "json_object"}
    )
    assert isinstance(json.loads(completion.choices[0].message.content), dict)


def test_shows_a_picture_of_a_data_url_to_the_model(client, dialect_model):
    content = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": RED_PIXEL_URL}}]
    completion = client.chat.completions.create(
        model=dialect_model, messages=[{"role": "user", "content": content}]
    )
    assert "Picture 1 of 1 is " in completion.choices[0].message.content


def test_gets_a_picture_and_shows_it_to_another_model(client):
    drawn = client.chat.completions.create(
        model=IMAGE_MODEL, messages=ask("Draw a lighthouse"), modalities=["text", "image"]
    )
    pictures = [part for part in drawn.choices[0].message.content if part["type"] == "image_url"]
    assert pictures[0]["image_url"]["url"].startswith("data:image/png;base64,iVBORw0KGgo")
    content = [{"type": "text", "text": "What is this?"}, pictures[0]]
    seen = client.chat.completions.create(model=ANTHROPIC_MODEL, messages=[{"role": "user", "content": content}])
    assert "Picture 1 of 1 is " in seen.choices[0].message.content


def test_gets_a_picture_in_a_stream(client):
    stream = client.chat.completions.create(
        model=IMAGE_MODEL, messages=ask("Draw a lighthouse"), modalities=["text", "image"], stream=True
    )
    deltas = [chunk.choices[0].delta for chunk in stream if chunk.choices]
    pictures = [picture for delta in deltas for picture in getattr(delta, "images", None) or []]
    assert pictures[0]["image_url"]["url"].startswith("data:image/png;base64,iVBORw0KGgo")


@pytest.mark.parametrize(
    ("fault", "error", "status"),
    [
        ("status=400", openai.BadRequestError, 400),
        ("status=401", openai.InternalServerError, 500),
        ("status=500", openai.InternalServerError, 503),
    ],
)
def test_raises_the_typed_error_of_what_went_wrong_upstream(client, dialect_model, fault, error, status):
    with pytest.raises(error) as raised:
        client.chat.completions.create(model=dialect_model, messages=ask(f"[[fault: {fault}]] Hello"))
    assert raised.value.status_code == status
    assert raised.value.request_id.startswith("req_")


def test_raises_an_error_in_the_middle_of_a_stream_that_breaks_off(client, dialect_model):
    messages = ask("[[fault: cut-after=3]] Tell me about tides")
    stream = client.chat.completions.create(model=dialect_model, messages=messages, stream=True)
    text = ""
    with pytest.raises(openai.APIError):
        for chunk in stream:
            text += chunk.choices[0].delta.content or ""
    assert text != ""


def test_raises_authentication_error_for_an_unknown_key(dialect_model):
    with OpenAI(base_url=BASE_URL, api_key="sk_parley_wrong", max_retries=0) as refused:
        with pytest.raises(openai.AuthenticationError):
            refused.chat.completions.create(model=dialect_model, messages=ask("Hello"))


def test_raises_rate_limit_error_for_a_spent_budget():
    with OpenAI(base_url=BASE_URL, api_key=SPENT_KEY) as client:
        with pytest.raises(openai.RateLimitError) as raised:
            client.chat.completions.create(model=ANTHROPIC_MODEL, messages=ask("Hello"))
    assert raised.value.code == "budget_exceeded"


def test_raises_not_found_error_for_an_unknown_model(client):
    with pytest.raises(openai.NotFoundError) as raised:
        client.chat.completions.create(model="gamma-9", messages=ask("Hello"))
    assert raised.value.code == "model_not_found"


def test_lists_the_models(client, dialect_model):
    assert dialect_model in [model.id for model in client.models.list()]
    assert client.models.retrieve(dialect_model).id == dialect_model


async def test_asynchronous_client_gets_a_whole_completion_and_a_stream(async_client, dialect_model):
    asked = {"model": dialect_model, "messages": ask("Tell me about tides")}
    whole = await async_client.chat.completions.create(**asked)
    stream = await async_client.chat.completions.create(**asked, stream=True)
    text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
    assert "Tell me about tides" in text
    assert text == whole.choices[0].message.content


async def test_asynchronous_client_parses_an_answer_into_a_pydantic_model(async_client, dialect_model):
    completion = await async_client.chat.completions.parse(
        model=dialect_model, messages=ask("Describe a lighthouse"), response_format=Lighthouse
    )
    assert isinstance(completion.choices[0].message.parsed, Lighthouse)


async def test_asynchronous_client_raises_typed_errors(async_client, dialect_model):
    with pytest.raises(openai.BadRequestError):
        await async_client.chat.completions.create(model=dialect_model, messages=ask("Hello"), temperature=3)
