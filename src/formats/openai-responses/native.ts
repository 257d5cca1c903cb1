import type { Part } from "../../../gen/parley/v1/message_pb.js";

/** The name of this dialect in native parts and tools. */
export const DIALECT = "openai-responses";

/** Prefix of the IDs that the gateway gives to items without one. */
export const OWN_ID = "parley";

/** An item as the provider made it: without an ID that the gateway gave it. */
export function withoutOwnId<I extends object>(item: I): I {
  const { id } = item as { readonly id?: unknown };
  if (typeof id !== "string" || !id.startsWith(`${OWN_ID}_`)) return item;
  const { id: _, ...rest } = item as { readonly id?: unknown };
  return rest as I;
}

/** An item or a tool that the contract has no word for, as it is. */
export function toNative(given: object): Extract<Part["kind"], { case: "native" }> {
  return {
    case: "native",
    value: { $typeName: "parley.v1.NativeBlock", dialect: DIALECT, json: JSON.stringify(given) },
  };
}
