package dev.parley.test;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.Any;
import com.google.rpc.ErrorInfo;
import dev.parley.client.Messages;
import dev.parley.client.ParleyClient;
import dev.parley.client.ParleyException;
import dev.parley.client.RequestOptions;
import dev.parley.v1.Attempt;
import dev.parley.v1.AttemptOutcome;
import dev.parley.v1.Completion;
import dev.parley.v1.CompletionChunk;
import dev.parley.v1.CompletionRequest;
import dev.parley.v1.CompletionServiceGrpc;
import dev.parley.v1.ErrorReason;
import io.grpc.Status;
import io.grpc.protobuf.StatusProto;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;

class FailuresTest {
  private static final ParleyClient PARLEY = Gateway.connect();

  @AfterAll
  static void close() {
    PARLEY.close();
  }

  @Test
  void badRequestNamesTheField() {
    CompletionRequest request = Gateway.ask("alpha-haiku-4.5", "Hello").setTemperature(9).build();

    ParleyException e = failure(request, RequestOptions.DEFAULT.withRequestId("java-bad-request"));

    assertEquals(Status.Code.INVALID_ARGUMENT, e.code());
    assertEquals("INVALID_REQUEST", e.reason());
    assertEquals("temperature", e.fieldViolations().get(0).getField());
    assertFalse(e.fieldViolations().get(0).getDescription().isBlank());
    assertEquals("java-bad-request", e.requestId());
    assertEquals("INVALID_REQUEST: " + e.description() + " (request java-bad-request)", e.getMessage());
    assertFalse(e.isRetryable());
    assertEquals(Status.Code.INVALID_ARGUMENT, e.getCause().getStatus().getCode());
  }

  @Test
  void wrongKeyIsUnauthenticated() {
    try (var parley = ParleyClient.builder(Gateway.ADDRESS, "sk_parley_wrong").plaintext().build()) {
      var e = assertThrows(ParleyException.class, () -> parley.completions().create(ask("alpha-haiku-4.5")));

      assertEquals(Status.Code.UNAUTHENTICATED, e.code());
      assertEquals("UNAUTHENTICATED", e.reason());
      assertFalse(e.toString().contains("sk_parley_wrong"));
      assertFalse(e.isRetryable());
    }
  }

  @Test
  void unknownModelIsNotFound() {
    ParleyException e = failure(ask("no-such-model"), RequestOptions.DEFAULT);

    assertEquals(Status.Code.NOT_FOUND, e.code());
    assertEquals("MODEL_NOT_FOUND", e.reason());
    assertEquals(ErrorReason.ERROR_REASON_MODEL_NOT_FOUND, e.errorReason());
    assertTrue(e.description().contains("no-such-model"), e.description());
    assertFalse(e.requestId().isEmpty());
  }

  @Test
  void reasonsOfALaterVersionAreKept() {
    var info = ErrorInfo.newBuilder().setDomain("parley").setReason("OF_TOMORROW");
    var status = com.google.rpc.Status.newBuilder().setCode(14).addDetails(Any.pack(info.build())).build();

    var e = ParleyException.from(StatusProto.toStatusRuntimeException(status));

    assertEquals("OF_TOMORROW", e.reason());
    assertEquals(ErrorReason.ERROR_REASON_UNSPECIFIED, e.errorReason());
  }

  @Test
  void errorsOfGeneratedStubsAreConverted() {
    var stub = CompletionServiceGrpc.newFutureStub(PARLEY.channel());

    var e = assertThrows(ExecutionException.class, () -> stub.create(ask("no-such-model")).get());

    assertEquals("MODEL_NOT_FOUND", ParleyException.from(e).reason());
    assertFalse(ParleyException.from(e).requestId().isEmpty());
  }

  /** Takes 14 seconds: the client waits twice as long as the provider says, 7 seconds, before it gives up. */
  @Test
  void attemptsAndRetryAdviceAreGiven() throws Exception {
    int before = Gateway.upstreamCalls("overloaded").size();

    ParleyException e = failure(ask("overloaded"), RequestOptions.DEFAULT);

    assertEquals(Status.Code.UNAVAILABLE, e.code());
    assertEquals("UPSTREAM_UNAVAILABLE", e.reason());
    Attempt attempt = e.attempts().get(0);
    assertEquals("overloaded", attempt.getModel());
    assertEquals(503, attempt.getHttpStatusCode());
    assertTrue(e.isRetryable());
    assertEquals(Duration.ofSeconds(7), e.retryAfter().orElseThrow());
    assertEquals(3 * e.attempts().size(), Gateway.upstreamCalls("overloaded").size() - before);
  }

  @Test
  void fallbackAnswersInsteadOfAnOverloadedModel() {
    CompletionRequest request = ask("overloaded").toBuilder().addFallbackModels("spare").build();

    Completion completion = PARLEY.completions().create(request);

    assertEquals("From the spare model.", Messages.textOf(completion));
    assertEquals("spare", completion.getModel());
    List<Attempt> attempts = completion.getReport().getAttemptsList();
    assertEquals("UPSTREAM_UNAVAILABLE", attempts.get(0).getFailureReason());
    assertEquals(AttemptOutcome.ATTEMPT_OUTCOME_SERVED, attempts.get(attempts.size() - 1).getOutcome());
  }

  @Test
  void noRetryAfterEveryModelOfThePlanFailed() throws Exception {
    int before = Gateway.upstreamCalls("overloaded-too").size();

    ParleyException e =
        failure(ask("overloaded").toBuilder().addFallbackModels("overloaded-too").build(), RequestOptions.DEFAULT);

    long attempts = e.attempts().stream().filter(attempt -> attempt.getModel().equals("overloaded-too")).count();
    assertEquals(attempts, Gateway.upstreamCalls("overloaded-too").size() - before);
    assertFalse(e.isRetryable());
  }

  @Test
  void deadlineEndsTheCallAndTheUpstreamCall() throws Exception {
    int before = Gateway.upstreamCalls("silent").size();
    Instant start = Instant.now();

    ParleyException e =
        failure(ask("silent"), RequestOptions.DEFAULT.withTimeout(Duration.ofMillis(300)).withRequestId("java-deadline"));

    assertEquals(Status.Code.DEADLINE_EXCEEDED, e.code());
    assertEquals("java-deadline", e.requestId());
    assertTrue(Duration.between(start, Instant.now()).toMillis() < 2_000);
    Gateway.assertClosesUpstreamCalls("silent", before);
  }

  @Test
  void leavingTheLoopCancelsTheCall() throws Exception {
    int before = Gateway.upstreamCalls("endless").size();

    try (var stream = PARLEY.completions().stream(ask("endless"))) {
      for (CompletionChunk chunk : stream) {
        if (chunk.getPartDelta().getText().contains("and so on")) break;
      }
      assertEquals("open", Gateway.upstreamCalls("endless").get(before));
    }

    Gateway.assertClosesUpstreamCalls("endless", before);
  }

  @Test
  void interruptingTheThreadCancelsTheCall() throws Exception {
    int before = Gateway.upstreamCalls("endless").size();
    Thread reader = new Thread(() -> assertThrows(ParleyException.class, this::readEndlessly));

    reader.start();
    while (Gateway.upstreamCalls("endless").size() == before) Thread.sleep(20);
    reader.interrupt();

    Gateway.assertClosesUpstreamCalls("endless", before);
    reader.join(TimeUnit.SECONDS.toMillis(2));
    assertFalse(reader.isAlive());
  }

  @Test
  void closingTheClientCancelsCallsInFlight() throws Exception {
    int before = Gateway.upstreamCalls("endless").size();
    var parley = Gateway.connect();
    var stream = parley.completions().stream(ask("endless"));
    stream.iterator().next();

    parley.close();

    assertThrows(ParleyException.class, stream::completion);
    Gateway.assertClosesUpstreamCalls("endless", before);
  }

  @Test
  void brokenStreamGivesItsTextAndThenTheError() {
    StringBuilder text = new StringBuilder();

    ParleyException e =
        assertThrows(
            ParleyException.class,
            () -> {
              try (var stream = PARLEY.completions().stream(ask("breaking"))) {
                for (CompletionChunk chunk : stream) {
                  text.append(chunk.getPartDelta().getText());
                }
              }
            });

    assertEquals("The beginning of an answer", text.toString());
    assertFalse(e.reason().isEmpty());
    assertTrue(e.requestId().matches("[\\w-]+"), e.requestId());
  }

  private void readEndlessly() {
    PARLEY.completions().stream(ask("endless")).completion();
  }

  private static ParleyException failure(CompletionRequest request, RequestOptions options) {
    return assertThrows(ParleyException.class, () -> PARLEY.completions().create(request, options));
  }

  private static CompletionRequest ask(String model) {
    return Gateway.ask(model, "Tell me about tides.").build();
  }
}
