package dev.parley.client;

import dev.parley.v1.GetCurrentKeyRequest;
import dev.parley.v1.Key;
import dev.parley.v1.KeyServiceGrpc;
import dev.parley.v1.KeyServiceGrpc.KeyServiceBlockingStub;
import io.grpc.Channel;

/** Tells about the API key that the client calls with. */
public final class CurrentKey {
  private final KeyServiceBlockingStub stub;

  CurrentKey(Channel channel) {
    stub = KeyServiceGrpc.newBlockingStub(channel);
  }

  /**
   * Returns the key: which one it is, what it may do, and its limits, but not its secret.
   *
   * @return the key
   * @throws ParleyException when the call fails
   */
  public Key get() {
    return get(RequestOptions.DEFAULT);
  }

  /**
   * Returns the key: which one it is, what it may do, and its limits, but not its secret.
   *
   * @param options the options of this call
   * @return the key
   * @throws ParleyException when the call fails
   */
  public Key get(RequestOptions options) {
    return new Call(options).run(stub, ready -> ready.getCurrent(GetCurrentKeyRequest.getDefaultInstance()));
  }
}
