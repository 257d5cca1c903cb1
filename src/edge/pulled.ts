/**
 * What a stream emits, for a library that asks instead of being told: it goes on when the last batch has been worked through.
 * Who returns early, or fails, is waited for until the stream has ended, which `leave` must make it do.
 */
export async function* pulled<T>(
  stream: (emit: (batch: T) => Promise<void>) => Promise<void>,
  leave: () => void,
): AsyncGenerator<T> {
  let arrival = Promise.withResolvers<T | undefined>();
  let taken = (): void => undefined;
  let isOver = false;
  const ended = stream((batch) => {
    arrival.resolve(batch);
    return new Promise((resolve) => {
      taken = resolve;
    });
  })
    .finally(() => {
      isOver = true;
    })
    .then(
      () => arrival.resolve(undefined),
      (reason: unknown) => arrival.reject(reason),
    );
  try {
    for (;;) {
      const batch = await arrival.promise;
      if (batch === undefined) return;
      arrival = Promise.withResolvers();
      yield batch;
      taken();
    }
  } finally {
    if (!isOver) {
      // Nobody hears how what was left ends.
      arrival.promise.catch(() => undefined);
      leave();
      taken();
      await ended;
    }
  }
}
