import type { z } from "zod";
import { type CompletionRequest, Verbosity } from "../../../gen/parley/v1/completion_pb.js";
import { type Image, Role } from "../../../gen/parley/v1/message_pb.js";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { toPart } from "../../core/chunks.ts";
import { invalidField } from "../../core/failure.ts";
import { MAX_UNRECOGNIZED } from "../../core/validate.ts";
import type { FormatInput, NameOf, ReadCompletion } from "../format.ts";
import { shapeReader } from "../shape.ts";
import { type ImageEvent, ImageWriter, writeImages } from "./response.ts";
import { imageRequest, keysOf } from "./schema.ts";
import { toImageOptions } from "./size.ts";

const readShape = shapeReader(imageRequest, "a request for pictures");
const KNOWN_KEYS = keysOf(imageRequest);

const MAX_PICTURES = 10;

/** Converts a request to one user message whose answer has pictures. Throws `invalid_request` that names each field of a wrong type. */
export function readImageRequest({ json }: Pick<FormatInput, "json">): ReadCompletion {
  return toRead(readShape(json), { event: "image_generation", knownKeys: KNOWN_KEYS, pictures: [] });
}

/** A picture of an edit, and its name in the request. */
export interface Picture {
  readonly image: Image;
  readonly name: string;
}

/** The facts of a request for pictures beside its shared fields. */
interface Asked {
  /** Beginning of the names of the events of a stream. */
  readonly event: ImageEvent;
  readonly knownKeys: ReadonlySet<string>;
  /** Pictures that precede the prompt. */
  readonly pictures: readonly Picture[];
  readonly mask?: Image | undefined;
}

/** The completion for a request of the right shape. */
export function toRead(
  given: z.infer<typeof imageRequest>,
  { event, knownKeys, pictures, mask }: Asked,
): ReadCompletion {
  if (given.prompt === "") throw invalidField("prompt", "must not be empty");
  if (given.response_format === "url")
    throw invalidField("response_format", "must be b64_json: Parley keeps no pictures that an address could point to");
  if (given.n != null && (given.n < 1 || given.n > MAX_PICTURES))
    throw invalidField("n", `must be from 1 to ${MAX_PICTURES}`);
  const partialCount = given.stream === true ? (given.partial_images ?? 0) : 0;
  const options = toImageOptions(given.size ?? "auto", { mask, partialCount });
  const shown = pictures.map(({ image }) => toPart({ case: "image", value: image }));
  const request: CompletionRequest = {
    $typeName: "parley.v1.CompletionRequest",
    model: given.model,
    messages: [
      {
        $typeName: "parley.v1.Message",
        role: Role.USER,
        parts: [...shown, toPart({ case: "text", value: given.prompt })],
        name: "",
      },
    ],
    stopSequences: [],
    fallbackModels: given.fallback_models ?? [],
    modalities: [Modality.TEXT, Modality.IMAGE],
    logitBias: {},
    tools: [],
    verbosity: Verbosity.UNSPECIFIED,
    metadata: {},
    strict: given.parley?.strict === true,
    providerOptionsJson: {},
    ...(options !== undefined && { imageOptions: options }),
    ...(given.n != null && given.n > 1 && { choiceCount: given.n }),
    ...(given.user != null && { endUserId: given.user }),
    ...(given.safety_identifier != null && { safetyIdentifier: given.safety_identifier }),
  };
  const nameOf = namesOf(pictures);
  return {
    request,
    stream: given.stream === true,
    unrecognized: Object.keys(given)
      .filter((key) => !knownKeys.has(key))
      .slice(0, MAX_UNRECOGNIZED)
      .map((key) => key.slice(0, 64)),
    nameOf,
    writeWhole: (completion) => writeImages(completion, nameOf),
    writeStream: () => new ImageWriter(event, nameOf),
  };
}

const NAMES: Readonly<Record<string, string>> = {
  choice_count: "n",
  end_user_id: "user",
  "image_options.aspect_ratio": "size",
  "image_options.mask": "mask",
  "image_options.partial_count": "partial_images",
  "image_options.size": "size",
  image_options: "size",
};

/** The caller's names of fields. The last part of the message is the prompt. */
function namesOf(pictures: readonly Picture[]): NameOf {
  return (field) => {
    if (!field.startsWith("messages[0]")) return NAMES[field] ?? field;
    const [, part] = /^messages\[0\]\.parts\[(\d+)\]/.exec(field) ?? [];
    return pictures[Number(part)]?.name ?? "prompt";
  };
}
