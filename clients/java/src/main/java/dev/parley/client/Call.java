package dev.parley.client;

import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.ForwardingClientCallListener.SimpleForwardingClientCallListener;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.AbstractBlockingStub;
import java.util.function.Function;

/** One call: sends its options, and knows its request ID when it fails. */
final class Call implements ClientInterceptor {
  static final Metadata.Key<String> REQUEST_ID = Metadata.Key.of("x-request-id", Metadata.ASCII_STRING_MARSHALLER);

  private final RequestOptions options;
  /** The caller's, then Parley's. */
  private volatile String requestId;

  Call(RequestOptions options) {
    this.options = options;
    this.requestId = options.requestId;
  }

  <S extends AbstractBlockingStub<S>, T> T run(S stub, Function<S, T> method) {
    try {
      return method.apply(attach(stub));
    } catch (StatusRuntimeException e) {
      throw failure(e);
    }
  }

  <S extends AbstractBlockingStub<S>> S attach(S stub) {
    S attached = stub.withInterceptors(this);
    return options.timeout == null ? attached : attached.withDeadlineAfter(options.timeout);
  }

  ParleyException failure(StatusRuntimeException cause) {
    return new ParleyException(cause, requestId);
  }

  /** Returns the failure of a stream that ended with OK, but without its report. */
  ParleyException truncated() {
    String message = "The stream ended without its report; the answer may be incomplete.";
    return failure(Status.DATA_LOSS.withDescription(message).asRuntimeException());
  }

  @Override
  public <Q, R> ClientCall<Q, R> interceptCall(MethodDescriptor<Q, R> method, CallOptions callOptions, Channel next) {
    return new SimpleForwardingClientCall<>(next.newCall(method, callOptions)) {
      @Override
      public void start(Listener<R> listener, Metadata headers) {
        if (options.requestId != null) headers.put(REQUEST_ID, options.requestId);
        super.start(
            new SimpleForwardingClientCallListener<>(listener) {
              @Override
              public void onHeaders(Metadata responseHeaders) {
                if (responseHeaders.containsKey(REQUEST_ID)) requestId = responseHeaders.get(REQUEST_ID);
                options.metadataListener.accept(responseHeaders);
                super.onHeaders(responseHeaders);
              }
            },
            headers);
      }
    };
  }
}
