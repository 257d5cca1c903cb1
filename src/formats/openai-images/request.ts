import { type CompletionRequest, Verbosity } from "../../../gen/parley/v1/completion_pb.js";
import { Role } from "../../../gen/parley/v1/message_pb.js";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { toPart } from "../../core/chunks.ts";
import { invalidField } from "../../core/failure.ts";
import { MAX_UNRECOGNIZED } from "../../core/validate.ts";
import type { FormatInput, ReadCompletion } from "../format.ts";
import { shapeReader } from "../shape.ts";
import { ImageWriter, writeImages } from "./response.ts";
import { imageRequest, KNOWN_KEYS } from "./schema.ts";
import { toImageOptions } from "./size.ts";

const readShape = shapeReader(imageRequest, "a request for pictures");

const MAX_PICTURES = 10;

/** Converts a request to one user message whose answer has pictures. Throws `invalid_request` that names each field of a wrong type. */
export function readImageRequest({ json }: Pick<FormatInput, "json">): ReadCompletion {
  const given = readShape(json);
  if (given.prompt === "") throw invalidField("prompt", "must not be empty");
  if (given.response_format === "url")
    throw invalidField("response_format", "must be b64_json: Parley keeps no pictures that an address could point to");
  if (given.n != null && (given.n < 1 || given.n > MAX_PICTURES))
    throw invalidField("n", `must be from 1 to ${MAX_PICTURES}`);
  const options = toImageOptions(given.size ?? "auto");
  const request: CompletionRequest = {
    $typeName: "parley.v1.CompletionRequest",
    model: given.model,
    messages: [
      {
        $typeName: "parley.v1.Message",
        role: Role.USER,
        parts: [toPart({ case: "text", value: given.prompt })],
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
  return {
    request,
    stream: given.stream === true,
    unrecognized: Object.keys(given)
      .filter((key) => !KNOWN_KEYS.has(key))
      .slice(0, MAX_UNRECOGNIZED)
      .map((key) => key.slice(0, 64)),
    nameOf,
    writeWhole: (completion) => writeImages(completion, nameOf),
    writeStream: () => new ImageWriter(nameOf),
  };
}

const NAMES: Readonly<Record<string, string>> = {
  choice_count: "n",
  end_user_id: "user",
  "image_options.aspect_ratio": "size",
  "image_options.size": "size",
  image_options: "size",
};

/** The caller's name of a field. */
function nameOf(field: string): string {
  return field.startsWith("messages[0]") ? "prompt" : (NAMES[field] ?? field);
}
