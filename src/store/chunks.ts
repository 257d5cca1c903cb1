/** Lists of at most this many: databases limit the parameters of a statement. */
export function chunksOf<T>(items: readonly T[], size = 500): T[][] {
  const chunks: T[][] = [];
  for (let start = 0; start < items.length; start += size) chunks.push(items.slice(start, start + size));
  return chunks;
}
