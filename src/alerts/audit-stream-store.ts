/** A receiver of the audit log with its position. All times are Unix milliseconds. */
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
  /** Time of the next attempt to send. */
  readonly nextAtMs: number;
  /** Undefined: nothing was accepted yet. */
  readonly sentAtMs: number | undefined;
  /** Why the latest sending failed; empty otherwise. */
  readonly problem: string;
}

/** Fields that an attempt to send changes. */
type StreamProgress = Partial<
  Pick<AuditStreamRecord, "sequence" | "failures" | "nextAtMs" | "sentAtMs" | "problem">
> & {
  /** End of the claim, until which no other process sends; 0 releases the stream. */
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
  /**
   * Claims, for the process `by` until `untilMs`, all streams that are due, have entries to send and are claimed by no other
   * process.
   */
  claimStreams(due: {
    readonly nowMs: number;
    readonly untilMs: number;
    readonly by: string;
  }): Promise<readonly AuditStreamRecord[]>;
  /** Records progress; false when another process has claimed the stream, or it was removed. */
  noteProgress(id: string, by: string, progress: StreamProgress): Promise<boolean>;
  /** Encrypts the secrets of all streams again with `seal`; a stream for which it returns undefined stays. */
  resealStreams(seal: (stream: AuditStreamRecord) => string | undefined): Promise<{
    readonly resealed: number;
    readonly unreadable: number;
  }>;
}
