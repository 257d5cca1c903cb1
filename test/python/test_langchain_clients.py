"""LangChain's unmodified chat models of OpenAI, Anthropic and Google."""

from functools import cache

import anthropic
import openai
from client_tests import ClientTests
from langchain_anthropic import ChatAnthropic
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_google_genai.chat_models import ChatGoogleGenerativeAIError
from langchain_openai import ChatOpenAI
from product import API_KEY, BASE_URL, ORIGIN
from samples import RED_PIXEL_BASE64, Lighthouse, get_weather


class LangChain(ClientTests):
    @staticmethod
    def connect(model: str, key: str = API_KEY) -> BaseChatModel:
        raise NotImplementedError

    async def ask(self, model, question, key=API_KEY):
        return (await self.connect(model, key).ainvoke(question)).text

    async def stream(self, model, question):
        return [chunk.text async for chunk in self.connect(model).astream(question) if chunk.text]

    async def use_tool(self, model, question):
        weather = tool(get_weather)
        bound = self.connect(model).bind_tools([weather])
        asking = await bound.ainvoke([HumanMessage(question)])
        results = [await weather.ainvoke(call) for call in asking.tool_calls]
        return (await bound.ainvoke([HumanMessage(question), asking, *results])).text

    async def parse(self, model, question):
        return await self.connect(model).with_structured_output(Lighthouse).ainvoke(question)

    async def look(self, model, question):
        picture = {"type": "image", "base64": RED_PIXEL_BASE64, "mime_type": "image/png"}
        message = HumanMessage(content=[{"type": "text", "text": question}, picture])
        return (await self.connect(model).ainvoke([message])).text


class TestChatOpenAI(LangChain):
    errors = {
        400: openai.BadRequestError,
        401: openai.AuthenticationError,
        404: openai.NotFoundError,
        429: openai.RateLimitError,
    }

    @staticmethod
    @cache
    def connect(model, key=API_KEY):
        return ChatOpenAI(model=model, base_url=BASE_URL, api_key=key)


class TestChatAnthropic(LangChain):
    errors = {
        400: anthropic.BadRequestError,
        401: anthropic.AuthenticationError,
        404: anthropic.NotFoundError,
        429: anthropic.RateLimitError,
    }

    @staticmethod
    @cache
    def connect(model, key=API_KEY):
        return ChatAnthropic(model=model, base_url=ORIGIN, api_key=key)


class TestChatGoogle(LangChain):
    errors = dict.fromkeys([400, 401, 404, 429], ChatGoogleGenerativeAIError)

    @staticmethod
    @cache
    def connect(model, key=API_KEY):
        # By itself it tries again after a 429, for half a minute.
        return ChatGoogleGenerativeAI(model=model, base_url=ORIGIN, api_key=key, max_retries=0)

    def status_of(self, error):
        return error.__cause__.code
