/**
 * Memory of a connection in megabytes, from which Node refuses its new streams, and closes it after a hundred of them. A connection of a
 * front or a proxy carries the answers of all its callers: with 64, three large ones that were not sent yet ended the calls of all
 * others. So it is twice what the large answers of a process may hold, which `admission/slot.ts` limits by their keys. Callers without a
 * key do not come near: their streams are limited, and their answers small.
 */
export const SESSION_MB = 1_024;

/**
 * Resets of a connection that nghttp2 allows. By default it closes a connection after a burst of 1,000 and more than 33 a second
 * (`streamResetBurst`, `streamResetRate` of Node's `http2.createServer`): a few callers of a front that leave ended the calls of
 * all others. The guard limits resets that cost something.
 */
export const RESETS = { streamResetBurst: 1_000_000, streamResetRate: 1_000_000 } as const;
