package dev.parley.test;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.parley.client.Messages;
import dev.parley.client.ParleyClient;
import dev.parley.client.ParleyException;
import dev.parley.v1.Completion;
import dev.parley.v1.CompletionChunk;
import dev.parley.v1.CompletionRequest;
import dev.parley.v1.CompletionServiceGrpc.CompletionServiceImplBase;
import dev.parley.v1.CompletionStart;
import dev.parley.v1.Embedding;
import dev.parley.v1.EmbeddingInput;
import dev.parley.v1.EmbeddingRequest;
import dev.parley.v1.EmbeddingServiceGrpc.EmbeddingServiceImplBase;
import dev.parley.v1.Embeddings;
import io.grpc.ForwardingServerCall.SimpleForwardingServerCall;
import io.grpc.Grpc;
import io.grpc.InsecureServerCredentials;
import io.grpc.Metadata;
import io.grpc.Server;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerCredentials;
import io.grpc.ServerInterceptor;
import io.grpc.Status;
import io.grpc.TlsServerCredentials;
import io.grpc.stub.StreamObserver;
import java.io.InputStream;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import javax.net.ssl.KeyManagerFactory;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** How the client connects, against a server of its own. */
class ConnectionTest {
  private static final CompletionRequest REQUEST = Gateway.ask("any", "Hello").build();
  private static final Metadata.Key<String> AUTHORIZATION =
      Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);

  private final List<String> calls = Collections.synchronizedList(new ArrayList<>());
  private int failures = 0;
  private Server server;

  @TempDir Path folder;

  @AfterEach
  void stop() {
    if (server != null) server.shutdownNow();
  }

  @Test
  void tlsTrustsTheGivenAuthority() throws Exception {
    start(certificate());
    try (var parley =
        ParleyClient.builder(address(), "sk_parley_secret").trustedCertificates(folder.resolve("ca.pem")).build()) {
      assertEquals("ok", parley.completions().create(REQUEST).getId());
    }
    assertEquals(List.of("Bearer sk_parley_secret"), calls);
  }

  @Test
  void tlsIsTheDefault() throws Exception {
    start(InsecureServerCredentials.create());
    try (var parley = ParleyClient.builder(address(), "sk_parley_secret").build()) {
      var e = assertThrows(ParleyException.class, () -> parley.models().list());
      assertEquals(Status.Code.UNAVAILABLE, e.code());
    }
    assertEquals(List.of(), calls);
  }

  @Test
  void unknownAuthoritiesAreRefused() throws Exception {
    start(certificate());
    try (var parley = ParleyClient.builder(address(), "sk_parley_secret").build()) {
      var e = assertThrows(ParleyException.class, () -> parley.models().list());
      assertEquals(Status.Code.UNAVAILABLE, e.code());
      assertTrue(e.description().contains("certification path"), e.description());
    }
    assertEquals(List.of(), calls);
  }

  @Test
  void unreachableAddressIsAClearErrorSoon() throws Exception {
    int port;
    try (var socket = new ServerSocket(0)) {
      port = socket.getLocalPort();
    }
    for (String address : List.of("127.0.0.1:" + port, "no-such-host.invalid:443")) {
      try (var parley = ParleyClient.builder(address, "sk_parley_secret").plaintext().build()) {
        Instant start = Instant.now();
        var e = assertThrows(ParleyException.class, () -> parley.completions().create(REQUEST));
        assertEquals(Status.Code.UNAVAILABLE, e.code());
        assertTrue(e.description().matches(".*(" + port + "|no-such-host).*"), e.description());
        assertTrue(e.isRetryable());
        assertTrue(Duration.between(start, Instant.now()).toSeconds() < 8);
      }
    }
  }

  @Test
  void emptyOrMalformedAddressOrKeyIsRefused() {
    for (String wrong : new String[] {null, "", " ", "localhost", "localhost:65536", "http://localhost:50051"}) {
      var e = assertThrows(IllegalArgumentException.class, () -> ParleyClient.builder(wrong, "sk_parley_secret"));
      assertTrue(e.getMessage().contains("address"), e.getMessage());
    }
    for (String wrong : new String[] {null, "", " ", "sk_parley_secret\n"}) {
      var e = assertThrows(IllegalArgumentException.class, () -> ParleyClient.builder("[::1]:50051", wrong));
      assertTrue(e.getMessage().contains("API key"), e.getMessage());
      assertFalse(e.getMessage().contains("secret"));
    }
  }

  @Test
  void printedClientHasNoKey() {
    var builder = ParleyClient.builder("parley.example.com:443", "sk_parley_secret");
    try (var parley = builder.build()) {
      assertEquals("ParleyClient[parley.example.com:443]", parley.toString());
      assertFalse((builder + " " + parley.completions() + parley.key() + parley.channel()).contains("secret"));
    }
  }

  @Test
  void streamWithoutItsReportIsAnError() throws Exception {
    start(InsecureServerCredentials.create());
    try (var parley = ParleyClient.builder(address(), "sk_parley_secret").plaintext().build();
        var stream = parley.completions().stream(REQUEST)) {
      var chunks = stream.iterator();
      assertEquals("ok", chunks.next().getStart().getId());

      var e = assertThrows(ParleyException.class, chunks::hasNext);

      assertEquals(Status.Code.DATA_LOSS, e.code());
      assertTrue(e.description().contains("report"), e.description());
      assertEquals("req-1", e.requestId());
    }
  }

  @Test
  void largeRequestsAreRetriedToo() throws Exception {
    failures = 1;
    start(InsecureServerCredentials.create());
    try (var parley = ParleyClient.builder(address(), "sk_parley_secret").plaintext().build()) {
      Completion completion = parley.completions().create(Gateway.ask("any", "tide ".repeat(1_200_000)).build());

      assertEquals("ok", completion.getId());
      assertEquals(2, calls.size());
    }
  }

  @Test
  void embeddingsAreMadeInTheOrderOfTheInputs() throws Exception {
    start(InsecureServerCredentials.create());
    try (var parley = ParleyClient.builder(address(), "sk_parley_secret").plaintext().build()) {
      Embeddings made =
          parley
              .embeddings()
              .create(
                  EmbeddingRequest.newBuilder()
                      .setModel("any")
                      .addAllInputs(Messages.textInputs("tide", "sea"))
                      .build());

      assertEquals(List.of(4f), made.getEmbeddings(0).getValuesList());
      assertEquals(List.of(3f), made.getEmbeddings(1).getValuesList());
      assertEquals(List.of("Bearer sk_parley_secret"), calls);
    }
  }

  private void start(ServerCredentials credentials) throws Exception {
    server =
        Grpc.newServerBuilderForPort(0, credentials)
            .addService(new Service())
            .addService(new EmbeddingService())
            .intercept(new Recorder())
            .maxInboundMessageSize(32 << 20)
            .build()
            .start();
  }

  private String address() {
    return "localhost:" + server.getPort();
  }

  /** Makes a certificate of localhost, as the server's and as the file ca.pem. */
  private ServerCredentials certificate() throws Exception {
    Path store = folder.resolve("store.p12");
    keytool(store, "-genkeypair", "-keyalg", "EC", "-dname", "CN=localhost", "-ext", "SAN=dns:localhost");
    keytool(store, "-exportcert", "-rfc", "-file", folder.resolve("ca.pem").toString());
    KeyStore keys = KeyStore.getInstance("PKCS12");
    try (InputStream input = Files.newInputStream(store)) {
      keys.load(input, "password".toCharArray());
    }
    var factory = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
    factory.init(keys, "password".toCharArray());
    return TlsServerCredentials.newBuilder().keyManager(factory.getKeyManagers()).build();
  }

  private static void keytool(Path store, String... arguments) throws Exception {
    List<String> command = new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "keytool").toString()));
    command.addAll(List.of(arguments));
    command.addAll(List.of("-keystore", store.toString(), "-storepass", "password"));
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    String output = new String(process.getInputStream().readAllBytes());
    assertEquals(0, process.waitFor(), output);
  }

  private final class Service extends CompletionServiceImplBase {
    @Override
    public void create(CompletionRequest request, StreamObserver<Completion> response) {
      if (calls.size() <= failures) {
        response.onError(Status.UNAVAILABLE.asException());
        return;
      }
      response.onNext(Completion.newBuilder().setId("ok").build());
      response.onCompleted();
    }

    @Override
    public void stream(CompletionRequest request, StreamObserver<CompletionChunk> response) {
      response.onNext(CompletionChunk.newBuilder().setStart(CompletionStart.newBuilder().setId("ok")).build());
      response.onCompleted();
    }
  }

  /** Returns the length of each input as its vector. */
  private static final class EmbeddingService extends EmbeddingServiceImplBase {
    @Override
    public void create(EmbeddingRequest request, StreamObserver<Embeddings> response) {
      var made = Embeddings.newBuilder();
      for (EmbeddingInput input : request.getInputsList())
        made.addEmbeddings(Embedding.newBuilder().addValues(input.getText().length()));
      response.onNext(made.build());
      response.onCompleted();
    }
  }

  /** Records the key of every call, and answers with a request ID. */
  private final class Recorder implements ServerInterceptor {
    @Override
    public <Q, R> ServerCall.Listener<Q> interceptCall(
        ServerCall<Q, R> call, Metadata headers, ServerCallHandler<Q, R> next) {
      calls.add(headers.get(AUTHORIZATION));
      var answering =
          new SimpleForwardingServerCall<>(call) {
            @Override
            public void sendHeaders(Metadata responseHeaders) {
              responseHeaders.put(Metadata.Key.of("x-request-id", Metadata.ASCII_STRING_MARSHALLER), "req-1");
              super.sendHeaders(responseHeaders);
            }
          };
      return next.startCall(answering, headers);
    }
  }
}
