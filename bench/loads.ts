import type { Conversation } from "./load/conversations.ts";
import type { Part } from "./options.ts";
import {
  MARKS_IN_WHOLE_ANSWER,
  MARKS_WITH_PICTURE,
  MARKS_WITH_TOOLS,
  modelOf,
  PICTURE_CHARACTERS,
} from "./upstream/answers.ts";

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
  /** What is asked; the short conversation unless said. */
  readonly conversation?: Conversation;
  /** What the upstream speaks; Anthropic's dialect unless said. */
  readonly dialect?: "anthropic" | "gemini";
  /** A right answer's body has at least so many bytes. */
  readonly leastBytes?: number;
  /** Measure how late each server's event loop is under this load, too. */
  readonly watchesLoop?: true;
  /** For answers that arrive at their own pace: how long one takes, in milliseconds. */
  readonly paceMs?: number;
}

/** What a load's cost is divided by. */
export function unitOf({ streamed }: Load): "request" | "chunk" {
  return streamed ? "chunk" : "request";
}

const PACED_INTERVAL_MS = 10;
/** Streams are as long as answers are, so that their beginnings and ends are as little of a chunk's cost as they are then. */
const FLAT_OUT_CHUNKS = 1_000;
const PACED_CHUNKS = 200;

const WHOLE = {
  transport: "http",
  streamed: false,
  connections: 64,
  callsPerConnection: 1,
  repeat: "until-the-end",
  model: modelOf("whole"),
  marks: MARKS_IN_WHOLE_ANSWER,
} as const;

/** The short conversation, over HTTP. */
export const UNARY: Load = { ...WHOLE, name: "unary, 64 connections", part: "unary" };

const UNARY_LOADS: readonly Load[] = [
  UNARY,
  { ...WHOLE, name: "unary, 50 messages (30 kB)", part: "unary", conversation: "fifty messages" },
  {
    ...WHOLE,
    name: "unary with tools",
    part: "unary",
    conversation: "tools",
    model: modelOf("tools"),
    marks: MARKS_WITH_TOOLS,
  },
];

/** So many streams at once. A slice lasts as long as they do. */
export function pacedStreams(part: Part, { streams, chunks }: { streams: number; chunks: number }): Load {
  return {
    name: `${streams} streams paced at ${1000 / PACED_INTERVAL_MS} chunks/s each`,
    part,
    transport: "http",
    streamed: true,
    connections: streams,
    callsPerConnection: 1,
    repeat: "once",
    model: modelOf({ chunks, intervalMs: PACED_INTERVAL_MS }),
    marks: chunks,
    paceMs: chunks * PACED_INTERVAL_MS,
  };
}

const FLAT_OUT: Load = {
  ...WHOLE,
  name: "100 streams flat out",
  part: "stream",
  streamed: true,
  connections: 100,
  model: modelOf({ chunks: FLAT_OUT_CHUNKS, intervalMs: 0 }),
  marks: FLAT_OUT_CHUNKS,
};

/** What latency is measured with: whole answers, and the first content of short streams. */
export const LATENCY_LOADS: readonly Load[] = [
  { ...UNARY, part: "latency", name: "unary, until the answer is there" },
  {
    ...UNARY,
    part: "latency",
    name: "streams of 20 chunks, until the first content is there",
    streamed: true,
    model: modelOf({ chunks: 20, intervalMs: 0 }),
    marks: 20,
  },
];

/** What one worker and several are compared with. */
export const WORKERS_LOADS: readonly Load[] = [
  { ...UNARY, part: "workers" },
  { ...FLAT_OUT, part: "workers" },
];

/** A stream that stays open and says something every so often; for whoever holds many of them open. */
export function heldStream(part: Part, everyMs: number): Load {
  return { ...UNARY, part, name: "open streams", streamed: true, model: modelOf({ everyMs }), marks: 1 };
}

const GRPC = { part: "grpc", transport: "grpc", connections: 8, callsPerConnection: 8 } as const;

const IMAGE: Load = {
  ...WHOLE,
  name: "image reply of 4 MB, 16 at once",
  part: "image",
  connections: 16,
  conversation: "picture",
  dialect: "gemini",
  model: modelOf("picture"),
  marks: MARKS_WITH_PICTURE,
  leastBytes: PICTURE_CHARACTERS,
  watchesLoop: true,
};

/** The loads of these parts under which Parley is put beside the floors. */
export function planLoads(parts: readonly Part[]): readonly Load[] {
  const loads = [
    ...UNARY_LOADS,
    pacedStreams("stream", { streams: 100, chunks: PACED_CHUNKS }),
    FLAT_OUT,
    { ...WHOLE, ...GRPC, name: "gRPC unary, 8 × 8" },
    { ...FLAT_OUT, ...GRPC, name: "gRPC streams flat out, 8 × 8" },
    IMAGE,
  ];
  return loads.filter(({ part }) => parts.includes(part));
}
