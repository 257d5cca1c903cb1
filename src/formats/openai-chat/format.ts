import { FAILURE_TABLE } from "../../inbound/failure-table.ts";
import type { Format, ReadCompletion } from "../format.ts";
import { toErrorBody } from "../openai-error.ts";
import { toModelList, toModelObject } from "./models.ts";
import { readChatRequest } from "./request.ts";
import { writeChatCompletion } from "./response.ts";
import { ChunkWriter } from "./stream.ts";

/** OpenAI's chat completions. Also the format of errors at paths of no other format. */
export const openaiChat: Format = {
  name: "openai-chat",
  routes: [
    { method: "POST", path: "/v1/chat/completions", operation: () => ({ name: "completion", read }) },
    {
      method: "POST",
      path: "/v1/route",
      operation: () => ({ name: "explain", read: ({ json }) => readChatRequest(json) }),
    },
    { method: "GET", path: "/v1/models", operation: () => ({ name: "models", write: toModelList }) },
    { method: "GET", path: "/v1/models/{id}", operation: (id) => ({ name: "model", id, write: toModelObject }) },
  ],
  owns: () => true,
  writeError: (failure) => ({ status: FAILURE_TABLE[failure.code].http, body: toErrorBody(failure) }),
};

function read({ json }: { readonly json: unknown }): ReadCompletion {
  const chat = readChatRequest(json);
  return {
    ...chat,
    writeWhole: (completion) => writeChatCompletion(completion, chat.nameOf),
    writeStream: () => new ChunkWriter(chat),
  };
}
