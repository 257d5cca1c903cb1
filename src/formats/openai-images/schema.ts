import { z } from "zod";

const text = (description: string) => z.string().nullish().meta({ description });

/** Fields of all requests for pictures. Ranges are here only for the documentation. */
const shared = {
  model: z
    .string()
    .meta({ description: "The model’s ID, one that `GET /v1/models` lists with the output modality `image`." }),
  n: z.int().nullish().meta({ description: "How many pictures. Default: 1.", minimum: 1, maximum: 10 }),
  size: text(
    "`auto`, the default, or a width and a height such as `1536x1024`: the nearest shape and size that models make.",
  ),
  response_format: z.enum(["b64_json", "url"]).nullish().meta({
    description: "`b64_json`. `url` is refused: Parley keeps no pictures.",
  }),
  stream: z.boolean().nullish().meta({ description: "Answer with server-sent events, one for each picture." }),
  partial_images: z.int().nullish().meta({
    description:
      "Of a stream: how many times to send each picture while it is being made, where the provider does. Default: 0.",
    minimum: 0,
    maximum: 3,
  }),
  user: text("Your own ID of your end user."),
  safety_identifier: text("A stable hash of your end user’s ID."),
  fallback_models: z.array(z.string()).nullish().meta({ description: "Models that are tried next, in this order." }),
  parley: z
    .looseObject({ strict: z.boolean().nullish().meta({ description: "Refuse what would otherwise be omitted." }) })
    .nullish()
    .meta({ description: "What the OpenAI format has no field for." }),
};

/** The request body of new pictures. */
export const imageRequest = z
  .looseObject({ prompt: z.string().meta({ description: "What the picture shows." }), ...shared })
  .meta({ description: "A request for pictures." });

const MASK = "A picture of the size of the first one: its transparent pixels are the ones to change.";

const prompt = z.string().meta({ description: "What to change." });

/** A picture of a request. */
export const imageReference = z
  .looseObject({
    image_url: text("A data URL, or an https address that the provider fetches."),
    file_id: text("Refused: Parley keeps no files."),
  })
  .meta({ description: "A picture." });

/** Limit of the pictures of an edit. */
export const MAX_EDITED = 16;

/** The request body of an edit as JSON. */
export const imageEditRequest = z
  .looseObject({
    prompt,
    images: z.array(imageReference).max(MAX_EDITED).meta({ description: "The pictures to edit." }),
    mask: imageReference.nullish().meta({ description: MASK }),
    ...shared,
  })
  .meta({ description: "A request to edit pictures." });

const file = (description: string) => z.string().meta({ description, format: "binary" });

/** The texts of the form of an edit. */
export const imageEditTexts = z.looseObject({ prompt, ...shared });

/** The form of an edit, only for the OpenAPI document, because files are not JSON. */
export const imageEditForm = imageEditTexts
  .extend({
    image: z
      .array(file("A picture."))
      .max(MAX_EDITED)
      .meta({ description: "The pictures to edit, each in a field `image` or `image[]`." }),
    mask: file(MASK).optional(),
  })
  .meta({ description: "The form of an edit of pictures." });

/** Keys of a schema: those that are read. */
export function keysOf(schema: z.ZodObject): ReadonlySet<string> {
  return new Set(Object.keys(schema.shape));
}
