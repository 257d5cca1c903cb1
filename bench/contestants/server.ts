import type { ChildProcess } from "node:child_process";
import type { Load } from "../loads.ts";

/** What a contestant is started for. */
export interface Setting {
  readonly load: Load;
  readonly upstreamPort: number;
  /** For servers that are programs of Node. */
  readonly nodeOptions?: readonly string[];
  /** A folder that is removed at the end. */
  readonly folder: string;
}

/** A server that is ready for the load. */
export interface RunningServer {
  readonly name: string;
  readonly process: ChildProcess;
  readonly port: number;
  /** The API key; empty where none is looked at. */
  readonly key: string;
  /** The last words of a streamed HTTP answer. */
  readonly lastWords: string;
}
