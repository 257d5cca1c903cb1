import { once } from "node:events";
import { createServer } from "node:net";
import type { Config } from "../config/config.ts";
import { formatAddress } from "../config/settings.ts";
import { sharedPortProblem } from "../config/warnings.ts";
import { type Clock, sleep } from "../core/clock.ts";
import type { Role } from "./role.ts";

/** Runs `start`; if it fails, runs the `undo` steps collected so far in reverse. */
export async function undoneOnFailure<T>(start: (teardown: Teardown) => Promise<T>): Promise<T> {
  const undo: (() => Promise<void> | void)[] = [];
  const closeAll = async (): Promise<void> => {
    for (const step of undo.splice(0).toReversed()) await step();
  };
  try {
    return await start({ undo, closeAll });
  } catch (error) {
    await closeAll();
    throw error;
  }
}

/** Steps that undo what was started. */
export interface Teardown {
  readonly undo: (() => Promise<void> | void)[];
  readonly closeAll: () => Promise<void>;
}

/** The servers of a gateway, by the section of their settings. */
export type ServerName = "http" | "grpc" | "operations";

/** Starts one server. Rejects with a message that names its setting and its address when it cannot listen. */
export async function startListening<T>(name: ServerName, config: Config, start: () => Promise<T>): Promise<T> {
  try {
    return await start();
  } catch (cause) {
    throw new Error(describeListenFailure(name, config, cause), { cause });
  }
}

/**
 * Listens on the addresses of all servers of this role for a moment. Rejects with a message that names every setting whose
 * address cannot be used, so that one start shows all of them. Free ports (0) are not asked for.
 */
export async function requireAddresses(config: Config, role: Role["name"]): Promise<void> {
  const servers: Readonly<Record<Role["name"], readonly ServerName[]>> = {
    all: ["http", "grpc", "operations"],
    core: ["grpc", "operations"],
    front: ["http", "operations"],
  };
  const problems: string[] = [];
  const listens = (name: ServerName): boolean =>
    config[name].listen.port !== 0 && !(name === "grpc" && role === "all" && config.http.grpc);
  for (const name of servers[role].filter(listens)) {
    const server = createServer();
    try {
      await once(server.listen(config[name].listen), "listening");
    } catch (cause) {
      problems.push(describeListenFailure(name, config, cause));
    }
    server.close();
  }
  if (problems.length > 0) throw new Error(problems.join("\n"));
}

/** Throws an Error when `http.grpc` would leave gRPC of this role without the TLS, or the client certificates, of `grpc.tls`. */
export function requireTlsOfGrpc(config: Config, role: Role["name"]): void {
  const problem = role === "all" ? sharedPortProblem(config) : undefined;
  if (problem !== undefined) throw new Error(`http.grpc: ${problem}`);
}

const LISTEN_PROBLEMS: Readonly<Record<string, string>> = {
  EACCES: "this user may not listen on it; choose a port from 1024 on, or grant CAP_NET_BIND_SERVICE",
  EADDRNOTAVAIL: "this machine has no such address",
  ENOTFOUND: "this name has no address",
};

function describeListenFailure(name: ServerName, config: Config, cause: unknown): string {
  const { code = "", message } = cause as NodeJS.ErrnoException;
  const address = formatAddress(config[name].listen);
  if (!message.includes("EADDRINUSE"))
    return `${name}.listen: cannot use ${address}: ${LISTEN_PROBLEMS[code] ?? message}`;
  const variable = `PARLEY_${name.toUpperCase()}_LISTEN`;
  return `${name}.listen: another program listens on ${address}; choose another address there, or in ${variable}`;
}

/** The sections that a reload applies. */
const RELOADABLE = [
  "access",
  "accountCredentials",
  "providers",
  "models",
  "routes",
  "imports",
  "aliases",
  "timeouts",
  "limits",
  "retries",
  "breaker",
  "storedConfiguration",
  "stored",
  "alerts",
  "smtp",
] as const satisfies readonly (keyof Config)[];

/** The part of a configuration that a reload applies. */
export function reloadable(config: Config): Pick<Config, (typeof RELOADABLE)[number]> {
  return Object.fromEntries(RELOADABLE.map((name) => [name, config[name]])) as Pick<
    Config,
    (typeof RELOADABLE)[number]
  >;
}

/** Time between reporting "not ready" and refusing work, in which load balancers stop sending requests. */
export class ShutdownDelay {
  readonly #clock: Clock;
  readonly #shutdownDelayMs: number;
  readonly #cut = new AbortController();

  constructor(clock: Clock, shutdownDelayMs: number) {
    this.#clock = clock;
    this.#shutdownDelayMs = shutdownDelayMs;
  }

  /** Resolves when the time is over or was cut short. */
  async wait(): Promise<void> {
    if (this.#shutdownDelayMs > 0) await sleep(this.#clock, this.#shutdownDelayMs, this.#cut.signal);
  }

  /** Ends the wait now, and skips later ones. */
  cut(): void {
    this.#cut.abort();
  }
}

/** A function whose calls run one after another, also after one that has failed. */
export function inTurn<I extends readonly unknown[], T>(run: (...input: I) => Promise<T>): (...input: I) => Promise<T> {
  let latest: Promise<unknown> = Promise.resolve();
  return (...input) => {
    const done = latest.then(() => run(...input));
    latest = done.catch(() => undefined);
    return done;
  };
}
