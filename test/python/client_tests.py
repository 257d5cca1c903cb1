"""What each client has to do, in front of a model of each dialect. The class of a client says how the client does it."""

import pytest
from product import ANTHROPIC_MODEL, API_KEY, IMAGE_MODEL, SPENT_KEY
from samples import Lighthouse

TIDES = "Tell me about tides"


class ClientTests:
    """The methods without `test` are the client's; they are asynchronous because some clients are."""

    errors: dict[int, type[Exception]]
    """The client's own classes by HTTP status."""

    async def ask(self, model: str, question: str, key: str = API_KEY) -> str:
        """Returns the answer's text."""
        raise NotImplementedError

    async def stream(self, model: str, question: str) -> list[str]:
        """Returns the pieces of the text of a streamed answer."""
        raise NotImplementedError

    async def use_tool(self, model: str, question: str) -> str:
        """Offers `get_weather`, calls it as the model asks, and returns the text of the answer to its result."""
        raise NotImplementedError

    async def parse(self, model: str, question: str) -> Lighthouse:
        """Returns an answer in the structure of `Lighthouse`, as the client has parsed it."""
        raise NotImplementedError

    async def look(self, model: str, question: str) -> str:
        """Sends `RED_PIXEL` beside the question, and returns the answer's text."""
        raise NotImplementedError

    def status_of(self, error: Exception) -> int:
        return error.status_code

    async def test_gets_an_answer(self, dialect_model):
        assert TIDES in await self.ask(dialect_model, TIDES)

    async def test_gets_the_same_answer_in_pieces(self, dialect_model):
        pieces = await self.stream(dialect_model, TIDES)
        assert len(pieces) > 2
        assert "".join(pieces) == await self.ask(dialect_model, TIDES)

    async def test_calls_a_tool_and_gets_an_answer_to_its_result(self, dialect_model):
        answer = await self.use_tool(dialect_model, "Please use get_weather(town='Bergen', days=3)")
        assert "Fog for 3 days in Bergen" in answer

    async def test_parses_a_structured_answer(self, dialect_model):
        lighthouse = await self.parse(dialect_model, "Describe a lighthouse")
        assert isinstance(lighthouse, Lighthouse)
        assert len(lighthouse.keepers) > 0

    async def test_shows_a_picture_to_the_model(self, dialect_model):
        assert "Picture 1 of 1 is " in await self.look(dialect_model, "What is this?")

    @pytest.mark.parametrize(
        ("status", "question", "model", "key"),
        [
            (400, "[[fault: status=400]] Hello", ANTHROPIC_MODEL, API_KEY),
            (401, "Hello", ANTHROPIC_MODEL, "sk_parley_wrong"),
            (404, "Hello", "gamma-9", API_KEY),
            (429, "Hello", ANTHROPIC_MODEL, SPENT_KEY),
        ],
        ids=["rejected-request", "wrong-key", "unknown-model", "spent-budget"],
    )
    async def test_raises_its_own_error(self, status, question, model, key):
        with pytest.raises(self.errors[status]) as raised:
            await self.ask(model, question, key)
        assert self.status_of(raised.value) == status


class DrawingTests:
    """For clients that get pictures."""

    async def draw(self, model: str, question: str) -> bytes:
        """Returns the picture of an answer."""
        raise NotImplementedError

    async def test_gets_a_picture(self):
        assert (await self.draw(IMAGE_MODEL, "Draw a lighthouse")).startswith(b"\x89PNG")
