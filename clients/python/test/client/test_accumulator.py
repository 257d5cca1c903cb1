"""The accumulator, with chunks that the simulator does not send."""

from parley import Accumulator
from parley.v1 import (
    Audio,
    ChoiceFinish,
    Citation,
    CompletionChunk,
    Image,
    Part,
    PartDelta,
    PartFinish,
    PartStart,
    TextRange,
    TokenLogprob,
    ToolCall,
)


def start(part: Part, part_index: int = 0, choice_index: int = 0) -> CompletionChunk:
    return CompletionChunk(part_start=PartStart(choice_index=choice_index, part_index=part_index, part=part))


def more(choice_index: int = 0, **content: object) -> CompletionChunk:
    return CompletionChunk(part_delta=PartDelta(choice_index=choice_index, **content))


def accumulate(*chunks: CompletionChunk):
    whole = Accumulator()
    for chunk in chunks:
        whole.add(chunk)
    return whole.completion()


def test_joins_recordings():
    completion = accumulate(
        start(Part(audio=Audio())),
        more(audio=Audio(id="audio_1", media_type="audio/wav", data=b"ab", transcript="Good ")),
        more(audio=Audio(id="audio_2", data=b"c", transcript="day")),
    )
    expected = Audio(media_type="audio/wav", id="audio_1", data=b"abc", transcript="Good day")
    assert completion.choices[0].message.parts[0].audio == expected


def test_joins_citations_log_probabilities_and_signatures():
    logprobs = [TokenLogprob(token=token) for token in ("a", "b")]
    citation = Citation(url="https://example.com", text_range=TextRange(end=2))
    completion = accumulate(
        start(Part(text="")),
        more(text="a", logprobs=logprobs[:1]),
        more(text="b", logprobs=logprobs[1:]),
        more(citation=citation),
        CompletionChunk(part_finish=PartFinish(signature="signed", provider_details_json={"d.a": "1"})),
    )
    [part] = completion.choices[0].message.parts
    details = {"d.a": "1"}
    assert part == Part(
        text="ab", citations=[citation], logprobs=logprobs, signature="signed", provider_details_json=details
    )


def test_joins_the_inputs_of_tool_calls():
    completion = accumulate(
        start(Part(tool_call=ToolCall(id="1", name="f"))),
        start(Part(tool_call=ToolCall(id="2", name="g")), 1),
        start(Part(tool_call=ToolCall(id="3", name="without_arguments")), 2),
        more(arguments_json="{"),
        more(part_index=1, custom_input="x = "),
        more(arguments_json="}"),
        more(part_index=1, custom_input="1"),
    )
    assert [part.tool_call for part in completion.choices[0].message.parts] == [
        ToolCall(id="1", name="f", arguments_json="{}"),
        ToolCall(id="2", name="g", custom_input="x = 1"),
        ToolCall(id="3", name="without_arguments"),
    ]


def test_joins_refusals():
    completion = accumulate(start(Part(refusal="")), more(refusal="I cannot"), more(refusal="."))
    assert completion.choices[0].message.parts[0] == Part(refusal="I cannot.")


def test_keeps_the_address_of_an_image():
    image = Part(image=Image(url="https://example.com/a.png"))
    assert accumulate(start(image)).choices[0].message.parts[0] == image


def test_keeps_choices_apart():
    completion = accumulate(
        start(Part(text=""), choice_index=1),
        start(Part(text="")),
        more(1, text="one"),
        more(text="zero"),
        more(1, text="!"),
        CompletionChunk(
            choice_finish=ChoiceFinish(
                choice_index=1, stop_sequence="END", provider_details_json={"gemini.safety_ratings": "[]"}
            )
        ),
    )
    assert [choice.index for choice in completion.choices] == [0, 1]
    assert [choice.message.parts[0].text for choice in completion.choices] == ["zero", "one!"]
    assert [choice.stop_sequence for choice in completion.choices] == ["", "END"]
    assert completion.choices[1].provider_details_json == {"gemini.safety_ratings": "[]"}


def test_skips_what_it_does_not_know():
    assert accumulate(start(Part()), more(), more(text="of another kind"), CompletionChunk()).choices[
        0
    ].message.parts == [Part()]


def test_keeps_a_part_of_an_unknown_kind():
    field_99 = b"\x98\x06\x01"
    completion = accumulate(start(Part.FromString(field_99)), more(), CompletionChunk(part_finish=PartFinish()))
    assert [part.SerializeToString() for part in completion.choices[0].message.parts] == [field_99]


def test_tells_what_came_so_far():
    whole = Accumulator()
    texts = []
    for chunk in (start(Part(text="")), more(text="a"), more(text="b")):
        whole.add(chunk)
        texts.append(whole.completion().choices[0].message.parts[0].text)
    assert texts == ["", "a", "ab"]
