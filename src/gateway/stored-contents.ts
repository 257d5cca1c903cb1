import { statfs } from "node:fs/promises";
import { setImmediate as nextTurn } from "node:timers/promises";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { type StoredContent, StoredContentSchema } from "../../gen/parley/console/v1/request_pb.js";
import type { Config } from "../config/config.ts";
import { type Clock, waitAtMost } from "../core/clock.ts";
import type { CompletionContent, ContentStorage } from "../core/content.ts";
import { Failure } from "../core/failure.ts";
import { Turns } from "../scheduling/turns.ts";
import { cipherOf } from "../store/cipher.ts";
import type { SealedRows } from "../store/sealed-rows.ts";
import type { Logger } from "../telemetry/logger.ts";

/** File of the key in the data directory. */
const KEY_FILE = "content.key";

/** Contents that are written at a time, as with stored responses. */
const AT_A_TIME = { sqlite: 1, postgres: 4 } as const;

/** Memory of contents that wait to be written: their texts, and a share for everything else. Content beyond it is dropped. */
const MAX_WAITING_BYTES = 32 * 1024 * 1024;
const CONTENT_BYTES = 4 * 1024;

/** Free space of the disk of SQLite that is left to the ledger, without which nothing is served: a twentieth of the disk, but no more than this. */
const FREE_BYTES = 4 * 1024 * 1024 * 1024;
const FREE_SHARE = 1 / 20;

/** Time that the end of the process waits for contents that are not written yet. */
const CLOSING_MS = 5_000;

/** Numbers of contents since the start of the process, by what was done with them. */
type ContentCounts = Readonly<Record<"stored" | "dropped" | "failed", number>>;

/** Stores and reads prompts and answers. */
export interface StoredContents extends ContentStorage {
  /** Undefined when none is stored, or its time is over. Throws `overloaded` when the database is unavailable. */
  read(accountId: string, completionId: string): Promise<StoredContent | undefined>;
  counts(): ContentCounts;
  /** Writes contents that wait, for CLOSING_MS at most; drops the rest. */
  close(): Promise<void>;
}

/**
 * Prompts and answers, encrypted in the database after their completions have ended; undefined when the configuration keeps none. Throws
 * when the key of the data directory cannot be read.
 */
export function storedContentsOf(
  { content, dataDir, databaseUrl }: Pick<Config, "content" | "dataDir" | "databaseUrl">,
  { store, clock, log }: { readonly store: SealedRows; readonly clock: Clock; readonly log: Logger },
): StoredContents | undefined {
  const { keptMs, encryptionKey } = content;
  if (keptMs === undefined) return undefined;
  const cipher = cipherOf(encryptionKey, dataDir, KEY_FILE);
  const turns = new Turns(databaseUrl === undefined ? AT_A_TIME.sqlite : AT_A_TIME.postgres);
  const counts = { stored: 0, dropped: 0, failed: 0 };
  const closing = new AbortController();
  const writes = new Set<Promise<void>>();
  let waitingBytes = 0;
  let isFailing = false;

  const insert = async (given: CompletionContent): Promise<void> => {
    // The answer is sent first.
    await nextTurn();
    if (databaseUrl === undefined) await requireFreeSpace(dataDir);
    const { accountId, completionId: id } = given;
    const sealed = cipher.seal(encode(given), boundTo(accountId, id));
    await store.insert({ account_id: accountId, id, created_at_ms: clock.now(), content: sealed });
  };

  const write = async (given: CompletionContent): Promise<void> => {
    try {
      await turns.run(given.accountId, closing.signal, () => insert(given));
      counts.stored += 1;
      isFailing = false;
    } catch (error) {
      if (closing.signal.aborted) {
        counts.dropped += 1;
        return;
      }
      counts.failed += 1;
      if (!isFailing)
        log.warn({ completion_id: given.completionId, cause: String(error) }, "prompts and answers are not stored");
      isFailing = true;
    } finally {
      waitingBytes -= given.bytes + CONTENT_BYTES;
    }
  };

  return {
    store(given) {
      if (closing.signal.aborted || waitingBytes + given.bytes + CONTENT_BYTES > MAX_WAITING_BYTES) {
        counts.dropped += 1;
        return;
      }
      waitingBytes += given.bytes + CONTENT_BYTES;
      const written = write(given).finally(() => writes.delete(written));
      writes.add(written);
    },

    async read(accountId, id) {
      const sealed = await store.find(accountId, id, clock.now() - keptMs).catch(unavailable);
      if (sealed === undefined) return undefined;
      const opened = cipher.open(sealed, boundTo(accountId, id));
      if (opened === undefined) {
        log.warn({ completion_id: id }, "a stored prompt cannot be decrypted; was the encryption key changed?");
        throw new Failure(
          "invalid_request",
          "The stored prompt and answer were encrypted with another key than content.encryption_key.",
        );
      }
      return fromBinary(StoredContentSchema, opened);
    },

    counts: () => counts,

    async close() {
      await waitAtMost(Promise.all(writes), { clock, limitMs: CLOSING_MS, signal: undefined });
      closing.abort(new Error("the process ends"));
    },
  };
}

/** Throws when the disk of a directory is almost full. */
async function requireFreeSpace(dataDir: string): Promise<void> {
  const { bavail, blocks, bsize } = await statfs(dataDir);
  if (bavail * bsize < Math.min(blocks * bsize * FREE_SHARE, FREE_BYTES))
    throw new Error("the disk of data_dir is almost full");
}

function encode({ request, choices, isRequestCut, isAnswerCut }: CompletionContent): Buffer {
  const content: StoredContent = {
    $typeName: "parley.console.v1.StoredContent",
    request,
    choices: [...choices],
    requestCut: isRequestCut,
    answerCut: isAnswerCut,
  };
  return Buffer.from(toBinary(StoredContentSchema, content));
}

/** Content cannot be moved to another account or completion, nor be read as a stored response. */
function boundTo(accountId: string, completionId: string): readonly string[] {
  return ["content", accountId, completionId];
}

function unavailable(cause: unknown): never {
  throw new Failure("overloaded", "Stored prompts and answers are unavailable; try again shortly.", {
    unavailable: "database",
    cause,
  });
}
