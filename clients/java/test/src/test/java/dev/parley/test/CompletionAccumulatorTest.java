package dev.parley.test;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.google.protobuf.Message;
import com.google.protobuf.TextFormat;
import com.google.protobuf.UnknownFieldSet;
import dev.parley.client.CompletionAccumulator;
import dev.parley.v1.Completion;
import dev.parley.v1.CompletionChunk;
import dev.parley.v1.Part;
import dev.parley.v1.PartStart;
import java.util.List;
import org.junit.jupiter.api.Test;

class CompletionAccumulatorTest {
  @Test
  void partsOfEveryKindArePutTogether() throws Exception {
    Completion completion =
        accumulate(
            "start { id: 'chatcmpl-1' model: 'm' create_time { seconds: 5 } upstream_duration { nanos: 3 } }",
            "part_start { part { reasoning {} } }",
            "part_delta { reasoning: 'Let me ' }",
            "part_delta { reasoning: 'think' }",
            "part_finish { signature: 'opaque' provider_details_json { key: 'd.a' value: '1' } }",
            "part_start { part_index: 1 part { text: '' } }",
            "part_delta { part_index: 1 text: 'Ti' logprobs { token: 'Ti' } }",
            "part_delta { part_index: 1 text: 'des' logprobs { token: 'des' } }",
            "part_delta { part_index: 1 citation { url: 'https://example.com' text_range { start: 0 end: 5 } } }",
            "part_finish { part_index: 1 }",
            "part_start { part_index: 2 part { tool_call { id: 'a' name: 'f' } } }",
            "part_start { part_index: 3 part { tool_call { id: 'b' name: 'g' } signature: 'kept' } }",
            "part_delta { part_index: 3 custom_input: 'x = ' }",
            "part_delta { part_index: 2 arguments_json: '{\"x\"' }",
            "part_delta { part_index: 3 custom_input: '1' }",
            "part_delta { part_index: 2 arguments_json: ':1}' }",
            "part_finish { part_index: 3 }",
            "part_finish { part_index: 2 }",
            "part_start { part_index: 4 part { image { media_type: 'image/png' } } }",
            "part_delta { part_index: 4 image_data: 'ab' }",
            "part_delta { part_index: 4 image_data: 'cd' }",
            "part_start { part_index: 5 part { image { url: 'https://example.com/a.png' } } }",
            "part_start { part_index: 6 part { audio {} } }",
            "part_delta { part_index: 6 audio { media_type: 'audio/wav' data: 'xy' transcript: 'on' } }",
            "part_delta { part_index: 6 audio { data: 'z' transcript: 'e' id: 'audio-1' expire_time { seconds: 9 } } }",
            "part_start { part_index: 7 part { refusal: '' } }",
            "part_delta { part_index: 7 refusal: 'N' }",
            "part_delta { part_index: 7 refusal: 'o' }",
            "part_start { part_index: 8 part { native { dialect: 'anthropic' } } }",
            "part_delta { part_index: 8 native_json: '{' }",
            "part_delta { part_index: 8 native_json: '}' }",
            "part_start { part_index: 9 part { tool_call { id: 'c' name: 'without_arguments' } } }",
            "choice_finish { finish_reason: FINISH_REASON_STOP native_finish_reason: 'end' stop_sequence: '!' "
                + "provider_details_json { key: 'gemini.safety_ratings' value: '[]' } }",
            "part_start { choice_index: 1 part { text: '' } }",
            "part_delta { choice_index: 1 text: 'Moon' }",
            "choice_finish { choice_index: 1 finish_reason: FINISH_REASON_LENGTH }",
            "",
            "usage { input_tokens: 1 output_tokens: 2 total_tokens: 3 }",
            "report { cost_micro_usd: 4 }");

    assertEquals(
        parse(
            Completion.class,
            """
            id: 'chatcmpl-1' model: 'm' create_time { seconds: 5 }
            choices {
              message {
                role: ROLE_ASSISTANT
                parts {
                  reasoning { text: 'Let me think' }
                  signature: 'opaque'
                  provider_details_json { key: 'd.a' value: '1' }
                }
                parts {
                  text: 'Tides'
                  citations { url: 'https://example.com' text_range { start: 0 end: 5 } }
                  logprobs { token: 'Ti' }
                  logprobs { token: 'des' }
                }
                parts { tool_call { id: 'a' name: 'f' arguments_json: '{"x":1}' } }
                parts { tool_call { id: 'b' name: 'g' custom_input: 'x = 1' } signature: 'kept' }
                parts { image { media_type: 'image/png' data: 'abcd' } }
                parts { image { url: 'https://example.com/a.png' } }
                parts { audio { media_type: 'audio/wav' data: 'xyz' transcript: 'one' id: 'audio-1' expire_time { seconds: 9 } } }
                parts { refusal: 'No' }
                parts { native { dialect: 'anthropic' json: '{}' } }
                parts { tool_call { id: 'c' name: 'without_arguments' } }
              }
              finish_reason: FINISH_REASON_STOP native_finish_reason: 'end' stop_sequence: '!'
              provider_details_json { key: 'gemini.safety_ratings' value: '[]' }
            }
            choices {
              index: 1
              message { role: ROLE_ASSISTANT parts { text: 'Moon' } }
              finish_reason: FINISH_REASON_LENGTH
            }
            usage { input_tokens: 1 output_tokens: 2 total_tokens: 3 }
            report { cost_micro_usd: 4 }
            """),
        completion);
  }

  @Test
  void partOfAnUnknownKindIsKept() throws Exception {
    var field = UnknownFieldSet.Field.newBuilder().addVarint(1).build();
    Part part = Part.newBuilder().setUnknownFields(UnknownFieldSet.newBuilder().addField(99, field).build()).build();
    CompletionAccumulator accumulator = new CompletionAccumulator();

    accumulator.add(CompletionChunk.newBuilder().setPartStart(PartStart.newBuilder().setPart(part)).build());
    accumulator.add(parse(CompletionChunk.class, "part_delta {}"));
    accumulator.add(parse(CompletionChunk.class, "part_finish {}"));

    assertEquals(List.of(part), accumulator.completion().getChoices(0).getMessage().getPartsList());
  }

  @Test
  void partialCompletionCanBeReadAndContinued() throws Exception {
    CompletionAccumulator accumulator = new CompletionAccumulator();
    accumulator.add(parse(CompletionChunk.class, "part_start { part { text: '' } }"));
    accumulator.add(parse(CompletionChunk.class, "part_delta { text: 'Ti' }"));
    assertEquals("Ti", accumulator.completion().getChoices(0).getMessage().getParts(0).getText());

    accumulator.add(parse(CompletionChunk.class, "part_delta { text: 'des' }"));

    assertEquals("Tides", accumulator.completion().getChoices(0).getMessage().getParts(0).getText());
  }

  private static Completion accumulate(String... chunks) throws Exception {
    CompletionAccumulator accumulator = new CompletionAccumulator();
    for (String chunk : chunks) accumulator.add(parse(CompletionChunk.class, chunk));
    return accumulator.completion();
  }

  private static <T extends Message> T parse(Class<T> type, String text) throws Exception {
    return TextFormat.parse(text, type);
  }
}
