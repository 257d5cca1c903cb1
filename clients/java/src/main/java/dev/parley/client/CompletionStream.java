package dev.parley.client;

import dev.parley.v1.Completion;
import dev.parley.v1.CompletionChunk;
import dev.parley.v1.CompletionRequest;
import dev.parley.v1.CompletionServiceGrpc.CompletionServiceBlockingStub;
import io.grpc.Context;
import io.grpc.StatusRuntimeException;
import java.util.Iterator;
import java.util.NoSuchElementException;

/**
 * A completion in pieces. A loop over it that ends without an exception has seen the whole completion.
 *
 * <pre>{@code
 * try (CompletionStream stream = parley.completions().stream(request)) {
 *   for (CompletionChunk chunk : stream) System.out.print(chunk.getPartDelta().getText());
 * }
 * }</pre>
 *
 * <p>Closing it cancels a call that has not ended, and Parley closes its call of the provider soon after. It is read
 * once, by one thread. {@link Iterator#hasNext} and {@link Iterator#next} wait for the next chunk, and throw
 * {@link ParleyException} when the call fails.
 */
public final class CompletionStream implements Iterable<CompletionChunk>, AutoCloseable {
  private final Context.CancellableContext context = Context.current().withCancellation();
  private final CompletionAccumulator received = new CompletionAccumulator();
  private final Call call;
  private final Iterator<CompletionChunk> chunks;
  private boolean isRead;

  CompletionStream(CompletionServiceBlockingStub stub, CompletionRequest request, Call call) {
    this.call = call;
    Context previous = context.attach();
    try {
      chunks = call.attach(stub).stream(request);
    } finally {
      context.detach(previous);
    }
  }

  /**
   * Returns the chunks.
   *
   * @return the only iterator of this stream
   * @throws IllegalStateException when it was called before
   */
  @Override
  public Iterator<CompletionChunk> iterator() {
    if (isRead) throw new IllegalStateException("A completion stream can be read only once.");
    isRead = true;
    return new Iterator<>() {
      @Override
      public boolean hasNext() {
        return CompletionStream.this.hasNext();
      }

      @Override
      public CompletionChunk next() {
        if (!hasNext()) throw new NoSuchElementException();
        CompletionChunk chunk = chunks.next();
        received.add(chunk);
        return chunk;
      }
    };
  }

  /**
   * Reads what is left, and returns the same message as {@link Completions#create}. It may be called before, during or
   * after a loop over the stream.
   *
   * @return the whole completion
   * @throws ParleyException when the call fails
   */
  public Completion completion() {
    isRead = true;
    while (hasNext()) received.add(chunks.next());
    return received.completion();
  }

  /** Cancels the call, unless it has ended. */
  @Override
  public void close() {
    context.cancel(null);
  }

  private boolean hasNext() {
    try {
      if (chunks.hasNext()) return true;
    } catch (StatusRuntimeException e) {
      close();
      throw call.failure(e);
    }
    close();
    if (!received.hasReport()) throw call.truncated();
    return false;
  }
}
