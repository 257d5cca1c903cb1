package dev.parley.test;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.parley.client.Messages;
import dev.parley.client.ParleyClient;
import dev.parley.client.ParleyException;
import dev.parley.v1.AttemptOutcome;
import dev.parley.v1.EmbeddingRequest;
import dev.parley.v1.Embeddings;
import dev.parley.v1.ErrorReason;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;

class EmbeddingsTest {
  private static final String MODEL = "gamma-embedding-3-small";
  private static final ParleyClient PARLEY = Gateway.connect();

  @AfterAll
  static void close() {
    PARLEY.close();
  }

  @Test
  void eachInputHasAVector() {
    Embeddings made = PARLEY.embeddings().create(request(MODEL, "tide", "sea", "tide").build());

    assertEquals(MODEL, made.getModel());
    assertEquals(3, made.getEmbeddingsCount());
    assertEquals(made.getEmbeddings(0).getValuesCount(), made.getEmbeddings(1).getValuesCount());
    assertNotEquals(made.getEmbeddings(0), made.getEmbeddings(1));
    assertEquals(made.getEmbeddings(0), made.getEmbeddings(2));
    assertTrue(made.getUsage().getInputTokens() > 0);
    assertEquals(AttemptOutcome.ATTEMPT_OUTCOME_SERVED, made.getReport().getAttempts(0).getOutcome());
  }

  @Test
  void vectorsHaveTheLengthThatIsAskedFor() {
    Embeddings made = PARLEY.embeddings().create(request(MODEL, "tide").setDimensions(8).build());

    assertEquals(8, made.getEmbeddings(0).getValuesCount());
  }

  @Test
  void modelThatMakesNoneIsRefused() {
    EmbeddingRequest request = request("alpha-haiku-4.5", "tide").build();

    var e = assertThrows(ParleyException.class, () -> PARLEY.embeddings().create(request));

    assertEquals(ErrorReason.ERROR_REASON_INVALID_REQUEST, e.errorReason());
  }

  private static EmbeddingRequest.Builder request(String model, String... inputs) {
    return EmbeddingRequest.newBuilder().setModel(model).addAllInputs(Messages.textInputs(inputs));
  }
}
