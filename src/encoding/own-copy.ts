/**
 * A copy of a text that is kept after its call, well-formed. V8's slice of a text keeps the whole text in memory: that of a name with
 * 30 MB, for example.
 */
export function ownCopy(text: string): string {
  return Buffer.from(text).toString();
}
