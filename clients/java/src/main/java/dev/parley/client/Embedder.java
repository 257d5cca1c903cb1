package dev.parley.client;

import dev.parley.v1.EmbeddingRequest;
import dev.parley.v1.EmbeddingServiceGrpc;
import dev.parley.v1.EmbeddingServiceGrpc.EmbeddingServiceBlockingStub;
import dev.parley.v1.Embeddings;
import io.grpc.Channel;

/** Makes embeddings: vectors whose distance says how alike texts are. */
public final class Embedder {
  private final EmbeddingServiceBlockingStub stub;

  Embedder(Channel channel) {
    stub = EmbeddingServiceGrpc.newBlockingStub(channel);
  }

  /**
   * Makes one vector for each input.
   *
   * @param request the inputs and the model
   * @return the vectors, in the order of the inputs
   * @throws ParleyException when the call fails
   */
  public Embeddings create(EmbeddingRequest request) {
    return create(request, RequestOptions.DEFAULT);
  }

  /**
   * Makes one vector for each input.
   *
   * @param request the inputs and the model
   * @param options the options of this call
   * @return the vectors, in the order of the inputs
   * @throws ParleyException when the call fails
   */
  public Embeddings create(EmbeddingRequest request, RequestOptions options) {
    return new Call(options).run(stub, ready -> ready.create(request));
  }
}
