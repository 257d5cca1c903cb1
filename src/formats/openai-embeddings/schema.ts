import { z } from "zod";
import { MAX_INT32 } from "../../core/validate.ts";
import { MAX_INPUTS } from "../../core/validate-embedding.ts";
import { field, optional } from "../schema-field.ts";

/** The body of `POST /v1/embeddings`. Unknown keys are kept: `request.ts` reports them. */
export const embeddingRequest = field(
  z.looseObject({
    model: field(z.string(), "The model’s ID, one that makes embeddings."),
    input: field(z.union([z.string(), z.array(z.string())]), "The text, or up to 2,048 of them. Tokens are refused.", {
      maxItems: MAX_INPUTS,
    }),
    encoding_format: optional(
      z.enum(["float", "base64"]),
      "`base64`: each vector as the base64 of its 32-bit floats, little-endian.",
      { default: "float" },
    ),
    dimensions: optional(z.int(), "The length of the vectors; the model’s own without it.", {
      minimum: 1,
      maximum: MAX_INT32,
    }),
    user: optional(z.string(), "Your own ID of your end user, for providers that take one."),
    parley: optional(
      z.looseObject({
        strict: optional(z.boolean(), "Refuse what would otherwise be left out.", { default: false }),
      }),
      "What no field of the OpenAI format can say.",
    ),
  }),
  "What to embed, and with which model.",
);

export const KNOWN_KEYS: ReadonlySet<string> = new Set(Object.keys(embeddingRequest.shape));
