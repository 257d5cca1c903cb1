import { z } from "zod";

/** A structure of several types, for structured output. */
export const Lighthouse = z.object({
  name: z.string(),
  height: z.number(),
  keepers: z.array(z.object({ name: z.string(), retired: z.boolean() })),
  light: z.enum(["fixed", "flashing"]),
  fogHorn: z.string().nullable(),
});
