/** How long a request may take to arrive, however slowly it comes. */
const GRACE_MS = 10_000;

/** How slowly it may come after that, in bytes per millisecond: two thousand bits a second. */
const SLOWEST_SENDER = 0.25;

/** Whether whoever sends a request only holds its place: `bytes` of it have come in `elapsedMs`, and not all. */
export function arrivesTooSlowly(bytes: number, elapsedMs: number): boolean {
  return elapsedMs > GRACE_MS && bytes < elapsedMs * SLOWEST_SENDER;
}
