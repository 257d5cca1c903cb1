import { FAILURE_TABLE } from "../../inbound/failure-table.ts";
import type { Format, ReadEmbedding } from "../format.ts";
import { toErrorBody } from "../openai-error.ts";
import { readEmbeddingRequest } from "./request.ts";
import { writeEmbeddings } from "./response.ts";

const PATH = "/v1/embeddings";

/** OpenAI's embeddings. */
export const openaiEmbeddings: Format = {
  name: "openai-embeddings",
  routes: [{ method: "POST", path: PATH, operation: () => ({ name: "embedding", read }) }],
  owns: (path) => path === PATH,
  writeError: (failure) => ({ status: FAILURE_TABLE[failure.code].http, body: toErrorBody(failure) }),
};

function read({ json }: { readonly json: unknown }): ReadEmbedding {
  const given = readEmbeddingRequest(json);
  return { ...given, write: (embeddings) => writeEmbeddings(embeddings, given) };
}
