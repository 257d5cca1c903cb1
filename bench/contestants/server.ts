import type { ChildProcess } from "node:child_process";
import type { Target } from "../load/caller.ts";
import type { Load } from "../loads.ts";

/** What a contestant is started for. */
export interface Setting {
  readonly load: Load;
  readonly upstreamPort: number;
  /** For servers that are programs of Node. */
  readonly nodeOptions?: readonly string[];
  /** Whether Parley runs from its sources, whose functions a profile can place. Default: as `npm start` runs it. */
  readonly fromSources?: boolean;
  /** Models that Parley is to know beside the load's. */
  readonly moreModels?: readonly string[];
  /** A folder that is removed at the end. */
  readonly folder: string;
}

/** A server that is ready for the load. */
export interface RunningServer extends Target {
  readonly name: string;
  readonly process: ChildProcess;
}
