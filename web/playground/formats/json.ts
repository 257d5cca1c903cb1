import { base64Encode } from "@bufbuild/protobuf/wire";

/** The JSON body of a request in one of the formats. */
export type Json = Readonly<Record<string, unknown>>;

/** Returns a list; undefined for an empty one. */
export function listed<T>(items: readonly T[]): readonly T[] | undefined {
  return items.length === 0 ? undefined : items;
}

/** Returns an object without undefined fields. */
export function withoutGaps(object: Record<string, unknown>): Json {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));
}

/** Returns an object without undefined fields; undefined if none is left. */
export function orNothing(object: Record<string, unknown>): Json | undefined {
  const left = withoutGaps(object);
  return Object.keys(left).length === 0 ? undefined : left;
}

/** Returns a data URL of an image. */
export function dataUrl(mediaType: string, data: Uint8Array): string {
  return `data:${mediaType};base64,${base64Encode(data)}`;
}

/** Parses JSON of a field. */
export function parsed(json: string): unknown {
  return json === "" ? undefined : (JSON.parse(json) as unknown);
}
