package dev.parley.test;

import static dev.parley.client.Messages.textOf;
import static java.util.stream.Collectors.joining;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.ByteString;
import com.google.protobuf.UnknownFieldSet;
import dev.parley.client.CompletionAccumulator;
import dev.parley.client.CompletionStream;
import dev.parley.client.Messages;
import dev.parley.client.ParleyClient;
import dev.parley.client.ParleyException;
import dev.parley.client.RequestOptions;
import dev.parley.v1.AttemptOutcome;
import dev.parley.v1.Completion;
import dev.parley.v1.CompletionChunk;
import dev.parley.v1.CompletionChunk.EventCase;
import dev.parley.v1.CompletionRequest;
import dev.parley.v1.FinishReason;
import dev.parley.v1.FunctionTool;
import dev.parley.v1.Image;
import dev.parley.v1.Message;
import dev.parley.v1.Modality;
import dev.parley.v1.Part;
import dev.parley.v1.Role;
import dev.parley.v1.Tool;
import dev.parley.v1.ToolCall;
import dev.parley.v1.ToolChoice;
import io.grpc.Metadata;
import io.grpc.Status;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;

class CompletionsTest {
  private static final int MIB = 1 << 20;
  private static final ByteString PIXEL =
      ByteString.copyFrom(
          Base64.getDecoder()
              .decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="));

  private static final ParleyClient PARLEY = Gateway.connect();

  @AfterAll
  static void close() {
    PARLEY.close();
  }

  @Test
  void createReturnsTheWholeCompletion() {
    Completion completion = PARLEY.completions().create(Gateway.ask("alpha-haiku-4.5", "Tell me about tides.").build());

    assertTrue(completion.getId().startsWith("chatcmpl-"), completion.getId());
    assertEquals("alpha-haiku-4.5", completion.getModel());
    assertFalse(textOf(completion).isBlank());
    assertEquals(Role.ROLE_ASSISTANT, completion.getChoices(0).getMessage().getRole());
    assertEquals(FinishReason.FINISH_REASON_STOP, completion.getChoices(0).getFinishReason());
    assertTrue(completion.getUsage().getOutputTokens() > 0);
    assertEquals(AttemptOutcome.ATTEMPT_OUTCOME_SERVED, completion.getReport().getAttempts(0).getOutcome());
  }

  @Test
  void inputTokensAreCounted() {
    var counted = PARLEY.completions().count(Gateway.ask("alpha-haiku-4.5", "Hello").build());
    var more = PARLEY.completions().count(Gateway.ask("alpha-haiku-4.5", "Hello ".repeat(100)).build());

    assertEquals("alpha-haiku-4.5", counted.getModel());
    assertTrue(0 < counted.getInputTokens() && counted.getInputTokens() < more.getInputTokens(), counted + "" + more);
  }

  @Test
  void requestIdIsSentAndResponseMetadataIsGiven() throws Exception {
    CompletionRequest request = Gateway.ask("alpha-haiku-4.5", "Hello").build();
    String id = "java-" + UUID.randomUUID();
    var created = new CompletableFuture<Metadata>();
    var streamed = new CompletableFuture<Metadata>();

    RequestOptions options = RequestOptions.DEFAULT.withRequestId(id);
    PARLEY.completions().create(request, options.withMetadataListener(created::complete));
    options = RequestOptions.DEFAULT.withRequestId(id + "-stream").withMetadataListener(streamed::complete);
    PARLEY.completions().stream(request, options).completion();

    assertEquals(List.of(id), values(created.get(), "x-request-id"));
    assertEquals(List.of(id + "-stream"), values(streamed.get(), "x-request-id"));
    assertEquals(List.of("alpha-haiku-4.5"), values(created.get(), "parley-served-model"));
    assertEquals(List.of("alpha-haiku-4.5"), values(created.get(), "parley-requested-model"));
    assertEquals(List.of("1"), values(streamed.get(), "parley-attempts"));
  }

  @Test
  void streamFollowsTheGrammar() {
    List<CompletionChunk> chunks = read(Gateway.ask("beta-3-flash", "Tell me about tides.").build());

    String grammar = chunks.stream().map(CompletionsTest::event).collect(joining(" "));

    assertTrue(grammar.matches("START( begin(\\d+)( more\\2)+ end\\2)+ CHOICE_FINISH USAGE REPORT"), grammar);
  }

  @Test
  void accumulatedChunksAreTheCompletion() {
    for (CompletionRequest request : List.of(weather().build(), Gateway.ask("beta-3-flash", "Hello").build())) {
      StringBuilder text = new StringBuilder();
      StringBuilder arguments = new StringBuilder();
      CompletionAccumulator accumulator = new CompletionAccumulator();
      for (CompletionChunk chunk : read(request)) {
        accumulator.add(chunk);
        text.append(chunk.getPartDelta().getText());
        arguments.append(chunk.getPartDelta().getArgumentsJson());
      }
      Completion whole = accumulator.completion();

      assertEquals(text.toString(), textOf(whole));
      assertEquals(arguments.toString(), request.getToolsCount() > 0 ? toolCall(whole).getArgumentsJson() : "");
      assertEquals(withoutIds(PARLEY.completions().create(request)), withoutIds(whole));
      assertTrue(whole.hasReport());
    }
  }

  @Test
  void streamIsReadOnce() {
    try (CompletionStream stream = PARLEY.completions().stream(Gateway.ask("spare", "Hello").build())) {
      for (CompletionChunk chunk : stream) assertFalse(chunk.getEventCase() == EventCase.EVENT_NOT_SET);

      assertThrows(IllegalStateException.class, stream::iterator);
      assertEquals("From the spare model.", textOf(stream.completion()));
    }
  }

  @Test
  void completionReadsTheRestOfAStream() {
    CompletionRequest request = Gateway.ask("alpha-haiku-4.5", "Tell me about tides.").build();
    try (CompletionStream stream = PARLEY.completions().stream(request)) {
      assertEquals(EventCase.START, stream.iterator().next().getEventCase());
      assertEquals(withoutIds(PARLEY.completions().create(request)), withoutIds(stream.completion()));
    }
  }

  @Test
  void picturesAreSentAndReceived() {
    Image pixel = Image.newBuilder().setData(PIXEL).setMediaType("image/png").build();
    CompletionRequest.Builder question = Gateway.ask("alpha-haiku-4.5", "What is this?");
    question.getMessagesBuilder(0).addParts(Part.newBuilder().setImage(pixel));
    assertFalse(textOf(PARLEY.completions().create(question.build())).isBlank());

    CompletionRequest request = withPictures(Gateway.ask("painter", "Draw the sea.")).build();
    Image created = picture(PARLEY.completions().create(request));
    assertEquals(6 * MIB, created.getData().size());
    assertEquals("image/png", created.getMediaType());
    try (CompletionStream stream = PARLEY.completions().stream(request)) {
      assertEquals(created, picture(stream.completion()));
    }
  }

  @Test
  void maxResponseBytesOfTheCallerCounts() {
    CompletionRequest request = withPictures(Gateway.ask("painter", "Draw the sea.")).setMaxResponseBytes(MIB).build();

    var e = assertThrows(ParleyException.class, () -> PARLEY.completions().create(request));

    assertEquals("RESPONSE_TOO_LARGE", e.reason());
  }

  @Test
  void largeRequestsAreSent() {
    String question = "tide ".repeat(6 * MIB / 5);

    Completion completion = PARLEY.completions().create(Gateway.ask("spare", question).build());

    assertEquals("From the spare model.", textOf(completion));
  }

  @Test
  void toolIsCalledAndItsResultIsAnswered() {
    CompletionRequest.Builder request = weather();
    Completion asked = PARLEY.completions().create(request.build());
    ToolCall call = toolCall(asked);
    assertEquals(FinishReason.FINISH_REASON_TOOL_CALLS, asked.getChoices(0).getFinishReason());
    assertEquals("get_weather", call.getName());

    Message answer = asked.getChoices(0).getMessage();
    request.addMessages(answer).addMessages(Messages.toolResult(call, "{\"celsius\":12}")).clearToolChoice();
    Completion answered = PARLEY.completions().create(request.build());

    assertEquals(FinishReason.FINISH_REASON_STOP, answered.getChoices(0).getFinishReason());
    assertFalse(textOf(answered).isBlank());
  }

  @Test
  void strictRefusesUnknownFields() {
    var field = UnknownFieldSet.Field.newBuilder().addVarint(1).build();
    var unknown = UnknownFieldSet.newBuilder().addField(1000, field).build();
    CompletionRequest.Builder request = Gateway.ask("alpha-haiku-4.5", "Hello").setUnknownFields(unknown);
    assertEquals("1000", PARLEY.completions().create(request.build()).getReport().getOmitted(0).getField());

    var e = assertThrows(ParleyException.class, () -> PARLEY.completions().create(request.setStrict(true).build()));

    assertEquals(Status.Code.INVALID_ARGUMENT, e.code());
    assertEquals("1000", e.fieldViolations().get(0).getField());
  }

  private static List<CompletionChunk> read(CompletionRequest request) {
    List<CompletionChunk> chunks = new ArrayList<>();
    try (CompletionStream stream = PARLEY.completions().stream(request)) {
      for (CompletionChunk chunk : stream) chunks.add(chunk);
    }
    return chunks;
  }

  private static String event(CompletionChunk chunk) {
    return switch (chunk.getEventCase()) {
      case PART_START -> "begin" + chunk.getPartStart().getPartIndex();
      case PART_DELTA -> "more" + chunk.getPartDelta().getPartIndex();
      case PART_FINISH -> "end" + chunk.getPartFinish().getPartIndex();
      default -> chunk.getEventCase().name();
    };
  }

  private static CompletionRequest.Builder weather() {
    FunctionTool function =
        FunctionTool.newBuilder()
            .setName("get_weather")
            .setDescription("Returns the weather of a city.")
            .setParametersJson("{\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\"}},\"required\":[\"city\"]}")
            .build();
    return Gateway.ask("beta-3-flash", "What is the weather in Bergen?")
        .addTools(Tool.newBuilder().setFunction(function))
        .setToolChoice(ToolChoice.newBuilder().setFunction("get_weather"));
  }

  private static CompletionRequest.Builder withPictures(CompletionRequest.Builder request) {
    return request.addModalities(Modality.MODALITY_TEXT).addModalities(Modality.MODALITY_IMAGE);
  }

  private static ToolCall toolCall(Completion completion) {
    var parts = completion.getChoices(0).getMessage().getPartsList().stream();
    return parts.filter(Part::hasToolCall).findFirst().orElseThrow().getToolCall();
  }

  private static Image picture(Completion completion) {
    var parts = completion.getChoices(0).getMessage().getPartsList().stream();
    return parts.filter(Part::hasImage).findFirst().orElseThrow().getImage();
  }

  /** Clears what differs between two calls: IDs, times and signatures. */
  private static Completion withoutIds(Completion completion) {
    Completion.Builder same = completion.toBuilder().clearId().clearCreateTime().clearReport();
    for (var part : same.getChoicesBuilder(0).getMessageBuilder().getPartsBuilderList()) {
      part.clearSignature();
      if (part.hasToolCall()) part.getToolCallBuilder().clearId();
    }
    return same.build();
  }

  private static List<String> values(Metadata metadata, String name) {
    var values = metadata.getAll(Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER));
    List<String> list = new ArrayList<>();
    if (values != null) values.forEach(list::add);
    return list;
  }
}
