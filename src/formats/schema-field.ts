import type { z } from "zod";

/** A schema with its description in the OpenAPI document, and keywords for rules that core checks beyond the type. */
export function field<T extends z.ZodType>(type: T, description: string, keywords: object = {}): T {
  return type.meta({ description, ...keywords });
}

/** As `field`, for an optional field. `null` means "not given", because OpenAI's own clients send it. */
export function optional<T extends z.ZodType>(type: T, description: string, keywords: object = {}) {
  return field(type.nullish(), description, keywords);
}
