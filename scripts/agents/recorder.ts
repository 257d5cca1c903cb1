import { once } from "node:events";
import { createServer, request as openRequest } from "node:http";
import type { AddressInfo } from "node:net";

/** A request that passed, with the status of its answer. */
export interface Passed {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  body: string;
  /** Undefined until the answer begins. */
  status: number | undefined;
}

export interface Recorder {
  /** Origin that clients call in place of the target's. */
  readonly url: string;
  /** The requests since the last call of `take`. */
  take(): readonly Passed[];
  close(): Promise<void>;
}

/** Starts a server on loopback that passes every request to a target unchanged, and records it. */
export async function startRecorder(target: string): Promise<Recorder> {
  let passed: Passed[] = [];
  const server = createServer((request, response) => {
    const { method = "GET", url = "/", headers } = request;
    const record: Passed = { method, path: url.split("?")[0]!, body: "", status: undefined };
    passed.push(record);
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => (record.body = Buffer.concat(chunks).toString()));
    const onward = openRequest(new URL(url, target), { method, headers: { ...headers, host: new URL(target).host } });
    onward.on("response", (answer) => {
      record.status = answer.statusCode;
      response.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
      answer.pipe(response);
      answer.on("error", () => response.destroy());
    });
    onward.on("error", () => response.destroy());
    response.on("close", () => onward.destroy());
    request.pipe(onward);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    take() {
      const taken = passed;
      passed = [];
      return taken;
    },
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}
