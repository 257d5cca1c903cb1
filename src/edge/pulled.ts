/**
 * What a stream emits, for a library that asks instead of being told: it goes on when the last batch has been worked through.
 * Who returns early is waited for until the stream has ended, which `leave` must make it do.
 */
export async function* pulled<T>(
  stream: (emit: (batch: T) => Promise<void>) => Promise<void>,
  leave: () => void,
): AsyncGenerator<T> {
  let arrival = Promise.withResolvers<T | undefined>();
  let taken = (): void => undefined;
  let isOver = false;
  const end = stream((batch) => {
    arrival.resolve(batch);
    return new Promise((resolve) => {
      taken = resolve;
    });
  });
  const ended = end.then(
    () => arrival.resolve(undefined),
    (reason: unknown) => arrival.reject(reason),
  );
  try {
    for (;;) {
      const batch = await arrival.promise;
      if (batch === undefined) break;
      arrival = Promise.withResolvers();
      yield batch;
      taken();
    }
    isOver = true;
  } catch (reason) {
    isOver = true;
    throw reason;
  } finally {
    if (!isOver) {
      leave();
      taken();
      // Nobody hears how what was left ends.
      arrival.promise.catch(() => undefined);
      await ended;
    }
  }
}
