import { type DatabaseHosts, splitDatabaseHosts } from "../../net/database-hosts.ts";
import { StoreError } from "../store-error.ts";

/** The hosts of a database. Connections go to the same one until it fails, then to the next. */
export class HostChoice {
  readonly #hosts: DatabaseHosts;
  #chosen = 0;

  /** Throws a StoreError for an invalid address. */
  constructor(url: string) {
    this.#hosts = parseHosts(url);
  }

  get count(): number {
    return this.#hosts.urls.length;
  }

  get writableOnly(): boolean {
    return this.#hosts.writableOnly;
  }

  /** Address of the host for the next connection. */
  get url(): string {
    return this.#hosts.urls[this.#chosen]!;
  }

  /** Chooses the next host, unless that has been done since `url` was read. */
  passOver(url: string): void {
    if (this.url === url) this.#chosen = (this.#chosen + 1) % this.count;
  }
}

/** The hosts of an address. Throws a StoreError that does not repeat it, because it holds a password. */
export function parseHosts(url: string): DatabaseHosts {
  const hosts = /^postgres(ql)?:/i.test(url) ? splitDatabaseHosts(url) : undefined;
  if (hosts !== undefined) return hosts;
  throw new StoreError(
    "database.url is not a PostgreSQL address, such as postgres://user:password@host:5432/parley, with several hosts " +
      "postgres://user:password@a:5432,b:5432/parley?target_session_attrs=read-write.",
  );
}
