import { connect } from "node:net";
import type { Simulator } from "../../../src/simulator/server.ts";
import { HEADERS, REQUESTS, toStreamed, type DialectName } from "./simulators.ts";

/** Data received so far on a connection. */
export interface RawAnswer {
  /** Received text, including headers and chunk sizes. */
  text: string;
  /** Number of reads. */
  reads: number;
  /** Undefined while the connection is open. */
  end: "fin" | "reset" | undefined;
  close(): void;
}

export interface RawRequest {
  readonly dialect: DialectName;
  readonly delivery: "whole" | "stream";
  readonly fault: string;
}

/** Sends one request over a raw TCP socket and collects the response. */
export function sendRaw(simulator: Simulator, { dialect, delivery, fault }: RawRequest): RawAnswer {
  const { path, body } = delivery === "stream" ? toStreamed(dialect) : REQUESTS[dialect];
  const json = JSON.stringify(body);
  const headers = Object.entries({
    host: "simulator",
    connection: "close",
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(json)),
    "x-simulator-fault": fault,
    ...HEADERS[dialect],
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  const socket = connect(simulator.port, "127.0.0.1");
  const answer: RawAnswer = { text: "", reads: 0, end: undefined, close: () => void socket.destroy() };
  socket.setEncoding("utf8");
  socket.on("data", (text) => {
    answer.text += String(text);
    answer.reads += 1;
  });
  socket.on("end", () => {
    answer.end ??= "fin";
  });
  socket.on("error", () => {
    answer.end ??= "reset";
  });
  socket.write(`POST ${path} HTTP/1.1\r\n${headers.join("")}\r\n${json}`);
  return answer;
}
