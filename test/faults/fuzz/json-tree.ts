/**
 * A JSON text as a tree that keeps its exact spelling: numbers and strings as written, duplicate keys, and no special
 * JavaScript names.
 */
export type JsonTree =
  | { readonly kind: "object"; readonly fields: (readonly [key: string, value: JsonTree])[] }
  | { readonly kind: "list"; readonly items: JsonTree[] }
  /** A string, a number, a literal, or any text in their place; written unchanged. */
  | { readonly kind: "text"; readonly text: string };

/** Parses the text; undefined if `JSON.parse` refuses it. */
export function parseTree(text: string): JsonTree | undefined {
  try {
    return toTree(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** Converts a plain value. */
export function toTree(value: unknown): JsonTree {
  if (Array.isArray(value)) return { kind: "list", items: value.map(toTree) };
  if (typeof value !== "object" || value === null) return { kind: "text", text: JSON.stringify(value) };
  return { kind: "object", fields: Object.entries(value).map(([key, inner]) => [JSON.stringify(key), toTree(inner)]) };
}

/** Formats a tree. */
export function writeTree(tree: JsonTree): string {
  switch (tree.kind) {
    case "text":
      return tree.text;
    case "list":
      return `[${tree.items.map(writeTree).join(",")}]`;
    case "object":
      return `{${tree.fields.map(([key, value]) => `${key}:${writeTree(value)}`).join(",")}}`;
  }
}
