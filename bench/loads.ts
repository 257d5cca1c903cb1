import type { Conversation } from "./load/conversations.ts";
import type { Part } from "./options.ts";
import {
  MARKS_IN_WHOLE_ANSWER,
  MARKS_WITH_PICTURE,
  MARKS_WITH_TOOLS,
  modelOf,
  PICTURE_CHARACTERS,
} from "./upstream/answers.ts";

/** Requests, concurrency and expected answer of a load. Plain data, because it is sent between processes. */
export interface Load {
  readonly name: string;
  readonly part: Part;
  readonly transport: "http" | "grpc";
  readonly streamed: boolean;
  readonly connections: number;
  /** Calls in flight on each connection. */
  readonly callsPerConnection: number;
  /** "once": each call is made once per slice; otherwise the next follows until the slice is over. */
  readonly repeat: "once" | "until-the-end";
  /** Also selects the mock upstream's answer. */
  readonly model: string;
  /** Marks in a correct answer; in a stream one per chunk. */
  readonly marks: number;
  /** The request; default: the short conversation. */
  readonly conversation?: Conversation;
  /** The upstream's dialect; default: Anthropic's. */
  readonly dialect?: "anthropic" | "gemini";
  /** Minimum size of a correct answer's body. */
  readonly leastBytes?: number;
  /** Also measure event loop delay under this load. */
  readonly watchesLoop?: true;
  /** Duration of a paced answer in milliseconds. */
  readonly paceMs?: number;
}

/** Unit of a load's cost. */
export function unitOf({ streamed }: Load): "request" | "chunk" {
  return streamed ? "chunk" : "request";
}

const PACED_INTERVAL_MS = 10;
/** Events per stream, similar to real answers, so that a stream's start and end have a realistic share of the cost. */
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

/** A long conversation, over HTTP. */
export const FIFTY_MESSAGES: Load = {
  ...WHOLE,
  name: "unary, 50 messages (30 kB)",
  part: "unary",
  conversation: "fifty messages",
};

const UNARY_LOADS: readonly Load[] = [
  UNARY,
  FIFTY_MESSAGES,
  { ...WHOLE, name: "unary, 75,000 tokens (300 kB)", part: "unary", conversation: "five hundred messages" },
  {
    ...WHOLE,
    name: "unary with tools",
    part: "unary",
    conversation: "tools",
    model: modelOf("tools"),
    marks: MARKS_WITH_TOOLS,
  },
];

/** A number of concurrent paced streams. A slice has their duration. */
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

/** Short streams, timed until their first content. */
export const FIRST_CONTENT: Load = {
  ...UNARY,
  part: "latency",
  name: "streams of 20 chunks, until the first content is there",
  streamed: true,
  model: modelOf({ chunks: 20, intervalMs: 0 }),
  marks: 20,
};

/** Loads of the latency measurement: whole answers, and the first content of short streams. */
export const LATENCY_LOADS: readonly Load[] = [
  { ...UNARY, part: "latency", name: "unary, until the answer is there" },
  FIRST_CONTENT,
];

/** Loads that compare the formats. */
export const FORMATS_LOADS: readonly Load[] = [
  { ...UNARY, part: "formats" },
  pacedStreams("formats", { streams: 100, chunks: PACED_CHUNKS }),
];

/** Load that compares names with several targets. */
export const TARGETS_LOAD: Load = { ...UNARY, part: "targets" };

/** Loads that compare one worker with several. */
export const WORKERS_LOADS: readonly Load[] = [
  { ...UNARY, part: "workers" },
  { ...FLAT_OUT, part: "workers" },
];

/** An endless stream with one event per interval, for measurements with many open streams. */
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

/** Loads of these parts, for the comparison with the floors. */
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
