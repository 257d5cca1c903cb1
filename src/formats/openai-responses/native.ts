import type { Part } from "../../../gen/parley/v1/message_pb.js";

/** The name of this dialect in native parts and tools. */
export const DIALECT = "openai-responses";

/** Prefix of the IDs that the gateway gives to items without one. */
export const OWN_ID = "parley";

/** An item without its ID if the gateway made that. */
export function withoutOwnId<I extends object>(item: I): I {
  const { id } = item as { readonly id?: unknown };
  if (typeof id !== "string" || !id.startsWith(`${OWN_ID}_`)) return item;
  const { id: _, ...rest } = item as { readonly id?: unknown };
  return rest as I;
}

/** A native part or tool with the unchanged object. */
export function toNative(given: object): Extract<Part["kind"], { case: "native" }> {
  return {
    case: "native",
    value: { $typeName: "parley.v1.NativeBlock", dialect: DIALECT, json: JSON.stringify(given) },
  };
}
