import { createServer, type Server } from "node:http";
import { createExchange } from "./exchange.ts";
import { type ChaosOptions, type ConfiguredFault, openFaultBook } from "./faults.ts";
import { type Journal, JournalKeeper } from "./journal.ts";
import type { PaceOptions } from "./sender.ts";

export { CHAOS_PERCENT } from "./faults.ts";
export { MODEL_PACE } from "./sender.ts";
export type { ConfiguredFault } from "./faults.ts";
export type { Journal, JournalEntry } from "./journal.ts";

/** Pace: without `tokensPerSecond` and `firstTokenMs` answers come at once. */
export interface SimulatorOptions extends PaceOptions {
  /** Address to listen on. Default `127.0.0.1`. */
  readonly host?: string | undefined;
  /** Port to listen on. Default 0: any free one. */
  readonly port?: number | undefined;
  /** Faults for all requests, or for those of one model. A request's own header goes before them. Default none. */
  readonly faults?: readonly ConfiguredFault[] | undefined;
  /** Faults drawn from a seed for requests that have no other. Default none. */
  readonly chaos?: ChaosOptions | undefined;
}

export interface Simulator {
  /** Origin without a path, such as `http://127.0.0.1:4010`; for an OpenAI client append `/v1`. */
  readonly url: string;
  readonly port: number;
  /** Record of the requests. */
  readonly requests: Journal;
  /** Stops listening and closes all connections, also those with a response in flight. */
  close(): Promise<void>;
}

const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 60_000;
const KEEP_ALIVE_TIMEOUT_MS = 65_000;
/** Node looks for overdue connections only this often; its default of 30 s makes shorter limits meaningless. */
const CHECK_INTERVAL_MS = 1_000;

function listen(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : port);
    });
  });
}

/**
 * Starts a server that answers like the Anthropic, Gemini and OpenAI APIs, on one port. Answers are made up, always the
 * same for the same request, and say so. Rejects when the address cannot be listened on or a fault cannot be read.
 */
export async function startSimulator(options: SimulatorOptions = {}): Promise<Simulator> {
  const { host = "127.0.0.1", port = 0, faults = [], chaos, tokensPerSecond, firstTokenMs } = options;
  const journal = new JournalKeeper();
  const exchange = createExchange({
    pace: { tokensPerSecond, firstTokenMs },
    faults: openFaultBook(faults, chaos),
    journal,
  });
  const server = createServer(
    {
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
      connectionsCheckingInterval: CHECK_INTERVAL_MS,
      noDelay: true,
    },
    (request, response) => void exchange(request, response),
  );
  server.on("connection", (socket) => {
    journal.connections += 1;
    socket.once("close", () => {
      journal.connections -= 1;
    });
  });
  const boundPort = await listen(server, host, port);
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${boundPort}`,
    port: boundPort,
    requests: journal,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}
