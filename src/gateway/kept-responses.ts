import type { Config } from "../config/config.ts";
import { type Clock, sleep } from "../core/clock.ts";
import { Failure } from "../core/failure.ts";
import { type KeptResponse, type KeptResponses, MAX_KEPT_BYTES } from "../core/kept-responses.ts";
import type { Limiter } from "../core/limiter.ts";
import { countRequest } from "../core/models.ts";
import { cipherOf } from "../store/cipher.ts";
import type { ResponseStore } from "../store/responses/response-store.ts";
import { Turns } from "../scheduling/turns.ts";
import type { Logger } from "../telemetry/logger.ts";

/** How long the end of an answer waits for its write. */
const KEEP_LIMIT_MS = 2_000;

/** File of the key in the data directory. */
const KEY_FILE = "responses.key";

/** Responses that are read or written at a time: SQLite has one connection for them, PostgreSQL ten for all short statements. */
const AT_A_TIME = { sqlite: 1, postgres: 4 } as const;

/** How long a read or removal waits for its turn. */
const TURN_LIMIT_MS = 10_000;

interface Ports {
  readonly store: ResponseStore;
  readonly limiter: Limiter;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Answers that are kept encrypted in the database; undefined when the configuration keeps none. AT_A_TIME of them are read or
 * written at a time, for the accounts in turn: each may take the database as long as many completions. Throws when the key of the data
 * directory cannot be read.
 */
export function keptResponsesOf(
  { responses, dataDir, databaseUrl }: Pick<Config, "responses" | "dataDir" | "databaseUrl">,
  { store, limiter, clock, log }: Ports,
): KeptResponses | undefined {
  const { keptMs, encryptionKey } = responses;
  if (keptMs === 0) return undefined;
  const cipher = cipherOf(encryptionKey, dataDir, KEY_FILE);
  const oldestMs = (): number => clock.now() - keptMs;

  const turns = new Turns(databaseUrl === undefined ? AT_A_TIME.sqlite : AT_A_TIME.postgres);

  /** Runs work in a turn of the account; rejects when that does not come within the limit. */
  const inTurn = async <T>(accountId: string, work: () => Promise<T>): Promise<T> => {
    const limit = new AbortController();
    const cancel = clock.after(TURN_LIMIT_MS, () => limit.abort());
    return await turns.run(accountId, limit.signal, work).finally(cancel);
  };

  const insert = async (accountId: string, { id, content }: KeptResponse, limit: AbortSignal): Promise<boolean> => {
    try {
      const sealed = cipher.seal(content, [accountId, id]);
      await turns.run(accountId, limit, () =>
        store.insert({ account_id: accountId, id, created_at_ms: clock.now(), content: sealed }),
      );
      return true;
    } catch (error) {
      log.warn({ response_id: id, cause: String(error) }, "a response was not stored");
      return false;
    }
  };

  const removeLate = async (inserted: Promise<boolean>, accountId: string, id: string): Promise<void> => {
    if (!(await inserted)) return;
    log.warn({ response_id: id }, "a response was not stored, because the database was too slow");
    await inTurn(accountId, () => store.remove(accountId, id, 0)).catch(() => false);
  };

  return {
    count: (caller) => countRequest(limiter, caller),

    async find(accountId, id) {
      const sealed = await inTurn(accountId, () => store.find(accountId, id, oldestMs())).catch(unavailable);
      if (sealed === undefined) return undefined;
      const open = (): Buffer | undefined => {
        const content = cipher.open(sealed, [accountId, id]);
        if (content === undefined)
          log.warn({ response_id: id }, "a stored response cannot be decrypted; was the encryption key changed?");
        return content;
      };
      return { bytes: sealed.length, open };
    },

    async keep(accountId, response) {
      const { id, content } = response;
      if (content.length > MAX_KEPT_BYTES) {
        log.warn({ response_id: id, bytes: content.length }, "a response was not stored, because it is too large");
        return false;
      }
      const [answered, limit] = [new AbortController(), new AbortController()];
      const inserted = insert(accountId, response, limit.signal);
      const isKept = await Promise.race([inserted, sleep(clock, KEEP_LIMIT_MS, answered.signal).then(() => false)]);
      answered.abort();
      // The response shows that it is not stored.
      if (!isKept) {
        limit.abort(new Error("the database was too slow"));
        void removeLate(inserted, accountId, id);
      }
      return isKept;
    },

    remove: (accountId, id) => inTurn(accountId, () => store.remove(accountId, id, oldestMs())).catch(unavailable),
  };
}

function unavailable(cause: unknown): never {
  throw new Failure("overloaded", "Stored responses are unavailable; try again shortly.", {
    unavailable: "database",
    cause,
  });
}
