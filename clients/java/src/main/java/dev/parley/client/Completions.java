package dev.parley.client;

import dev.parley.v1.Completion;
import dev.parley.v1.CompletionRequest;
import dev.parley.v1.CompletionServiceGrpc;
import dev.parley.v1.CompletionServiceGrpc.CompletionServiceBlockingStub;
import dev.parley.v1.TokenCount;
import io.grpc.Channel;

/** Runs completions: a conversation goes in, a model's answer comes out. */
public final class Completions {
  private final CompletionServiceBlockingStub stub;

  Completions(Channel channel) {
    stub = CompletionServiceGrpc.newBlockingStub(channel);
  }

  /**
   * Runs a completion to its end.
   *
   * @param request the conversation, the model, and how to complete it
   * @return the completion
   * @throws ParleyException when the call fails
   */
  public Completion create(CompletionRequest request) {
    return create(request, RequestOptions.DEFAULT);
  }

  /**
   * Runs a completion to its end.
   *
   * @param request the conversation, the model, and how to complete it
   * @param options the options of this call
   * @return the completion
   * @throws ParleyException when the call fails
   */
  public Completion create(CompletionRequest request, RequestOptions options) {
    CompletionRequest limited =
        request.hasMaxResponseBytes()
            ? request
            : request.toBuilder().setMaxResponseBytes(ParleyClient.MAX_RESPONSE_BYTES).build();
    return new Call(options).run(stub, ready -> ready.create(limited));
  }

  /**
   * Begins a completion that is returned in pieces while it is made. Close the stream to cancel the call.
   *
   * @param request the conversation, the model, and how to complete it
   * @return the stream, which throws {@link ParleyException} when the call fails
   */
  public CompletionStream stream(CompletionRequest request) {
    return stream(request, RequestOptions.DEFAULT);
  }

  /**
   * Begins a completion that is returned in pieces while it is made. Close the stream to cancel the call.
   *
   * @param request the conversation, the model, and how to complete it
   * @param options the options of this call
   * @return the stream, which throws {@link ParleyException} when the call fails
   */
  public CompletionStream stream(CompletionRequest request, RequestOptions options) {
    return new CompletionStream(stub, request, new Call(options));
  }

  /**
   * Counts the input tokens of a request without running it.
   *
   * @param request the request
   * @return the count
   * @throws ParleyException when the call fails
   */
  public TokenCount count(CompletionRequest request) {
    return count(request, RequestOptions.DEFAULT);
  }

  /**
   * Counts the input tokens of a request without running it.
   *
   * @param request the request
   * @param options the options of this call
   * @return the count
   * @throws ParleyException when the call fails
   */
  public TokenCount count(CompletionRequest request, RequestOptions options) {
    return new Call(options).run(stub, ready -> ready.count(request));
  }
}
