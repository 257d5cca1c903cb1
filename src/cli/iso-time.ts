/** A moment in Unix milliseconds as the command line shows it; null where there is none. */
export function toIso(atMs: number | undefined): string | null {
  return atMs === undefined ? null : new Date(atMs).toISOString();
}
