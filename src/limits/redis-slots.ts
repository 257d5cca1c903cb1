/** Number of hash slots of a cluster. */
export const SLOTS = 16_384;

/** The slot of a key. If the key has a hash tag, the text in its first pair of braces, only that is hashed. */
export function slotOf(key: string): number {
  const begin = key.indexOf("{");
  const end = begin === -1 ? -1 : key.indexOf("}", begin);
  return crc16(Buffer.from(end > begin + 1 ? key.slice(begin + 1, end) : key)) % SLOTS;
}

/** CRC-16/XMODEM. */
function crc16(bytes: Uint8Array): number {
  let crc = 0;
  for (const byte of bytes) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1) crc = ((crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021) & 0xffff;
  }
  return crc;
}

/** A range of slots, and the node that owns it, as `host:port`. */
export interface SlotRange {
  readonly from: number;
  readonly to: number;
  readonly owner: string;
}

/** Reads the reply to CLUSTER SLOTS, without slots whose node it does not name. `asked`: address of the node that replied. */
export function readSlots(reply: unknown, asked: string): SlotRange[] {
  if (!Array.isArray(reply)) return [];
  return reply.flatMap((item: unknown) => {
    if (!Array.isArray(item) || !Array.isArray(item[2])) return [];
    const [from, to] = item as unknown[];
    const [host, port] = item[2] as unknown[];
    const isRange = Number.isInteger(from) && Number.isInteger(to) && Number.isInteger(port);
    if (!isRange || host === "?" || !(typeof host === "string" || host === null)) return [];
    return [{ from: from as number, to: to as number, owner: toAddress(`${host ?? ""}:${String(port)}`, asked) }];
  });
}

/**
 * Normalizes an address from a node's reply: adds brackets around IPv6, and the node's own host where the host is missing.
 * `asked`: address of the node that replied.
 */
export function toAddress(text: string, asked: string): string {
  const at = text.lastIndexOf(":");
  const [host, port] = [text.slice(0, at), text.slice(at + 1)];
  if (host === "") return `${asked.slice(0, asked.lastIndexOf(":"))}:${port}`;
  return host.includes(":") && !host.startsWith("[") ? `[${host}]:${port}` : text;
}
