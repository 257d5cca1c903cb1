/** Size of the smallest piece that is released. */
const MIN_BYTES = 64 * 1024;

/**
 * Releases the memory of large pieces at once; they must have been sent, and are empty afterwards. V8 would release them only in a
 * collection of the whole heap, which costs more than all other work for them.
 */
export function releaseMemory(pieces: readonly Buffer[]): void {
  for (const { buffer, byteLength } of pieces) {
    // Smaller ones are cheaper to collect, and may share memory with others.
    if (byteLength < MIN_BYTES || byteLength <= buffer.byteLength / 2) continue;
    if (buffer instanceof ArrayBuffer) buffer.transfer(0);
  }
}
