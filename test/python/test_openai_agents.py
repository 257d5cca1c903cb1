"""The unmodified openai-agents package, over the Responses API and over chat completions."""

import base64
from functools import cache

import openai
from agents import Agent, ImageGenerationTool, OpenAIProvider, RunConfig, Runner, function_tool
from client_tests import ClientTests, DrawingTests
from openai import AsyncOpenAI
from product import API_KEY, BASE_URL
from samples import RED_PIXEL_URL, Lighthouse, get_weather


@cache
def connect(key: str = API_KEY) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=BASE_URL, api_key=key)


class AgentsSdk(ClientTests):
    errors = {
        400: openai.BadRequestError,
        401: openai.AuthenticationError,
        404: openai.NotFoundError,
        429: openai.RateLimitError,
    }
    uses_responses: bool

    def configure(self, key: str = API_KEY) -> RunConfig:
        provider = OpenAIProvider(openai_client=connect(key), use_responses=self.uses_responses)
        return RunConfig(model_provider=provider, tracing_disabled=True)

    async def run(self, model: str, question: str | list, key: str = API_KEY, **options):
        agent = Agent(name="Keeper", model=model, **options)
        return await Runner.run(agent, question, run_config=self.configure(key))

    async def ask(self, model, question, key=API_KEY):
        return (await self.run(model, question, key)).final_output

    async def stream(self, model, question):
        running = Runner.run_streamed(Agent(name="Keeper", model=model), question, run_config=self.configure())
        events = [event.data async for event in running.stream_events() if event.type == "raw_response_event"]
        return [event.delta for event in events if event.type == "response.output_text.delta"]

    async def use_tool(self, model, question):
        return (await self.run(model, question, tools=[function_tool(get_weather)])).final_output

    async def parse(self, model, question):
        return (await self.run(model, question, output_type=Lighthouse)).final_output

    async def look(self, model, question):
        picture = {"type": "input_image", "image_url": RED_PIXEL_URL, "detail": "auto"}
        content = [{"type": "input_text", "text": question}, picture]
        return (await self.run(model, [{"role": "user", "content": content}])).final_output


class TestResponses(AgentsSdk, DrawingTests):
    uses_responses = True

    async def draw(self, model, question):
        result = await self.run(model, question, tools=[ImageGenerationTool({"type": "image_generation"})])
        items = [item for response in result.raw_responses for item in response.output]
        [picture] = [item.result for item in items if item.type == "image_generation_call"]
        return base64.b64decode(picture)


class TestChatCompletions(AgentsSdk):
    uses_responses = False
