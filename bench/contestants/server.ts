import type { ChildProcess } from "node:child_process";
import type { Target } from "../load/caller.ts";
import type { Load } from "../loads.ts";

/** Models behind the load's model. */
export interface Targets {
  readonly count: number;
  readonly policy: "weighted" | "least_latency";
}

/** Settings for starting a contestant. */
export interface Setting {
  readonly load: Load;
  readonly upstreamPort: number;
  /** Options of Node, for servers that run on it. */
  readonly nodeOptions?: readonly string[];
  /** Run Parley from sources, so that profiles have file names. Default: the built program. */
  readonly fromSources?: boolean;
  /** Additional models in Parley's configuration. */
  readonly moreModels?: readonly string[];
  /** Default: the load's model is a model of the provider. */
  readonly targets?: Targets;
  /** Additional configuration of Parley. */
  readonly config?: object;
  /** Parley's `workers`. Default: 1. */
  readonly workers?: number;
  /** Cores of the server, in `taskset`'s list format. Default: `SERVER_CORE`. */
  readonly serverCores?: string;
  /** Core of the load generator. Default: the mock upstream's. */
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
  /** Overrides those of the load. */
  readonly connections?: number;
  /** Maximum warm-up, if shorter than the general one, for servers with little code. */
  readonly warmUpSeconds?: number;
}
