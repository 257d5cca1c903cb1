/** Fields whose content is the caller's own: names inside them are left alone. */
const OPAQUE = new Set([
  "args",
  "response",
  "parametersJsonSchema",
  "responseJsonSchema",
  "parameters",
  "responseSchema",
  "labels",
]);

/** `system_instruction` as `systemInstruction`. */
export function toCamelCase(name: string): string {
  return name.replace(/_([a-z0-9])/gu, (_, letter: string) => letter.toUpperCase());
}

/** `systemInstruction` as `system_instruction`: how the service's own messages spell a field. */
export function toSnakeCase(name: string): string {
  return name.replace(/[A-Z]/gu, (letter) => `_${letter.toLowerCase()}`);
}

/** The body with camel-case names throughout: the service reads both spellings. */
export function normaliseNames(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(normaliseNames);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => {
      const camel = toCamelCase(name);
      return [camel, OPAQUE.has(camel) ? inner : normaliseNames(inner)];
    }),
  );
}
