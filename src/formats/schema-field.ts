import type { z } from "zod";

/** A schema with what the OpenAPI document says of it, and keywords for what core checks beyond the type. */
export function field<T extends z.ZodType>(type: T, description: string, keywords: object = {}): T {
  return type.meta({ description, ...keywords });
}

/** The same for what may be left out; `null` means "not given" wherever OpenAI's own clients may send it. */
export function optional<T extends z.ZodType>(type: T, description: string, keywords: object = {}) {
  return field(type.nullish(), description, keywords);
}
