"""The unmodified pydantic-ai package with its classes of models for the four formats."""

from functools import cache

from client_tests import ClientTests, DrawingTests
from product import API_KEY, BASE_URL, ORIGIN
from pydantic_ai import Agent, BinaryContent, BinaryImage, ModelHTTPError, NativeOutput
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider
from samples import RED_PIXEL, Lighthouse, get_weather


class PydanticAi(ClientTests):
    errors = dict.fromkeys([400, 401, 404, 429], ModelHTTPError)

    @staticmethod
    def connect(model: str, key: str = API_KEY) -> Model:
        raise NotImplementedError

    async def ask(self, model, question, key=API_KEY):
        return (await Agent(self.connect(model, key)).run(question)).output

    async def stream(self, model, question):
        async with Agent(self.connect(model)).run_stream(question) as result:
            return [text async for text in result.stream_text(delta=True, debounce_by=None)]

    async def use_tool(self, model, question):
        return (await Agent(self.connect(model), tools=[get_weather]).run(question)).output

    async def parse(self, model, question):
        return (await Agent(self.connect(model), output_type=Lighthouse).run(question)).output

    async def look(self, model, question):
        picture = BinaryContent(data=RED_PIXEL, media_type="image/png")
        return (await Agent(self.connect(model)).run([question, picture])).output


class NativelyStructured:
    """For the classes that let the model answer in JSON; otherwise the structure is a tool that has to be called."""

    async def test_parses_a_natively_structured_answer(self, dialect_model):
        agent = Agent(self.connect(dialect_model), output_type=NativeOutput(Lighthouse))
        assert isinstance((await agent.run("Describe a lighthouse")).output, Lighthouse)


class TestOpenAIChat(PydanticAi, NativelyStructured):
    @staticmethod
    @cache
    def connect(model, key=API_KEY):
        return OpenAIChatModel(model, provider=OpenAIProvider(base_url=BASE_URL, api_key=key))


class TestOpenAIResponses(PydanticAi, NativelyStructured):
    @staticmethod
    @cache
    def connect(model, key=API_KEY):
        return OpenAIResponsesModel(model, provider=OpenAIProvider(base_url=BASE_URL, api_key=key))


class TestAnthropic(PydanticAi):
    @staticmethod
    @cache
    def connect(model, key=API_KEY):
        return AnthropicModel(model, provider=AnthropicProvider(base_url=ORIGIN, api_key=key))


class TestGoogle(PydanticAi, NativelyStructured, DrawingTests):
    @staticmethod
    @cache
    def connect(model, key=API_KEY):
        return GoogleModel(model, provider=GoogleProvider(base_url=ORIGIN, api_key=key))

    async def draw(self, model, question):
        return (await Agent(self.connect(model), output_type=BinaryImage).run(question)).output.data
