import { isLoopback, parseListenAddress } from "../config/addresses.ts";
import type { ListenAddress } from "../config/config.ts";
import { CHAOS_PERCENT, type ChaosOptions } from "../simulator/faults.ts";
import { MODEL_PACE } from "../simulator/sender.ts";
import { formatAddress } from "../config/settings.ts";
import { type Command, EXIT, type Invocation, JSON_FLAG, UsageError, writeJson } from "./command.ts";

const DEFAULT_LISTEN = "127.0.0.1:4010";

export const simulate: Command = {
  name: "simulate",
  summary: "run the provider simulator alone until it is interrupted",
  positionals: [],
  flags: {
    listen: { value: "HOST:PORT", help: `where to listen (default: ${DEFAULT_LISTEN})` },
    "allow-public": { help: "allow a --listen address that other machines can reach" },
    "tokens-per-second": { value: "N", help: `pace of an answer (default: ${MODEL_PACE.tokensPerSecond}; 0: no wait)` },
    "first-token-ms": { value: "N", help: `wait before an answer (default: ${MODEL_PACE.firstTokenMs})` },
    fault: { value: "FAULT", help: "fault of every request, such as status=529 or cut-after=3" },
    chaos: { value: "SEED", help: "random faults in a share of the requests, from this seed" },
    "chaos-percent": { value: "N", help: `percentage of requests with faults (default: ${CHAOS_PERCENT})` },
    ...JSON_FLAG,
  },
  async run(invocation, { stdout, untilStopped = untilSignalled }) {
    const { fault } = invocation.flags;
    const chaos = readChaos(invocation);
    const { startSimulator } = await import("../simulator/server.ts");
    const simulator = await startSimulator({
      ...readListen(invocation),
      tokensPerSecond: readNumber(invocation, "tokens-per-second") || undefined,
      firstTokenMs: readNumber(invocation, "first-token-ms"),
      faults: fault === undefined ? [] : [{ fault }],
      chaos,
    }).catch((error: unknown) => {
      if (error instanceof SyntaxError) throw new UsageError(`--fault: ${error.message}`);
      if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
      throw new Error(`another program listens on ${formatAddress(readListen(invocation))}; choose another --listen`, {
        cause: error,
      });
    });
    try {
      const { url, port } = simulator;
      // Before the address is printed: its reader may stop the simulator at once.
      const stopped = untilStopped();
      if (invocation.switches.has("json")) writeJson(stdout, { url, port, ...(chaos && { chaos }) });
      else {
        stdout.write(`The simulator listens on ${url} and speaks the dialects of all providers.\n`);
        if (chaos !== undefined) stdout.write(describeChaos(chaos));
      }
      await stopped;
    } finally {
      await simulator.close();
    }
    return EXIT.ok;
  },
};

function readListen({ flags, switches }: Invocation): ListenAddress {
  const address = parseListenAddress(flags["listen"] ?? DEFAULT_LISTEN);
  if (address === undefined) throw new UsageError(`--listen is host:port, such as ${DEFAULT_LISTEN}`);
  if (isLoopback(address.host) || switches.has("allow-public")) return address;
  throw new UsageError("--listen is not loopback; add --allow-public if other machines should connect");
}

/** Undefined without --chaos. */
function readChaos({ flags }: Invocation): ChaosOptions | undefined {
  const { chaos: seed, "chaos-percent": percent } = flags;
  if (seed === undefined) {
    if (percent !== undefined) throw new UsageError("--chaos-percent needs --chaos SEED");
    return undefined;
  }
  if (!/^\d{1,9}$/.test(seed)) throw new UsageError("--chaos is a whole number of up to nine digits");
  if (percent !== undefined && !/^([1-9]\d?|100)$/.test(percent))
    throw new UsageError("--chaos-percent is a whole number from 1 to 100");
  return { seed: Number(seed), percent: Number(percent ?? CHAOS_PERCENT) };
}

function describeChaos({ seed, percent }: ChaosOptions): string {
  return (
    `Chaos with seed ${seed}: about ${percent} % of the requests get a fault. ` +
    "With this seed the same requests in the same order get the same faults.\n"
  );
}

const PACES = { "tokens-per-second": MODEL_PACE.tokensPerSecond, "first-token-ms": MODEL_PACE.firstTokenMs } as const;

function readNumber({ flags }: Invocation, name: keyof typeof PACES): number {
  const text = flags[name];
  if (text === undefined) return PACES[name];
  if (/^\d{1,7}(\.\d{1,3})?$/.test(text)) return Number(text);
  throw new UsageError(`--${name} is a number of 0 or more`);
}

function untilSignalled(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve());
  });
}
