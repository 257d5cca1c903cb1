import { z } from "zod";
import { MAX_INPUTS } from "../../core/validate-embedding.ts";

/** The request body. Core checks ranges; they are repeated here only for the documentation. */
export const embeddingRequest = z
  .looseObject({
    model: z
      .string()
      .meta({ description: "The model’s ID, one that `GET /v1/models` lists with the output modality `embedding`." }),
    input: z.union([z.string(), z.array(z.string())]).meta({
      description: `A text, or 1 to ${MAX_INPUTS} of them; none empty. Token IDs are refused: they are those of one model.`,
    }),
    encoding_format: z.enum(["float", "base64"]).nullish().meta({
      description:
        "How vectors are written: as a list of numbers, the default, or as base64 of their 32-bit little-endian floats, which OpenAI’s clients ask for and decode.",
    }),
    dimensions: z
      .int()
      .nullish()
      .meta({ description: "The length of the vectors. Default: the model’s own.", minimum: 1 }),
    user: z.string().nullish().meta({ description: "Your own ID of your end user." }),
    parley: z
      .looseObject({ strict: z.boolean().nullish().meta({ description: "Refuse what would otherwise be omitted." }) })
      .nullish()
      .meta({ description: "What the OpenAI format has no field for." }),
  })
  .meta({ description: "A request for embeddings." });

/** Keys of a request that are read. */
export const KNOWN_KEYS: ReadonlySet<string> = new Set(Object.keys(embeddingRequest.shape));
