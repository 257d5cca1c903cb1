import type { Part } from "./options.ts";
import { MARKS_IN_WHOLE_ANSWER, modelOf } from "./upstream/answers.ts";

/** What is asked of a server, how often at once, and what a right answer holds. Plain data: it crosses processes. */
export interface Load {
  readonly name: string;
  readonly part: Part;
  readonly transport: "http" | "grpc";
  readonly streamed: boolean;
  readonly connections: number;
  /** Calls under way on each connection. */
  readonly callsPerConnection: number;
  /** "once": each call is made once per slice; otherwise the next follows until the slice is over. */
  readonly repeat: "once" | "until-the-end";
  /** Also tells the mock upstream which answer is wanted. */
  readonly model: string;
  /** Marks in a right answer; in a stream one per chunk. */
  readonly marks: number;
  /** For answers that arrive at their own pace: how long one takes, in milliseconds. */
  readonly paceMs?: number;
}

/** What a load's cost is divided by. */
export function unitOf({ streamed }: Load): "request" | "chunk" {
  return streamed ? "chunk" : "request";
}

const PACED_INTERVAL_MS = 10;
const FLAT_OUT_CHUNKS = 200;

/** The loads of these parts. Paced streams last one slice. */
export function planLoads(parts: readonly Part[], { seconds }: { seconds: number }): readonly Load[] {
  const pacedChunks = Math.max(1, Math.round((seconds * 1000) / PACED_INTERVAL_MS));
  const whole = {
    streamed: false,
    repeat: "until-the-end",
    model: modelOf("whole"),
    marks: MARKS_IN_WHOLE_ANSWER,
  } as const;
  const flatOut = {
    streamed: true,
    repeat: "until-the-end",
    model: modelOf({ chunks: FLAT_OUT_CHUNKS, intervalMs: 0 }),
    marks: FLAT_OUT_CHUNKS,
  } as const;
  const loads: readonly Load[] = [
    {
      ...whole,
      name: "unary, 64 connections",
      part: "unary",
      transport: "http",
      connections: 64,
      callsPerConnection: 1,
    },
    {
      name: `100 streams paced at ${1000 / PACED_INTERVAL_MS} chunks/s each`,
      part: "stream",
      transport: "http",
      streamed: true,
      connections: 100,
      callsPerConnection: 1,
      repeat: "once",
      model: modelOf({ chunks: pacedChunks, intervalMs: PACED_INTERVAL_MS }),
      marks: pacedChunks,
      paceMs: pacedChunks * PACED_INTERVAL_MS,
    },
    {
      ...flatOut,
      name: "100 streams flat out",
      part: "stream",
      transport: "http",
      connections: 100,
      callsPerConnection: 1,
    },
    { ...whole, name: "gRPC unary, 8 × 8", part: "grpc", transport: "grpc", connections: 8, callsPerConnection: 8 },
    {
      ...flatOut,
      name: "gRPC streams flat out, 8 × 8",
      part: "grpc",
      transport: "grpc",
      connections: 8,
      callsPerConnection: 8,
    },
  ];
  return loads.filter(({ part }) => parts.includes(part));
}
