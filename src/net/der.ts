/** One value in DER (X.690). */
export interface DerValue {
  readonly tag: number;
  /** The bytes of the value with its tag and length. */
  readonly whole: Buffer;
  readonly content: Buffer;
}

/** Tags of the values in certificates and revocation lists. */
export const TAG = {
  integer: 0x02,
  oid: 0x06,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  version: 0xa0,
} as const;

/** Reads the values that follow each other in `bytes`. Throws an Error when they are cut off. */
export function readDer(bytes: Buffer): DerValue[] {
  const values: DerValue[] = [];
  for (let at = 0; at < bytes.length;) {
    const tag = bytes.readUInt8(at);
    const first = bytes.readUInt8(at + 1);
    const sizeBytes = first < 0x80 ? 0 : first - 0x80;
    // No file here is longer than four bytes of length can say. 0 would be the indefinite length, which DER forbids.
    if (first >= 0x80 && (sizeBytes === 0 || sizeBytes > 4)) throw new Error("a length is not in DER");
    const from = at + 2 + sizeBytes;
    const end = from + (sizeBytes === 0 ? first : bytes.readUIntBE(at + 2, sizeBytes));
    if (end > bytes.length) throw new Error("the value is cut off");
    values.push({ tag, whole: bytes.subarray(at, end), content: bytes.subarray(from, end) });
    at = end;
  }
  return values;
}

/** Reads UTCTime or GeneralizedTime as RFC 5280 writes them, in Unix milliseconds; undefined for another value. */
export function readDerTime(value: DerValue | undefined): number | undefined {
  const text = value?.content.toString("latin1") ?? "";
  const isShort = value?.tag === TAG.utcTime;
  if (!isShort && value?.tag !== TAG.generalizedTime) return undefined;
  // RFC 5280, 4.1.2.5.1: two digits from 50 on are of the last century.
  const whole = isShort ? `${Number(text.slice(0, 2)) < 50 ? "20" : "19"}${text}` : text;
  const iso = whole.replace(/^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z");
  const ms = Date.parse(iso);
  return Number.isNaN(ms) ? undefined : ms;
}
