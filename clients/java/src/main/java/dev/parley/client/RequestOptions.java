package dev.parley.client;

import io.grpc.Metadata;
import java.time.Duration;
import java.util.Objects;
import java.util.function.Consumer;

/**
 * The options of one call. Immutable: each method returns a copy.
 *
 * <pre>{@code
 * RequestOptions.DEFAULT.withTimeout(Duration.ofSeconds(20)).withRequestId("req-42")
 * }</pre>
 */
public final class RequestOptions {
  /** No options: the timeouts of the service config, and a request ID that Parley makes. */
  public static final RequestOptions DEFAULT = new RequestOptions(null, null, metadata -> {});

  /** Null for the timeout of the service config. */
  final Duration timeout;

  /** Null when the caller sends none. */
  final String requestId;

  final Consumer<Metadata> metadataListener;

  private RequestOptions(Duration timeout, String requestId, Consumer<Metadata> metadataListener) {
    this.timeout = timeout;
    this.requestId = requestId;
    this.metadataListener = metadataListener;
  }

  /**
   * Sets the time for the whole call, retries included, after which it ends with DEADLINE_EXCEEDED. Without it a
   * completion or an embedding may take 15 minutes, other calls 30 seconds.
   *
   * @param timeout the time
   * @return a copy with this timeout
   */
  public RequestOptions withTimeout(Duration timeout) {
    return new RequestOptions(Objects.requireNonNull(timeout), requestId, metadataListener);
  }

  /**
   * Sets the ID of the call, by which the operator finds it.
   *
   * @param requestId the ID
   * @return a copy with this ID
   */
  public RequestOptions withRequestId(String requestId) {
    return new RequestOptions(timeout, Objects.requireNonNull(requestId), metadataListener);
  }

  /**
   * Sets what is called with the metadata of the response: {@code x-request-id}, {@code parley-served-model} and others.
   * It is called before the first message, on a thread of gRPC, so it must not block; not for a call that fails before.
   *
   * @param listener takes the metadata
   * @return a copy with this listener
   */
  public RequestOptions withMetadataListener(Consumer<Metadata> listener) {
    return new RequestOptions(timeout, requestId, Objects.requireNonNull(listener));
  }
}
