import pg from "pg";
import { ANY_KEY, KEY_CHANNEL, type KeyChanges } from "../access/key-changes.ts";
import { HostChoice } from "./host-choice.ts";
import { dropClient, QUERY_MS, toClientConfig } from "./pool.ts";

const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 5_000;
/** Interval of a query that detects dead connections. */
const QUESTION_MS = 10_000;

/** Also detects a pooler in transaction mode, which does not keep LISTEN. */
const STILL_LISTENING = "select 1 from pg_listening_channels() as channel where channel = $1";

/** Listens for keys changed by other processes, on a connection of its own; reconnects when it is lost. */
export class KeyListener {
  readonly #hosts: HostChoice;
  readonly #changes: Pick<KeyChanges, "announce">;
  #client: pg.Client | undefined;
  #timer: NodeJS.Timeout | undefined;
  #pauseMs = FIRST_PAUSE_MS;
  #closed = false;
  #isListening = false;

  constructor(url: string, changes: Pick<KeyChanges, "announce">) {
    this.#hosts = new HostChoice(url);
    this.#changes = changes;
    void this.#connect();
  }

  /** Whether LISTEN is active. */
  get isListening(): boolean {
    return this.#isListening;
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    if (this.#client !== undefined) dropClient(this.#client);
  }

  async #connect(): Promise<void> {
    const { url } = this.#hosts;
    const client = new pg.Client(toClientConfig({ url, limitMs: QUERY_MS }));
    this.#client = client;
    client.on("notification", ({ payload }) => this.#changes.announce(payload || ANY_KEY));
    client.on("error", () => this.#lose(client));
    client.on("end", () => this.#lose(client));
    try {
      await client.connect();
      // Refused by a standby.
      await client.query(`listen ${KEY_CHANNEL}`);
    } catch {
      this.#hosts.passOver(url);
      this.#lose(client);
      return;
    }
    this.#isListening = true;
    this.#pauseMs = FIRST_PAUSE_MS;
    // Notifications may have been missed before.
    this.#changes.announce(ANY_KEY);
    this.#askLater(client);
  }

  #askLater(client: pg.Client): void {
    if (this.#client !== client || this.#closed) return;
    this.#timer = setTimeout(() => {
      client.query(STILL_LISTENING, [KEY_CHANNEL]).then(
        ({ rows }) => (rows.length > 0 ? this.#askLater(client) : this.#lose(client)),
        () => this.#lose(client),
      );
    }, QUESTION_MS);
    this.#timer.unref();
  }

  #lose(client: pg.Client): void {
    if (this.#client !== client) return;
    this.#client = undefined;
    this.#isListening = false;
    dropClient(client);
    clearTimeout(this.#timer);
    if (this.#closed) return;
    // Random, so that replicas do not reconnect at the same moment.
    const pauseMs = this.#pauseMs * (0.5 + Math.random() / 2);
    this.#pauseMs = Math.min(this.#pauseMs * 2, MAX_PAUSE_MS);
    this.#timer = setTimeout(() => void this.#connect(), pauseMs);
    this.#timer.unref();
  }
}
