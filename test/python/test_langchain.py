"""LangChain's standard tests of a chat model.

For its ChatOpenAI in front of a model of each dialect, and for its classes of the other formats."""

from typing import Any

from langchain_anthropic import ChatAnthropic
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import ChatModelIntegrationTests
from product import ANTHROPIC_MODEL, API_KEY, BASE_URL, GEMINI_MODEL, OPENAI_MODEL, ORIGIN


class Parley(ChatModelIntegrationTests):
    """What all models have in common; pytest only collects the classes below.

    Of the standard tests one is left out everywhere: `test_stream_time` measures recorded answers, not a server.
    """

    model_name: str

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return ChatOpenAI

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"model": self.model_name, "base_url": BASE_URL, "api_key": API_KEY, "stream_usage": True}

    @property
    def supports_json_mode(self) -> bool:
        return True

    @property
    def supports_image_inputs(self) -> bool:
        return True

    @property
    def supports_image_urls(self) -> bool:
        return True

    @property
    def supports_image_tool_message(self) -> bool:
        return True

    @property
    def supports_pdf_inputs(self) -> bool:
        return True

    @property
    def supports_pdf_tool_message(self) -> bool:
        return True

    @property
    def supports_audio_inputs(self) -> bool:
        return True

    @property
    def supports_anthropic_inputs(self) -> bool:
        return True

    @property
    def supports_model_override(self) -> bool:
        return True

    @property
    def model_override_value(self) -> str:
        return "alpha-sonnet-4.5"


class TestAnthropic(Parley):
    model_name = ANTHROPIC_MODEL

    @property
    def supports_audio_inputs(self) -> bool:
        """The dialect has no audio."""
        return False


class TestGemini(Parley):
    model_name = GEMINI_MODEL

    @property
    def supports_image_urls(self) -> bool:
        """The dialect takes a picture's bytes or the name of an uploaded file, and the gateway fetches nothing."""
        return False

    @property
    def supports_pdf_tool_message(self) -> bool:
        """The gateway's Gemini dialect gives a tool's result as text and pictures."""
        return False

    @property
    def supported_usage_metadata_details(self) -> dict[str, list[str]]:
        return {"invoke": ["reasoning_output"], "stream": ["reasoning_output"]}

    def invoke_with_reasoning_output(self, *, stream: bool = False) -> AIMessage:
        model = ChatOpenAI(**self.chat_model_params, reasoning_effort="low")
        if not stream:
            return model.invoke("Why are there tides?")
        chunks = list(model.stream("Why are there tides?"))
        return sum(chunks[1:], start=chunks[0])


class TestOpenAI(Parley):
    model_name = OPENAI_MODEL


class TestChatAnthropic(Parley):
    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return ChatAnthropic

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"model": ANTHROPIC_MODEL, "base_url": ORIGIN, "api_key": API_KEY}

    @property
    def supports_json_mode(self) -> bool:
        """The format has no JSON without a schema."""
        return False

    @property
    def supports_audio_inputs(self) -> bool:
        """The format has no audio."""
        return False

    @property
    def supports_anthropic_inputs(self) -> bool:
        """The test has reasoning with a signature, which only the provider that made it takes."""
        return False


class TestChatGoogle(Parley):
    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return ChatGoogleGenerativeAI

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"model": GEMINI_MODEL, "base_url": ORIGIN, "api_key": API_KEY}

    @property
    def supports_image_urls(self) -> bool:
        """The client downloads the picture itself, from an address on the internet."""
        return False

    @property
    def supports_anthropic_inputs(self) -> bool:
        """The client does not read them."""
        return False

    @property
    def supports_model_override(self) -> bool:
        """The client refuses the option."""
        return False
