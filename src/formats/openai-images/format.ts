import { FAILURE_TABLE } from "../../inbound/failure-table.ts";
import type { Format } from "../format.ts";
import { toErrorBody } from "../openai-error.ts";
import { readImageRequest } from "./request.ts";

const PATH = "/v1/images/generations";

/** OpenAI's pictures: a completion of one message, whose answer has images. */
export const openaiImages: Format = {
  name: "openai-images",
  routes: [{ method: "POST", path: PATH, operation: () => ({ name: "completion", read: readImageRequest }) }],
  owns: (path) => path === PATH,
  writeError: (failure) => ({ status: FAILURE_TABLE[failure.code].http, body: toErrorBody(failure) }),
};
