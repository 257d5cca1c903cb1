import type { Duration } from "@bufbuild/protobuf/wkt";

const NANOS = 1_000_000_000n;

/** The duration in the JSON form of protobuf, without trailing zeros: `300s`, `12.5s`. */
export function toDurationText({ seconds, nanos }: Duration): string {
  const total = seconds * NANOS + BigInt(nanos);
  const [sign, size] = total < 0n ? ["-", -total] : ["", total];
  const fraction = String(size % NANOS)
    .padStart(9, "0")
    .replace(/0+$/, "");
  return `${sign}${size / NANOS}${fraction === "" ? "" : `.${fraction}`}s`;
}
