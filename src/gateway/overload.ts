import { readFileSync } from "node:fs";
import { constrainedMemory, memoryUsage, threadCpuUsage } from "node:process";
import { totalmem } from "node:os";
import { getHeapSpaceStatistics, getHeapStatistics } from "node:v8";
import type { Config } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import type { Calls } from "../edge/calls.ts";
import {
  AdmissionControl,
  type LoopUse,
  type OverloadChange,
  type OverloadState,
} from "../edge/overload/admission-control.ts";
import { usedShare } from "../edge/overload/memory-steps.ts";
import type { StreamTurns } from "../providers/stream-turns.ts";
import type { Logger } from "../telemetry/logger.ts";

interface OverloadPorts {
  readonly calls: Calls;
  readonly clock: Clock;
  readonly log: Logger;
  /** Missing where no answers of providers are read. */
  readonly streamTurns?: StreamTurns;
}

/** Builds the admission control of this process, which says in the log when shedding begins and ends. */
export function createAdmission(
  { overload, workers }: Pick<Config, "overload" | "workers">,
  { calls, clock, log, streamTurns }: OverloadPorts,
): AdmissionControl {
  const containerBytes = containerShareBytes(workers);
  return new AdmissionControl(overload, {
    clock,
    calls,
    loopUse: watchLoopUse(streamTurns),
    memoryShare: () => memoryShare(containerBytes),
    atEndOfTurn: (callback) => void setImmediate(callback),
    changed: (change) => tell(log, change),
  });
}

/** What one of so many processes may have of its container's memory; Infinity outside of containers. */
function containerShareBytes(processes: number): number {
  const bytes = constrainedMemory();
  // Without a limit the system says a number larger than the machine, or none.
  return bytes > 0 && bytes < totalmem() ? bytes / processes : Infinity;
}

/** More is not believed: one of the two clocks may count in larger steps than the other. */
const MAX_SLOWDOWN = 10;

/** Tells how busy the event loop was since it was last asked, and how much of that time it had a processor. */
function watchLoopUse(streamTurns: StreamTurns | undefined): () => LoopUse {
  let before = performance.eventLoopUtilization();
  let usedBefore = threadCpuUsage();
  return () => {
    const now = performance.eventLoopUtilization();
    const used = threadCpuUsage();
    const { utilization, active } = performance.eventLoopUtilization(now, before);
    const usedMs = (used.user - usedBefore.user + used.system - usedBefore.system) / 1000;
    before = now;
    usedBefore = used;
    return {
      busyShare: utilization,
      slowdown: Math.min(Math.max(active / Math.max(usedMs, 0.001), 1), MAX_SLOWDOWN),
      waitedMs: streamTurns?.takeLongestWaitMs() ?? 0,
    };
  };
}

/** What V8's limit has for young objects: a process ends when the others have no room left. */
const YOUNG_BYTES = 96 * 1024 * 1024;

/** What the process keeps in memory of its own: pages of files, its programs first, can be taken back from it. */
function ownBytes(): number {
  try {
    const [, kibibytes] = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "latin1")) ?? [];
    if (kibibytes !== undefined) return Number(kibibytes) * 1024;
  } catch {
    // No Linux.
  }
  return memoryUsage.rss();
}

function memoryShare(containerBytes: number): number {
  const old = getHeapSpaceStatistics().filter(({ space_name: name }) => !name.startsWith("new_"));
  return usedShare([
    {
      usedBytes: sum(old.map(({ space_used_size: bytes }) => bytes)),
      limitBytes: getHeapStatistics().heap_size_limit - YOUNG_BYTES,
    },
    { usedBytes: containerBytes === Infinity ? 0 : ownBytes(), limitBytes: containerBytes },
  ]);
}

const MEMORY_WORDS = [
  "memory is enough again",
  "memory is short: idle connections are closed earlier",
  "memory is short: connections are closed after their next answer",
  "memory is short: no completion is begun",
] as const;

function tell(log: Logger, change: OverloadChange): void {
  if (change.what === "began") log.warn({ reason: change.reason }, "overload: completions are refused");
  else if (change.what === "ended") log.info({ refused: change.refused }, "overload is over");
  else {
    const line = { used_percent: Math.round(change.share * 100) };
    log[change.step === 0 ? "info" : "warn"](line, MEMORY_WORDS[change.step]);
  }
}

/** The words of the memory's steps in `/readyz`. */
const MEMORY_STEPS = ["enough", "idle connections end earlier", "connections end", "no new completions"] as const;

/** What `/readyz` of the operations port says of the load. */
export interface OverloadFacts {
  readonly shedding: boolean;
  readonly waiting: number;
  readonly refused: number;
  readonly memory: (typeof MEMORY_STEPS)[number];
}

/** The state in the words of `/readyz`. */
export function toFacts({ shedding, waiting, refused, memoryStep }: OverloadState): OverloadFacts {
  return { shedding, waiting, refused: sum(Object.values(refused)), memory: MEMORY_STEPS[memoryStep] };
}

/** What several processes say as if they were one: sums, and the worst that any of them says. */
export function mergeOverload(all: readonly OverloadFacts[]): OverloadFacts {
  const step = Math.max(...all.map(({ memory }) => MEMORY_STEPS.indexOf(memory)));
  return {
    shedding: all.some(({ shedding }) => shedding),
    waiting: sum(all.map(({ waiting }) => waiting)),
    refused: sum(all.map(({ refused }) => refused)),
    memory: MEMORY_STEPS[step]!,
  };
}

/** All of them together. */
export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
