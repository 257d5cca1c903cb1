package app

import (
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	parley "parley.dev/go"
	parleyv1 "parley.dev/go/parley/v1"
)

func TestAccumulatorJoinsAllContent(t *testing.T) {
	var answer parley.Accumulator
	var chunks []*parleyv1.CompletionChunk
	for _, text := range []string{
		`start { id: "chatcmpl-1" model: "m" create_time { seconds: 5 } }`,
		`part_start { choice_index: 1 part { text: "" } }`,
		`part_delta { choice_index: 1 text: "B" }`,
		`part_start { part { reasoning { } } }`,
		`part_delta { reasoning: "Hm" }`,
		`part_delta { reasoning: ", well" }`,
		`part_finish { signature: "sig-0" provider_details_json { key: "d.a" value: "1" } }`,
		`part_start { part_index: 1 part { tool_call { id: "c1" name: "f" } } }`,
		`part_start { part_index: 2 part { tool_call { id: "c2" name: "g" } signature: "sig-2" } }`,
		`part_delta { part_index: 1 arguments_json: "{" }`,
		`part_delta { part_index: 2 custom_input: "x = " }`,
		`part_delta { part_index: 1 arguments_json: "}" }`,
		`part_delta { part_index: 2 custom_input: "1" }`,
		`part_finish { part_index: 1 }`,
		`part_finish { part_index: 2 }`,
		`part_start { part_index: 3 part { audio { id: "a" } } }`,
		`part_delta { part_index: 3 audio { media_type: "audio/wav" data: "12" transcript: "one " } }`,
		`part_delta { part_index: 3 audio { data: "34" transcript: "two" expire_time { seconds: 9 } } }`,
		`part_start { part_index: 4 part { image { media_type: "image/png" } } }`,
		`part_delta { part_index: 4 image_data: "12" }`,
		`part_delta { part_index: 4 image_data: "34" }`,
		`part_start { part_index: 5 part { image { url: "https://example.com/1.png" } } }`,
		`part_start { part_index: 6 part { refusal: "" } }`,
		`part_delta { part_index: 6 refusal: "No." logprobs { token: "No." } }`,
		// A kind of part, a kind of content and an event of a later version.
		`part_start { part_index: 7 part { } }`,
		`part_delta { part_index: 7 text: "lost" }`,
		`part_delta { part_index: 7 }`,
		``,
		`part_start { part_index: 8 part { tool_call { id: "c3" name: "without_arguments" } } }`,
		`part_start { part_index: 9 part { native { dialect: "openai" } } }`,
		`part_delta { part_index: 9 native_json: "{}" }`,
		`choice_finish {
			finish_reason: FINISH_REASON_OTHER native_finish_reason: "X"
			provider_details_json { key: "gemini.safety_ratings" value: "[]" }
		}`,
		`part_delta { choice_index: 1 text: "C" logprobs { token: "C" } }`,
		`part_delta { choice_index: 1 text: "D" logprobs { token: "D" } }`,
		`part_delta { choice_index: 1 citation { url: "https://example.com" text_range { start: 0 end: 3 } } }`,
		`choice_finish { choice_index: 1 finish_reason: FINISH_REASON_STOP stop_sequence: "E" }`,
		`usage { total_tokens: 3 }`,
		`report { cost_micro_usd: 4 }`,
	} {
		chunk := new(parleyv1.CompletionChunk)
		if err := prototext.Unmarshal([]byte(text), chunk); err != nil {
			t.Fatal(text, err)
		}
		chunks = append(chunks, chunk)
	}
	for _, chunk := range chunks {
		before := proto.CloneOf(chunk)
		if err := answer.Add(chunk); err != nil {
			t.Fatal(err)
		}
		answer.Completion()
		if !proto.Equal(chunk, before) {
			t.Errorf("the chunk was changed to %v", chunk)
		}
	}
	want := new(parleyv1.Completion)
	if err := prototext.Unmarshal([]byte(`
		id: "chatcmpl-1" model: "m" create_time { seconds: 5 }
		choices {
			message {
				role: ROLE_ASSISTANT
				parts {
					reasoning { text: "Hm, well" }
					signature: "sig-0"
					provider_details_json { key: "d.a" value: "1" }
				}
				parts { tool_call { id: "c1" name: "f" arguments_json: "{}" } }
				parts { tool_call { id: "c2" name: "g" custom_input: "x = 1" } signature: "sig-2" }
				parts { audio { id: "a" media_type: "audio/wav" data: "1234" transcript: "one two" expire_time { seconds: 9 } } }
				parts { image { media_type: "image/png" data: "1234" } }
				parts { image { url: "https://example.com/1.png" } }
				parts { refusal: "No." logprobs { token: "No." } }
				parts { }
				parts { tool_call { id: "c3" name: "without_arguments" } }
				parts { native { dialect: "openai" json: "{}" } }
			}
			finish_reason: FINISH_REASON_OTHER native_finish_reason: "X"
			provider_details_json { key: "gemini.safety_ratings" value: "[]" }
		}
		choices {
			index: 1
			message {
				role: ROLE_ASSISTANT
				parts {
					text: "BCD"
					citations { url: "https://example.com" text_range { start: 0 end: 3 } }
					logprobs { token: "C" }
					logprobs { token: "D" }
				}
			}
			finish_reason: FINISH_REASON_STOP stop_sequence: "E"
		}
		usage { total_tokens: 3 }
		report { cost_micro_usd: 4 }`), want); err != nil {
		t.Fatal(err)
	}
	if got := answer.Completion(); !proto.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

func TestAccumulatorKeepsPartsOfAnUnknownKind(t *testing.T) {
	part := new(parleyv1.Part)
	part.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1))
	var answer parley.Accumulator
	for _, chunk := range []*parleyv1.CompletionChunk{
		{Event: &parleyv1.CompletionChunk_PartStart{PartStart: &parleyv1.PartStart{Part: part}}},
		{Event: &parleyv1.CompletionChunk_PartDelta{PartDelta: &parleyv1.PartDelta{}}},
		{Event: &parleyv1.CompletionChunk_PartFinish{PartFinish: &parleyv1.PartFinish{}}},
	} {
		if err := answer.Add(chunk); err != nil {
			t.Fatal(err)
		}
	}
	if parts := answer.Completion().GetChoices()[0].GetMessage().GetParts(); len(parts) != 1 || !proto.Equal(parts[0], part) {
		t.Errorf("got %v", parts)
	}
}

func TestAccumulatorRefusesPartsThatHaveNotBegun(t *testing.T) {
	for _, text := range []string{`part_delta { part_index: 1 text: "?" }`, `part_finish { choice_index: 1 }`} {
		var answer parley.Accumulator
		chunk := new(parleyv1.CompletionChunk)
		if err := prototext.Unmarshal([]byte(text), chunk); err != nil {
			t.Fatal(err)
		}
		if err := answer.Add(chunk); err == nil {
			t.Errorf("added %s", text)
		}
	}
}
