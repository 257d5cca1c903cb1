/** How long a request may take to arrive, however slowly it comes, and however large it is. */
const GRACE_MS = 10_000;
const WHOLE_MS = 60_000;

/** The slowest pace after the grace, in bytes per millisecond: two thousand bits a second. */
const SLOWEST_SENDER = 0.25;

/**
 * Whether a sender only holds its request's memory: `bytes` of it have come in `elapsedMs`, and not all. A body must come
 * at the pace at which its declared length (default: not declared) takes a minute.
 */
export function arrivesTooSlowly(bytes: number, elapsedMs: number, declaredBytes = 0): boolean {
  return elapsedMs > GRACE_MS && bytes < elapsedMs * Math.max(SLOWEST_SENDER, declaredBytes / WHOLE_MS);
}
