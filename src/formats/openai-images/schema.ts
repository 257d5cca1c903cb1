import { z } from "zod";

const text = (description: string) => z.string().nullish().meta({ description });

/** The request body. Ranges are core's, and stand here only to be told. */
export const imageRequest = z
  .looseObject({
    model: z
      .string()
      .meta({ description: "The model’s ID, one that `GET /v1/models` lists with the output modality `image`." }),
    prompt: z.string().meta({ description: "What the picture shows." }),
    n: z.int().nullish().meta({ description: "How many pictures. Default: 1.", minimum: 1, maximum: 10 }),
    size: text(
      "`auto`, the default, or a width and a height such as `1536x1024`: the nearest shape and size that models make.",
    ),
    response_format: z.enum(["b64_json", "url"]).nullish().meta({
      description: "`b64_json`. `url` is refused: Parley keeps no pictures.",
    }),
    stream: z.boolean().nullish().meta({ description: "Answer with server-sent events, one for each picture." }),
    user: text("Your own ID of your end user."),
    safety_identifier: text("A stable hash of your end user’s ID."),
    fallback_models: z.array(z.string()).nullish().meta({ description: "Models that are tried next, in this order." }),
    parley: z
      .looseObject({ strict: z.boolean().nullish().meta({ description: "Refuse what would otherwise be omitted." }) })
      .nullish()
      .meta({ description: "What the OpenAI format has no field for." }),
  })
  .meta({ description: "A request for pictures." });

/** Keys of a request that are read. */
export const KNOWN_KEYS: ReadonlySet<string> = new Set(Object.keys(imageRequest.shape));
