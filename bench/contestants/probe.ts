import { Client, credentials, Metadata } from "@grpc/grpc-js";
import type { Load } from "../loads.ts";
import { MARK } from "../upstream/answers.ts";
import { repeatsOf, toHttpRequest } from "../load/formats.ts";
import { toGrpcRequest } from "../load/requests.ts";
import type { RunningServer } from "./server.ts";

/** Sends one call with a stock client and checks the whole answer. Throws an Error with the mismatch. */
export async function probe(server: RunningServer, load: Load): Promise<void> {
  const text = load.transport === "http" ? await askHttp(server, load) : await askGrpc(server, load);
  const marks = text.split(MARK).length - 1;
  if (text.length < (load.leastBytes ?? 0)) throw new Error(`${server.name} answers with ${text.length} bytes only`);
  const expected = load.marks * repeatsOf(load, server.format);
  if (marks !== expected) throw new Error(`${server.name} answers with ${marks} marks instead of ${expected}`);
}

async function askHttp({ name, port, key, headers, format }: RunningServer, load: Load): Promise<string> {
  const { path, body } = toHttpRequest(load, format);
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
    body,
  });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${name} answers with ${response.status}: ${text.slice(0, 500)}`);
  return text;
}

function askGrpc({ port, key, grpcRequest }: RunningServer, load: Load): Promise<string> {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${key}`);
  const path = `/parley.v1.CompletionService/${load.streamed ? "Stream" : "Create"}`;
  const asBytes = (bytes: Buffer): Buffer => bytes;
  const request = toGrpcRequest(load, grpcRequest);
  return new Promise<string>((resolve, reject) => {
    let text = "";
    // On the wire a unary answer is a stream of one message.
    const call = client.makeServerStreamRequest(path, asBytes, asBytes, request, metadata);
    call.on("data", (message: Buffer) => (text += message.toString("latin1")));
    call.on("error", reject).on("end", () => resolve(text));
  }).finally(() => client.close());
}
