import { FAILURE_TABLE } from "../../inbound/failure-table.ts";
import type { Format } from "../format.ts";
import { toErrorBody } from "../openai-error.ts";
import { readEmbeddingRequest } from "./request.ts";

const PATH = "/v1/embeddings";

/** OpenAI's embeddings. */
export const openaiEmbeddings: Format = {
  name: "openai-embeddings",
  routes: [{ method: "POST", path: PATH, operation: () => ({ name: "embedding", read: readEmbeddingRequest }) }],
  owns: (path) => path === PATH,
  writeError: (failure) => ({ status: FAILURE_TABLE[failure.code].http, body: toErrorBody(failure) }),
};
