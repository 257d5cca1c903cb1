import type { ChildProcess } from "node:child_process";
import { askChild, stopChild } from "../children.ts";
import type { Target } from "../load/caller.ts";
import type { HoldReply, HoldRequest } from "../load/holder.ts";
import type { Load } from "../loads.ts";
import { startCaller } from "./line-up.ts";

/** A process that holds streams of a server open. */
export interface OpenStreams {
  /** Opens the missing streams up to `count`, or ends all at 0. Throws when not all are open. */
  hold(count: number): Promise<void>;
  stop(): Promise<void>;
}

/** Starts the process without open streams. `load` determines the streams. */
export async function startOpenStreams(load: Load, target: Target): Promise<OpenStreams> {
  const process: ChildProcess = await startCaller("load/holder.ts", { load, target });
  return {
    async hold(count) {
      const { open, problem } = await askChild<HoldReply>(process, { open: count } satisfies HoldRequest);
      if (open !== count) throw new Error(`Only ${open} of ${count} streams are open: ${problem}`);
    },
    stop: () => stopChild(process),
  };
}
