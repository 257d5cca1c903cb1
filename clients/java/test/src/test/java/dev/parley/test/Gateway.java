package dev.parley.test;

import static org.junit.jupiter.api.Assertions.fail;

import com.google.gson.Gson;
import dev.parley.client.Messages;
import dev.parley.client.ParleyClient;
import dev.parley.v1.CompletionRequest;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Set;

/** The gateway that the tests run against, and what its provider has seen. */
final class Gateway {
  static final String ADDRESS = System.getenv("PARLEY_GRPC");
  static final String API_KEY = System.getenv("PARLEY_API_KEY");

  private Gateway() {}

  static ParleyClient connect() {
    return ParleyClient.builder(ADDRESS, API_KEY).plaintext().build();
  }

  static CompletionRequest.Builder ask(String model, String question) {
    return CompletionRequest.newBuilder().setModel(model).addMessages(Messages.userText(question));
  }

  /** Returns the states of a model's upstream calls: open, answered, closed. */
  static List<String> upstreamCalls(String model) throws Exception {
    var request = HttpRequest.newBuilder(URI.create(System.getenv("PARLEY_UPSTREAM") + "/calls/" + model)).build();
    var body = HttpClient.newHttpClient().send(request, BodyHandlers.ofString()).body();
    return List.of(new Gson().fromJson(body, String[].class));
  }

  /** Asserts that the upstream calls of a model since {@code before} are closed by the gateway within 2 seconds. */
  static void assertClosesUpstreamCalls(String model, int before) throws Exception {
    Instant end = Instant.now().plus(Duration.ofSeconds(2));
    while (true) {
      List<String> calls = upstreamCalls(model);
      List<String> since = calls.subList(before, calls.size());
      if (Set.copyOf(since).equals(Set.of("closed"))) return;
      if (Instant.now().isAfter(end)) fail("Upstream calls are " + calls + ", of which " + before + " came before.");
      Thread.sleep(20);
    }
  }
}
