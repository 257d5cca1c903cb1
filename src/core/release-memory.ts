/** Size of the smallest piece that is released. */
const MIN_BYTES = 64 * 1024;

/**
 * Releases the memory of large pieces at once; they must have been sent, and are empty afterwards. V8 would release them only in a
 * collection of the whole heap, which costs more than all other work for them.
 */
export function releaseMemory(pieces: readonly Uint8Array[]): void {
  for (const { buffer, byteLength } of pieces) {
    // Smaller ones are cheaper to collect, and may share memory with others.
    if (byteLength < MIN_BYTES || byteLength <= buffer.byteLength / 2) continue;
    if (buffer instanceof ArrayBuffer) buffer.transfer(0);
  }
}

/**
 * Releases the bytes of a binary message that was decoded. Its fields of bytes, which are parts of these, get memory of their own; one that
 * has most of the message keeps it.
 */
export function releaseDecoded(bytes: Uint8Array, message: object): void {
  if (bytes.length < MIN_BYTES || separate(message, bytes.buffer)) return;
  releaseMemory([bytes]);
}

/** Copies the fields of bytes that share a buffer, but for one that has most of it. Returns whether there is such a one. */
function separate(holder: object, buffer: ArrayBufferLike): boolean {
  const fields = holder as Record<string, unknown>;
  let isKept = false;
  for (const name in fields) {
    const value = fields[name];
    if (typeof value !== "object" || value === null) continue;
    if (!(value instanceof Uint8Array)) isKept = separate(value, buffer) || isKept;
    else if (value.buffer !== buffer) continue;
    else if (value.length > buffer.byteLength / 2) isKept = true;
    else fields[name] = new Uint8Array(value);
  }
  return isKept;
}
