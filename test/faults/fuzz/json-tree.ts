/**
 * A JSON text taken apart without being understood: numbers and strings stay as they are written, keys may be there
 * twice, and nothing is a name of JavaScript's. So that what is damaged is written exactly so.
 */
export type JsonTree =
  | { readonly kind: "object"; readonly fields: (readonly [key: string, value: JsonTree])[] }
  | { readonly kind: "list"; readonly items: JsonTree[] }
  /** A string, a number, a word, or what stands in their place: written as it is. */
  | { readonly kind: "text"; readonly text: string };

/** A tree of what `JSON.parse` reads from the text; undefined when that is nothing. */
export function parseTree(text: string): JsonTree | undefined {
  try {
    return toTree(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** The tree of a plain value. */
export function toTree(value: unknown): JsonTree {
  if (Array.isArray(value)) return { kind: "list", items: value.map(toTree) };
  if (typeof value !== "object" || value === null) return { kind: "text", text: JSON.stringify(value) };
  return { kind: "object", fields: Object.entries(value).map(([key, inner]) => [JSON.stringify(key), toTree(inner)]) };
}

/** The text of a tree. */
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
