package dev.parley.client;

import com.google.gson.Gson;
import com.google.gson.reflect.TypeToken;
import io.grpc.Channel;
import io.grpc.ChannelCredentials;
import io.grpc.ClientInterceptors;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.TlsChannelCredentials;
import io.grpc.stub.MetadataUtils;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Objects;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A connection to Parley with an API key. It is thread-safe, reconnects by itself, and is meant to be shared by the
 * whole program.
 *
 * <pre>{@code
 * try (ParleyClient parley = ParleyClient.builder("parley.example.com:443", apiKey).build()) {
 *   Completion completion = parley.completions().create(request);
 * }
 * }</pre>
 *
 * <p>A failed call throws {@link ParleyException}. Calls are retried by the contract's service config.
 */
public final class ParleyClient implements AutoCloseable {
  /** The largest message that is received. */
  static final int MAX_RESPONSE_BYTES = 64 << 20;

  /** The largest request that Parley takes. A request beyond gRPC's own limit of 1 MiB would not be retried. */
  private static final int MAX_REQUEST_BYTES = 32 << 20;

  private static final Pattern HOST_AND_PORT = Pattern.compile("[^/\\s]+:(\\d{1,5})");
  private static final Pattern API_KEY = Pattern.compile("[!-~]+");
  private static final Metadata.Key<String> AUTHORIZATION =
      Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);

  private final ManagedChannel connection;
  private final Channel channel;
  private final Completions completions;
  private final Embedder embeddings;
  private final Models models;
  private final CurrentKey key;

  private ParleyClient(Builder builder) {
    connection =
        Grpc.newChannelBuilder(builder.address, builder.credentials)
            .defaultServiceConfig(readServiceConfig())
            .maxInboundMessageSize(MAX_RESPONSE_BYTES)
            .perRpcBufferLimit(MAX_REQUEST_BYTES)
            .retryBufferSize(2L * MAX_REQUEST_BYTES)
            .build();
    Metadata metadata = new Metadata();
    metadata.put(AUTHORIZATION, "Bearer " + builder.apiKey);
    channel = ClientInterceptors.intercept(connection, MetadataUtils.newAttachHeadersInterceptor(metadata));
    completions = new Completions(channel);
    embeddings = new Embedder(channel);
    models = new Models(channel);
    key = new CurrentKey(channel);
  }

  /**
   * Begins a client, which uses TLS unless {@link Builder#plaintext} is called.
   *
   * @param address the host and port of Parley's gRPC endpoint, such as {@code parley.example.com:443}
   * @param apiKey the API key, {@code sk_parley_…}
   * @return a builder
   * @throws IllegalArgumentException when one of them is empty or malformed
   */
  public static Builder builder(String address, String apiKey) {
    return new Builder(address, apiKey);
  }

  /**
   * Returns the service for completions.
   *
   * @return the service
   */
  public Completions completions() {
    return completions;
  }

  /**
   * Returns the service for embeddings.
   *
   * @return the service
   */
  public Embedder embeddings() {
    return embeddings;
  }

  /**
   * Returns the service for models.
   *
   * @return the service
   */
  public Models models() {
    return models;
  }

  /**
   * Returns the service for the client's own key.
   *
   * @return the service
   */
  public CurrentKey key() {
    return key;
  }

  /**
   * Returns the channel, which sends the key, for generated stubs: the asynchronous ones of {@code dev.parley.v1}, or
   * other services such as {@code grpc.health.v1}. Their errors are gRPC's; see {@link ParleyException#from}.
   *
   * @return the channel
   */
  public Channel channel() {
    return channel;
  }

  /** Closes the connection. Calls in flight are cancelled. */
  @Override
  public void close() {
    connection.shutdownNow();
  }

  /** Returns the address, without the key. */
  @Override
  public String toString() {
    return "ParleyClient[" + connection.authority() + "]";
  }

  private static Map<String, ?> readServiceConfig() {
    var json = ParleyClient.class.getResourceAsStream("/parley/v1/service_config.json");
    try (var reader = new InputStreamReader(json, StandardCharsets.UTF_8)) {
      return new Gson().fromJson(reader, new TypeToken<Map<String, Object>>() {});
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Builds a {@link ParleyClient}. */
  public static final class Builder {
    private final String address;
    private final String apiKey;
    private ChannelCredentials credentials = TlsChannelCredentials.create();

    private Builder(String address, String apiKey) {
      this.address = Objects.requireNonNullElse(address, "");
      this.apiKey = Objects.requireNonNullElse(apiKey, "");
      // For a port out of range gRPC waits forever.
      Matcher hostAndPort = HOST_AND_PORT.matcher(this.address);
      if (!hostAndPort.matches() || Integer.parseInt(hostAndPort.group(1)) > 0xFFFF) {
        throw new IllegalArgumentException(
            "The address of Parley is \"" + this.address + "\": pass host and port, such as parley.example.com:443.");
      }
      if (!API_KEY.matcher(this.apiKey).matches()) {
        throw new IllegalArgumentException("The API key is empty or has spaces: pass a key of Parley, sk_parley_….");
      }
    }

    /**
     * Sends everything unencrypted, the key too: for a Parley on the same machine or in a private network.
     *
     * @return this builder
     */
    public Builder plaintext() {
      credentials = InsecureChannelCredentials.create();
      return this;
    }

    /**
     * Trusts these certificate authorities instead of those of the Java platform.
     *
     * @param pem a file of certificates
     * @return this builder
     * @throws IOException when the file cannot be read
     */
    public Builder trustedCertificates(Path pem) throws IOException {
      try (var certificates = Files.newInputStream(pem)) {
        credentials = TlsChannelCredentials.newBuilder().trustManager(certificates).build();
      }
      return this;
    }

    /**
     * Returns the client. It connects with the first call.
     *
     * @return the client
     */
    public ParleyClient build() {
      return new ParleyClient(this);
    }
  }
}
