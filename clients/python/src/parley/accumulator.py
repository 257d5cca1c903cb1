"""Folds the chunks of a stream into a completion."""

from collections import defaultdict

from parley.v1 import ROLE_ASSISTANT, Audio, Choice, Completion, CompletionChunk, Part, PartDelta

_KIND_OF_DELTA = {
    "text": "text",
    "reasoning": "reasoning",
    "refusal": "refusal",
    "arguments_json": "tool_call",
    "custom_input": "tool_call",
    "image_data": "image",
    "audio": "audio",
    "native_json": "native",
}


class Accumulator:
    """Folds the chunks of a stream into the completion that Create would return.

    `add` takes each chunk; `completion` returns what they say so far. It is complete when the stream ended without an
    error.
    """

    def __init__(self) -> None:
        self._completion = Completion()
        self._choices: dict[int, Choice] = {}
        # Strings and bytes are joined once: appending them to a message copies the whole value each time.
        self._texts: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
        self._data: defaultdict[tuple[int, int], list[bytes]] = defaultdict(list)

    def add(self, chunk: CompletionChunk) -> None:
        """Adds the next chunk. Events and contents that this version does not know are skipped."""
        match chunk.WhichOneof("event"):
            case "start":
                self._completion.id = chunk.start.id
                self._completion.model = chunk.start.model
                self._completion.create_time.CopyFrom(chunk.start.create_time)
            case "part_start":
                self._choice(chunk.part_start.choice_index).message.parts.append(chunk.part_start.part)
            case "part_delta":
                self._add_delta(chunk.part_delta)
            case "part_finish":
                end = chunk.part_finish
                if end.signature or end.provider_details_json:
                    part = self._choice(end.choice_index).message.parts[end.part_index]
                    part.signature = end.signature or part.signature
                    part.provider_details_json.update(end.provider_details_json)
            case "choice_finish":
                finish = chunk.choice_finish
                choice = self._choice(finish.choice_index)
                choice.finish_reason = finish.finish_reason
                choice.native_finish_reason = finish.native_finish_reason
                choice.stop_sequence = finish.stop_sequence
                choice.provider_details_json.update(finish.provider_details_json)
            case "usage":
                self._completion.usage.CopyFrom(chunk.usage)
            case "report":
                self._completion.report.CopyFrom(chunk.report)

    def completion(self) -> Completion:
        """Returns the completion so far, as a message of the caller's own."""
        completion = Completion()
        completion.CopyFrom(self._completion)
        for index in sorted(self._choices):
            choice = completion.choices.add()
            choice.CopyFrom(self._choices[index])
            for part_index, part in enumerate(choice.message.parts):
                _extend(part, "".join(self._texts[index, part_index]), b"".join(self._data[index, part_index]))
        return completion

    def _choice(self, index: int) -> Choice:
        if index not in self._choices:
            self._choices[index] = Choice(index=index)
            self._choices[index].message.role = ROLE_ASSISTANT
        return self._choices[index]

    def _add_delta(self, delta: PartDelta) -> None:
        part = self._choice(delta.choice_index).message.parts[delta.part_index]
        part.logprobs.extend(delta.logprobs)
        key = (delta.choice_index, delta.part_index)
        content = delta.WhichOneof("content")
        if content == "citation":
            part.citations.append(delta.citation)
        elif content is None or _KIND_OF_DELTA[content] != part.WhichOneof("kind"):
            return
        elif content == "image_data":
            self._data[key].append(delta.image_data)
        elif content == "audio":
            self._data[key].append(delta.audio.data)
            self._texts[key].append(delta.audio.transcript)
            _set_once(part.audio, delta.audio)
        else:
            self._texts[key].append(getattr(delta, content))
            if content in ("arguments_json", "custom_input") and not part.tool_call.HasField("input"):
                # Says which kind of input the texts are.
                setattr(part.tool_call, content, "")


def _set_once(audio: Audio, delta: Audio) -> None:
    audio.id = audio.id or delta.id
    audio.media_type = audio.media_type or delta.media_type
    if delta.HasField("expire_time"):
        audio.expire_time.CopyFrom(delta.expire_time)


def _extend(part: Part, text: str, data: bytes) -> None:
    match part.WhichOneof("kind"):
        case "text":
            part.text += text
        case "reasoning":
            part.reasoning.text += text
        case "refusal":
            part.refusal += text
        case "tool_call":
            match part.tool_call.WhichOneof("input"):
                case "arguments_json":
                    part.tool_call.arguments_json += text
                case "custom_input":
                    part.tool_call.custom_input += text
        case "native":
            part.native.json += text
        case "audio":
            part.audio.transcript += text
            if data:
                part.audio.data += data
        # Not without data: an image by its address would lose the address.
        case "image" if data:
            part.image.data += data
