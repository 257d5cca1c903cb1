import { readFileSync } from "node:fs";
import { freemem, totalmem } from "node:os";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { constrainedMemory, memoryUsage, threadCpuUsage } from "node:process";
import { getHeapSpaceStatistics, getHeapStatistics } from "node:v8";
import type { Config } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import {
  AdmissionControl,
  type AdmissionPorts,
  type OverloadChange,
  type OverloadOptions,
  type OverloadState,
} from "../admission/admission-control.ts";
import { MAX_BODY_BYTES } from "../inbound/http/exchange.ts";
import { AnswerMemory } from "../scheduling/answer-memory.ts";
import type { ReadScheduler } from "../scheduling/read-scheduler.ts";
import type { Logger } from "../telemetry/logger.ts";

interface OverloadPorts {
  readonly clock: Clock;
  readonly log: Logger;
  /** Limit of completions of this process. */
  readonly maxCalls: number;
  /** Missing in a front, which reads no providers' answers. */
  readonly readScheduler?: ReadScheduler;
  /** As that of the admission control. */
  readonly accountConcurrency: () => number | undefined;
  /** As that of the admission control. */
  readonly waited: (durationMs: number) => void;
}

const MIB = 1024 * 1024;

/** Memory of an idle process. */
const IDLE_BYTES = 128 * MIB;

/** Memory of the parent of workers, beside what they share. */
const PARENT_BYTES = 64 * MIB;

/** Builds the admission control of this process, which logs when shedding begins and ends. */
export function createAdmission(
  { overload, workers }: Pick<Config, "overload" | "workers">,
  { clock, log, maxCalls, readScheduler, accountConcurrency, waited }: OverloadPorts,
): AdmissionControl {
  const containerBytes = containerShareBytes(workers);
  const memoryBytes = Math.min(containerBytes, totalmem() / workers);
  const arrivingBytes = arrivingBytesOf(memoryBytes);
  const largest = largestOf(memoryBytes);
  if (largest !== undefined)
    log.warn(
      { memory_mib: toMib(memoryBytes), body_mib: toMib(largest.body) },
      "memory is small: larger request bodies are refused; give each process 512 MiB",
    );
  return new AdmissionControl(
    { ...overload, maxCalls, accountConcurrency, arrivingBytes, ...(largest !== undefined && { largest }) },
    {
      clock,
      load: watchLoad(readScheduler),
      memoryShare: watchMemory(containerBytes, {
        failed: (error) => log.error({ cause: String(error) }, "memory cannot be measured; its last values are used"),
      }),
      atEndOfTurn: (callback) => void setImmediate(callback),
      changed: (change) => logChange(log, change),
      waited,
    },
  );
}

/**
 * Limits for request bodies that arrive at the same time (an eighth of the memory, at most 512 MiB), and for those of all calls in
 * flight: a quarter, because each is in memory up to three times, as it came, as its parts and translated. Below 512 MiB less: a sixth
 * and a third of what an idle process leaves.
 */
export function arrivingBytesOf(memoryBytes: number): OverloadOptions["arrivingBytes"] {
  const held = heldBytesOf(memoryBytes);
  const process = Math.min(held / 2, 512 * MIB);
  return { process, account: Math.min(process / 2, 96 * MIB), key: Math.min(process / 4, 40 * MIB), held };
}

function heldBytesOf(memoryBytes: number): number {
  return Math.min(memoryBytes / 4, Math.max(memoryBytes - IDLE_BYTES, 0) / 3);
}

/**
 * Limits of one body and of one expected answer: a quarter and half of the bytes of all calls in flight. Undefined with memory for every
 * request that the entrances accept.
 */
export function largestOf(memoryBytes: number): OverloadOptions["largest"] {
  const held = heldBytesOf(memoryBytes);
  return held >= 4 * MAX_BODY_BYTES ? undefined : { body: held / 4, answer: held / 2 };
}

function toMib(bytes: number): number {
  return Math.floor(bytes / MIB);
}

/**
 * Bounds the providers' large answers in memory: an eighth of V8's heap limit or of the memory, whichever is less. While it is read and
 * written, an answer is in memory several times, in part on the heap.
 */
export function createAnswerMemory({ workers }: Pick<Config, "workers">, clock: Clock): AnswerMemory {
  const memoryBytes = Math.min(containerShareBytes(workers), totalmem() / workers);
  // Less where memory is small, and an idle process has much of it.
  const heapBytes = Math.max(getHeapStatistics().heap_size_limit - 3 * MAX_SEMI_SPACE_BYTES, 0);
  const process = Math.min(heapBytes, memoryBytes) / 8;
  return new AnswerMemory({ process, provider: process / 2, account: process / 2, key: process / 4 }, clock);
}

/** Limit of V8's old generation: a process ends when it is full. */
function oldGenerationBytes(): number {
  const memoryBytes = Math.min(constrainedMemory() || Infinity, totalmem());
  return getHeapStatistics().heap_size_limit - youngGenerationBytes(memoryBytes);
}

/** Young generation's part of V8's heap limit: three semi-spaces of a 128th of the memory, rounded up to a power of two. */
export function youngGenerationBytes(memoryBytes: number): number {
  return 3 * Math.min(2 ** Math.ceil(Math.log2(memoryBytes / 128)), MAX_SEMI_SPACE_BYTES);
}

/** Share of one of the processes that serve in their container's memory; Infinity outside of containers. */
function containerShareBytes(workers: number): number {
  const bytes = constrainedMemory();
  // Without a limit, the system reports a number larger than the machine's memory, or 0.
  return bytes > 0 && bytes < totalmem() ? shareOf(bytes, workers) : Infinity;
}

/** Share of one of the processes that serve in the memory of all, which several of them have together with their parent. */
export function shareOf(bytes: number, workers: number): number {
  return workers === 1 ? bytes : Math.max(bytes - PARENT_BYTES, 0) / workers;
}

/** Limit of the computed slowdown: the two clocks may have different resolutions. */
const MAX_SLOWDOWN = 10;
const RESOLUTION_MS = 10;

/**
 * Measures the event loop since the last call. Time in which other programs had the processor is not counted as delay:
 * refusing requests does not reduce it.
 */
function watchLoad(readScheduler: ReadScheduler | undefined): AdmissionPorts["load"] {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  let before = performance.eventLoopUtilization();
  let usedBefore = threadCpuUsage();
  return () => {
    histogram.enable();
    const now = performance.eventLoopUtilization();
    const used = threadCpuUsage();
    const { utilization, active } = performance.eventLoopUtilization(now, before);
    const usedMs = (used.user - usedBefore.user + used.system - usedBefore.system) / 1000;
    const slowdown = Math.min(Math.max(active / Math.max(usedMs, 0.001), 1), MAX_SLOWDOWN);
    const lateMs = histogram.count === 0 ? 0 : histogram.max / 1e6 - RESOLUTION_MS;
    const delayMs = Math.max(lateMs, readScheduler?.takeLongestWaitMs() ?? 0) / slowdown;
    histogram.reset();
    before = now;
    usedBefore = used;
    return { busyShare: utilization, delayMs };
  };
}

/** V8's limit of a semi-space. */
const MAX_SEMI_SPACE_BYTES = 32 * MIB;

/** Memory that the process uses of V8's heap and of the machine. */
interface MemoryUse {
  /** Used bytes of V8's old generation. */
  readonly heapBytes: number;
  readonly heapLimitBytes: number;
  /** Memory of this process, with buffers outside of V8's heap and without file pages, which can be reclaimed. */
  readonly ownBytes: number;
  /** Infinity outside of containers. */
  readonly containerBytes: number;
  /** Free memory of the machine. */
  readonly freeBytes: number;
}

/** Used share of the scarcest memory: 0 to 1. */
function memoryShare({ heapBytes, heapLimitBytes, ownBytes, containerBytes, freeBytes }: MemoryUse): number {
  return Math.max(heapBytes / heapLimitBytes, ownBytes / Math.min(containerBytes, ownBytes + freeBytes));
}

/** Below this share of the available memory, resident memory (which includes file pages) is exact enough. */
const EXACT_SHARE = 0.5;

/** The system's counters are read once in this many measurements: reading takes up to a millisecond. */
const SYSTEM_EVERY = 5;

interface MemoryPorts {
  /** Called once, when the system's counters cannot be read: the last values stay. Reading takes a file descriptor. */
  readonly failed: (error: unknown) => void;
  /** Default: the system's. */
  readonly readSystem?: typeof readSystemMemory;
}

/** Measures V8's heap at every call, because the process ends when it is full. Never throws. */
export function watchMemory(
  containerBytes: number,
  { failed, readSystem = readSystemMemory }: MemoryPorts,
): () => number {
  const heapLimitBytes = oldGenerationBytes();
  let calls = 0;
  let system = { ownBytes: 0, freeBytes: 0 };
  let hasFailed = false;
  const read = (): void => {
    try {
      system = readSystem(containerBytes);
    } catch (error) {
      if (!hasFailed) failed(error);
      hasFailed = true;
    }
  };
  return () => {
    if (calls % SYSTEM_EVERY === 0) read();
    calls += 1;
    const old = getHeapSpaceStatistics().filter(({ space_name: name }) => !name.startsWith("new_"));
    const heapBytes = sum(old.map(({ space_used_size: bytes }) => bytes));
    return memoryShare({ heapBytes, heapLimitBytes, containerBytes, ...system });
  };
}

function readSystemMemory(containerBytes: number): Pick<MemoryUse, "ownBytes" | "freeBytes"> {
  const rss = memoryUsage.rss();
  const freeBytes = freemem();
  const isExactEnough = rss < EXACT_SHARE * Math.min(containerBytes, rss + freeBytes);
  return { ownBytes: isExactEnough ? rss : readOwnBytes(), freeBytes };
}

/** Reads the anonymous memory; takes up to a millisecond. */
function readOwnBytes(): number {
  try {
    const [, kibibytes] = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "latin1")) ?? [];
    if (kibibytes !== undefined) return Number(kibibytes) * 1024;
  } catch {
    // Not Linux.
  }
  return memoryUsage.rss();
}

function logChange(log: Logger, change: OverloadChange): void {
  if (change.what === "began") log.warn({ reason: change.reason }, "overload: completions are refused");
  else if (change.what === "ended") log.info({ refused: change.refused }, "overload is over");
  else {
    const line = { used_percent: Math.round(change.share * 100) };
    if (change.isShort) log.warn(line, "memory is short: keys with the largest requests in flight begin no completion");
    else log.info(line, "memory is enough again");
  }
}

/** The overload facts of `/readyz`. */
export interface OverloadFacts {
  readonly shedding: boolean;
  readonly waiting: number;
  /** Limit of completions in flight. */
  readonly limit: number;
  readonly refused: number;
  readonly memory: "enough" | "short";
}

/** Converts the state into the facts of `/readyz`. */
export function toFacts({ shedding, waiting, limit, refused, memoryIsShort }: OverloadState): OverloadFacts {
  return { shedding, waiting, limit, refused: sum(Object.values(refused)), memory: memoryIsShort ? "short" : "enough" };
}

/** Merges the facts of several processes: sums of counts, and the worst state. */
export function mergeOverload(all: readonly OverloadFacts[]): OverloadFacts {
  return {
    shedding: all.some(({ shedding }) => shedding),
    waiting: sum(all.map(({ waiting }) => waiting)),
    limit: sum(all.map(({ limit }) => limit)),
    refused: sum(all.map(({ refused }) => refused)),
    memory: all.some(({ memory }) => memory === "short") ? "short" : "enough",
  };
}

/** Adds up numbers. */
export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
