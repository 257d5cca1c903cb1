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
  /** Processes that serve behind one address, where the server is Parley. Default: 1. */
  readonly workers?: number;
  /** Where the server runs, as `taskset` lists cores. Default: the server's core. */
  readonly serverCores?: string;
  /** Where the load generator runs. Default: the core of the mock upstream. */
  readonly generatorCore?: number;
  /** The checkout whose built program is started. Default: this one. */
  readonly checkout?: string;
  /** A folder that is removed at the end. */
  readonly folder: string;
}

/** A server that is ready for the load. */
export interface RunningServer extends Target {
  readonly name: string;
  readonly process: ChildProcess;
  /** In place of those of the load. */
  readonly connections?: number;
  /** At most so long it is warmed up, if that is less than others are: it is little code. */
  readonly warmUpSeconds?: number;
}
