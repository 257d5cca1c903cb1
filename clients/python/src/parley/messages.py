"""Short forms of messages that are long to write."""

from parley.v1 import ROLE_SYSTEM, ROLE_TOOL, ROLE_USER, EmbeddingInput, Message, Part, ToolCall, ToolResult


def user_text(text: str) -> Message:
    """Returns a user message of one text."""
    return Message(role=ROLE_USER, parts=[Part(text=text)])


def system_text(text: str) -> Message:
    """Returns a system message of one text."""
    return Message(role=ROLE_SYSTEM, parts=[Part(text=text)])


def text_inputs(*texts: str) -> list[EmbeddingInput]:
    """Returns texts as the inputs of an embedding request."""
    return [EmbeddingInput(text=text) for text in texts]


def tool_result(call: ToolCall, text: str) -> Message:
    """Returns a tool message with the result of a call."""
    return Message(role=ROLE_TOOL, parts=[Part(tool_result=ToolResult(tool_call_id=call.id, parts=[Part(text=text)]))])


def text_of(message: Message) -> str:
    """Joins the texts of a message. Other parts, such as reasoning and tool calls, are left out."""
    return "".join(part.text for part in message.parts)
