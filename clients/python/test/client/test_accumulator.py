"""The accumulator, with chunks that the simulator does not send."""

from parley import Accumulator
from parley.v1 import (
    Annotation,
    Audio,
    ChoiceFinish,
    CompletionChunk,
    Image,
    Logprobs,
    Part,
    PartDelta,
    PartFinish,
    PartStart,
    TokenLogprob,
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
        start(Part(audio=Audio(format="wav"))),
        more(audio=Audio(id="audio_1", data=b"ab", transcript="Good ")),
        more(audio=Audio(id="audio_2", data=b"c", transcript="day")),
    )
    expected = Audio(format="wav", id="audio_1", data=b"abc", transcript="Good day")
    assert completion.choices[0].message.parts[0].audio == expected


def test_joins_annotations_log_probabilities_and_signatures():
    logprobs = [Logprobs(content=[TokenLogprob(token=token)]) for token in ("a", "b")]
    completion = accumulate(
        start(Part(text="")),
        more(text="a", logprobs=logprobs[0]),
        more(text="b", logprobs=logprobs[1]),
        more(annotation=Annotation(url="https://example.com")),
        CompletionChunk(part_finish=PartFinish(signature="signed")),
    )
    [part] = completion.choices[0].message.parts
    assert part == Part(text="ab", annotations=[Annotation(url="https://example.com")], signature="signed")
    assert [token.token for token in completion.choices[0].logprobs.content] == ["a", "b"]


def test_joins_refusals():
    completion = accumulate(start(Part(refusal="I ")), more(refusal="cannot"), more(refusal="."))
    assert completion.choices[0].message.parts[0] == Part(refusal="I cannot.")


def test_keeps_the_address_of_an_image():
    image = Part(image=Image(url="https://example.com/a.png"))
    assert accumulate(start(image)).choices[0].message.parts[0] == image


def test_keeps_choices_apart():
    completion = accumulate(
        start(Part(text="one"), choice_index=1),
        start(Part(text="zero")),
        more(1, text="!"),
        CompletionChunk(finish=ChoiceFinish(choice_index=1, stop_sequence="END")),
    )
    assert [choice.index for choice in completion.choices] == [0, 1]
    assert [choice.message.parts[0].text for choice in completion.choices] == ["zero", "one!"]
    assert [choice.stop_sequence for choice in completion.choices] == ["", "END"]


def test_skips_what_it_does_not_know():
    assert accumulate(start(Part()), more(), more(text="of another kind"), CompletionChunk()).choices[
        0
    ].message.parts == [Part()]


def test_tells_what_came_so_far():
    whole = Accumulator()
    texts = []
    for chunk in (start(Part(text="")), more(text="a"), more(text="b")):
        whole.add(chunk)
        texts.append(whole.completion().choices[0].message.parts[0].text)
    assert texts == ["", "a", "ab"]
