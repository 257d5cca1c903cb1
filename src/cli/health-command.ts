import { readFileSync } from "node:fs";
import { get, type IncomingMessage } from "node:http";
import { get as getOverTls, type RequestOptions } from "node:https";
import type { Config, ListenAddress } from "../config/config.ts";
import { loadConfig } from "../config/load.ts";
import { formatAddress } from "../config/settings.ts";
import { type Command, CONFIG_FLAG, EXIT } from "./command.ts";

/** Less than the time limits of Docker's and Kubernetes' checks. */
const LIMIT_MS = 2_000;

const MAX_ANSWER_BYTES = 64 * 1024;

export const health: Command = {
  name: "health",
  summary: "ask the running gateway's operations port whether it is alive, or ready",
  positionals: [],
  flags: {
    ...CONFIG_FLAG,
    ready: { help: "ask whether it accepts requests (/readyz), which it does not while it drains" },
  },
  async run({ flags, switches }, { env, stdout }) {
    const { operations } = loadConfig({ file: flags["config"], env, unused: ["providers"] });
    const path = switches.has("ready") ? "/readyz" : "/healthz";
    const address = localAddress(operations.listen);
    const where = `${operations.tls === undefined ? "http" : "https"}://${formatAddress(address)}${path}`;
    const { status, text } = await ask(address, path, operations.tls).catch((error: unknown) => {
      throw new Error(`${where}: ${describe(error as NodeJS.ErrnoException)}`, { cause: error });
    });
    if (status !== 200) throw new Error(`${where}: status ${status}: ${text.trim()}`);
    stdout.write(text);
    return EXIT.ok;
  },
};

function describe({ code, message }: NodeJS.ErrnoException): string {
  if (code === "ECONNREFUSED")
    return "nothing listens there; no gateway runs, or operations.listen of its configuration differs";
  return code ?? message;
}

/** The listening address as this machine reaches it. */
function localAddress({ host, port }: ListenAddress): ListenAddress {
  if (port === 0) throw new Error("operations.listen has port 0, which can be any; write the port to ask");
  if (host === "0.0.0.0") return { host: "127.0.0.1", port };
  return host === "::" ? { host: "::1", port } : { host, port };
}

function ask(
  { host, port }: ListenAddress,
  path: string,
  tls: Config["operations"]["tls"],
): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const options: RequestOptions = { host, port, path, agent: false, signal: AbortSignal.timeout(LIMIT_MS) };
    const receive = (response: IncomingMessage): void => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (piece: string) => (text = (text + piece).slice(0, MAX_ANSWER_BYTES)));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
      response.on("error", reject);
    };
    const request = tls === undefined ? get(options, receive) : getOverTls({ ...options, ...trustIn(tls) }, receive);
    request.on("error", reject);
  });
}

/** Trust in the listener's own certificate, whatever its names. It is shown as the client's, too, where one is asked for. */
function trustIn({ certFile, keyFile, clientCaFile }: NonNullable<Config["operations"]["tls"]>): RequestOptions {
  const cert = readFileSync(certFile);
  return {
    ca: cert,
    allowPartialTrustChain: true,
    checkServerIdentity: () => undefined,
    ...(clientCaFile !== undefined && { cert, key: readFileSync(keyFile) }),
  };
}
