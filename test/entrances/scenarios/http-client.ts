import { Agent, request } from "node:http";
import type { Mode } from "../../../src/core/router.ts";
import { readHttpReply } from "./http-reply.ts";
import type { Reply, RunningCall } from "./reply.ts";

/** One POST to `/v1/chat/completions`. */
export interface HttpCall {
  readonly port: number;
  readonly path?: string | undefined;
  readonly mode: Mode;
  readonly body: string | Buffer;
  /** May contain a `content-length`: then the body is sent incompletely. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Calls the HTTP entrance on a separate connection, which stays open until one side closes it. */
export function callHttp({ port, path = "/v1/chat/completions", mode, body, headers }: HttpCall): RunningCall {
  const agent = new Agent({ keepAlive: true });
  const call = request({
    agent,
    port,
    host: "127.0.0.1",
    path,
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(headers["transfer-encoding"] === undefined && { "content-length": Buffer.byteLength(body) }),
      ...headers,
    },
  });
  let received = "";
  const reply = new Promise<Reply>((resolve, reject) => {
    call.on("error", reject);
    call.on("response", (response) => {
      response.setEncoding("utf8");
      response.on("data", (text: string) => {
        received += text;
      });
      response.on("error", reject);
      response.on("end", () => resolve(readHttpReply(response, received, mode)));
    });
  });
  if (headers["content-length"] === undefined) call.end(body);
  else call.write(body);
  return {
    reply,
    begun: () => received.includes("data: {"),
    closedByGateway: () => call.socket?.destroyed === true,
    leave() {
      call.destroy();
      agent.destroy();
    },
  };
}
