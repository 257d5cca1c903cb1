import type { DialectName } from "./models.ts";

/** One received request. */
export interface JournalEntry {
  readonly dialect: DialectName;
  readonly method: string;
  readonly path: string;
  /** Requested model, set after the body was read. */
  model?: string;
  /** Text of the applied fault. */
  fault?: string;
  /** HTTP status, set after it was sent. */
  status?: number;
  outcome: "active" | "finished" | "left";
}

/** Record of the simulator's requests. */
export interface Journal {
  /** Requests since the start. */
  readonly seen: number;
  /** Requests in flight. */
  readonly active: number;
  /** Requests whose connection either side closed before the response was complete. */
  readonly left: number;
  /** Connections open now. */
  readonly connections: number;
  /** The latest requests, oldest first; at most 200. */
  readonly recent: readonly JournalEntry[];
}

const MAX_ENTRIES = 200;

/** Writable journal. */
export class JournalKeeper implements Journal {
  seen = 0;
  active = 0;
  left = 0;
  connections = 0;
  readonly recent: JournalEntry[] = [];

  open(dialect: DialectName, method: string, path: string): JournalEntry {
    const entry: JournalEntry = { dialect, method, path, outcome: "active" };
    this.seen += 1;
    this.active += 1;
    this.recent.push(entry);
    if (this.recent.length > MAX_ENTRIES) this.recent.shift();
    return entry;
  }

  close(entry: JournalEntry, outcome: "finished" | "left"): void {
    entry.outcome = outcome;
    this.active -= 1;
    if (outcome === "left") this.left += 1;
  }
}
