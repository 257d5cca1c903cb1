/** A receiver of the audit log, and how far it has it. All times are Unix milliseconds. */
export interface AuditStreamRecord {
  readonly id: string;
  /** For people, without secrets. */
  readonly target: string;
  /** Its address and key, encrypted. */
  readonly sealed: string;
  /** Sequence number of the last entry that it has accepted. */
  readonly sequence: number;
  readonly createdAtMs: number;
  /** Undefined for the command line. */
  readonly createdBy: string | undefined;
  /** Failed sendings since the last one that succeeded. */
  readonly failures: number;
  /** Nothing is sent before. */
  readonly nextAtMs: number;
  /** Undefined: nothing was accepted yet. */
  readonly sentAtMs: number | undefined;
  /** Why the latest sending failed; empty otherwise. */
  readonly problem: string;
}

/** What is noted of a sending. */
export type StreamProgress = Partial<
  Pick<AuditStreamRecord, "sequence" | "failures" | "nextAtMs" | "sentAtMs" | "problem">
> & {
  /** Until then no other process sends; 0 gives the stream back. */
  readonly claimedUntilMs: number;
};

/** The store of receivers of the audit log. Every method answers, or rejects within a few seconds. Safe for several processes at once. */
export interface AuditStreamStore {
  /** In the order in which they were added. */
  streams(): Promise<readonly AuditStreamRecord[]>;
  /** Adds a receiver of the entries from now on, with the position that it returns. Undefined when there are `most` already. */
  insertStream(
    stream: Pick<AuditStreamRecord, "id" | "target" | "sealed" | "createdAtMs" | "createdBy">,
    most: number,
  ): Promise<AuditStreamRecord | undefined>;
  /** Returns the removed receiver; undefined for an unknown one. */
  removeStream(id: string): Promise<AuditStreamRecord | undefined>;
  /** Claims all streams with entries to send that are due and that no other process has: for `by`, until then. */
  claimStreams(due: {
    readonly nowMs: number;
    readonly untilMs: number;
    readonly by: string;
  }): Promise<readonly AuditStreamRecord[]>;
  /** Notes progress, unless another process has claimed the stream or it was removed: false. */
  noteProgress(id: string, by: string, progress: StreamProgress): Promise<boolean>;
  /** Encrypts the secrets of all streams anew; those for which `seal` has no other content stay. */
  resealStreams(seal: (stream: AuditStreamRecord) => string | undefined): Promise<{
    readonly resealed: number;
    readonly unreadable: number;
  }>;
}
