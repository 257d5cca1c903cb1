import { FAILURE_TABLE } from "../../inbound/failure-table.ts";
import type { Format } from "../format.ts";
import { toErrorBody } from "../openai-error.ts";
import { readImageEdit } from "./edit.ts";
import { readImageRequest } from "./request.ts";

const GENERATIONS = "/v1/images/generations";
const EDITS = "/v1/images/edits";

/** OpenAI's pictures: a completion of one message, whose answer has images. */
export const openaiImages: Format = {
  name: "openai-images",
  routes: [
    { method: "POST", path: GENERATIONS, operation: () => ({ name: "completion", read: readImageRequest }) },
    { method: "POST", path: EDITS, operation: () => ({ name: "completion", read: readImageEdit, takesForms: true }) },
  ],
  owns: (path) => path === GENERATIONS || path === EDITS,
  writeError: (failure) => ({ status: FAILURE_TABLE[failure.code].http, body: toErrorBody(failure) }),
};
