import { Agent, type IncomingMessage, request } from "node:http";
import type { Mode } from "../../../src/core/router.ts";
import type { Caller } from "./callers/caller.ts";
import type { Reply, RunningCall } from "./reply.ts";

/** One POST in a format. */
export interface HttpCall {
  readonly port: number;
  readonly caller: Pick<Caller, "read">;
  readonly path: string;
  readonly mode: Mode;
  readonly body: string | Buffer;
  /** May contain a `content-length`: then the body is sent incompletely. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Calls the HTTP entrance on a separate connection, which stays open until one side closes it. */
export function callHttp({ port, caller, path, mode, body, headers }: HttpCall): RunningCall {
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
      // An error in reading it rejects.
      response.on("end", () => resolve(Promise.try(() => readReply(response, { caller, received, mode }))));
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

function readReply(
  { statusCode: status = 0, headers }: IncomingMessage,
  { caller, received: body, mode }: Pick<HttpCall, "caller" | "mode"> & { readonly received: string },
): Reply {
  return { ...caller.read({ status, headers, body, mode }), facts: headers as Reply["facts"] };
}
