import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { displayApiKey, generateApiKey, hashApiKey } from "../../src/access/api-key.ts";

const MONTH_MS = 30 * 24 * 3600 * 1000;

/** Fills a database of Parley, while no process has it open, with rows as after long use. */
export class Filler {
  readonly #database: DatabaseSync;

  constructor(dataDir: string) {
    this.#database = new DatabaseSync(join(dataDir, "parley.db"));
    // Durability is not needed.
    this.#database.exec("pragma synchronous = off; pragma cache_size = -200000");
  }

  /** Adds copies of the existing key. Returns `wanted` secrets, evenly distributed over all of them. */
  addKeys(count: number, wanted: number): readonly string[] {
    const template = this.#template("api_keys");
    const columns = Object.keys(template);
    const insert = this.#database.prepare(
      `insert into api_keys (${columns.join(", ")}) values (${columns.map((name) => `:${name}`).join(", ")})`,
    );
    const secrets: string[] = [];
    const step = Math.max(1, Math.floor(count / wanted));
    this.#database.exec("begin");
    for (let index = 0; index < count; index++) {
      const secret = generateApiKey();
      const own = { id: `key_bench_${index}`, hash: hashApiKey(secret), display: displayApiKey(secret) };
      insert.run({ ...template, ...own });
      if (index % step === 0 && secrets.length < wanted) secrets.push(secret);
    }
    this.#database.exec("commit");
    return secrets;
  }

  /** Adds copies of the existing ledger entry, distributed over the month before it. */
  addEntries(count: number): void {
    const template = this.#template("completions");
    const age = `(:count - number) * ${MONTH_MS} / :count`;
    // IDs before those that Parley will generate, ordered by time like these.
    const inOrder = `printf('0%023d', number)`;
    const changed: Readonly<Record<string, string>> = {
      id: `'chatcmpl-' || ${inOrder}`,
      request_id: `'req_' || ${inOrder}`,
      started_at_ms: `started_at_ms - ${age}`,
      ended_at_ms: `ended_at_ms - ${age}`,
    };
    const columns = Object.keys(template);
    const values = columns.map((name) => changed[name] ?? name);
    this.#database
      .prepare(
        `with recursive numbers(number) as (select 1 union all select number + 1 from numbers where number < :count)
        insert into completions (${columns.join(", ")})
        select ${values.join(", ")} from numbers, (select * from completions limit 1)`,
      )
      .run({ count });
  }

  close(): void {
    this.#database.exec("pragma wal_checkpoint(truncate)");
    this.#database.close();
  }

  /** A row written by Parley, so that this code does not depend on the other columns. */
  #template(table: "api_keys" | "completions") {
    const row = this.#database.prepare(`select * from ${table} limit 1`).get();
    if (row === undefined) throw new Error(`Parley has written nothing into ${table} yet.`);
    return row;
  }
}
