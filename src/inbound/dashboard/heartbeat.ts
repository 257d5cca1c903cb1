import type { Clock } from "../../core/clock.ts";

/** After this much silence something is sent: many proxies cut connections that are silent for a minute. */
const SILENCE_MS = 15_000;

/** The messages of a source, and a sign of life whenever it is silent for long. */
export async function* withHeartbeat<T>(
  source: AsyncIterable<T>,
  { clock, sign }: { readonly clock: Clock; readonly sign: T },
): AsyncGenerator<T> {
  const messages = source[Symbol.asyncIterator]();
  let next = messages.next();
  try {
    for (;;) {
      const arrived = await beforeSilence(next, clock);
      if (arrived === undefined) {
        yield sign;
        continue;
      }
      if (arrived.done === true) return;
      yield arrived.value;
      next = messages.next();
    }
  } finally {
    // Whoever stops reading does not hear how what is under way ends.
    next.catch(() => undefined);
    await messages.return?.();
  }
}

/** What has arrived; undefined when that takes too long. Throws what the source throws. */
async function beforeSilence<T>(next: Promise<T>, clock: Clock): Promise<T | undefined> {
  let cancel = (): void => undefined;
  const silence = new Promise<undefined>((resolve) => {
    cancel = clock.after(SILENCE_MS, () => resolve(undefined));
  });
  try {
    return await Promise.race([next, silence]);
  } finally {
    cancel();
  }
}
