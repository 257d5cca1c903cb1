import { readFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { get } from "node:https";
import type { TokenVerifier } from "../access/tokens.ts";
import type { Config, TokenIssuerConfig } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import { lookupHost } from "../net/host-lookup.ts";
import { limitInformational } from "../net/informational.ts";
import type { Logger } from "../telemetry/logger.ts";

/** Time limit for the keys of an issuer. */
const READ_MS = 5_000;
/** Key sets have some kilobytes. */
const MAX_BYTES = 1024 * 1024;

/** Builds the verifier of tokens; undefined without an issuer. */
export async function tokenVerifierOf(
  configured: Config["access"]["issuers"],
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): Promise<TokenVerifier | undefined> {
  if (configured.length === 0) return undefined;
  // Imported on demand: few use tokens.
  const [tokens, issuerKeys] = await Promise.all([import("../access/tokens.ts"), import("../access/issuer-keys.ts")]);
  const issuers = configured.map(({ keySet, ...issuer }) => {
    const failed = (problem: string): void =>
      log.error(
        { issuer: issuer.issuer, problem },
        "the keys of a token issuer cannot be read; those from before stay",
      );
    const keys = new issuerKeys.IssuerKeys({ read: () => readKeySet(keySet), clock, failed });
    return { ...issuer, keys };
  });
  return new tokens.TokenVerifier(issuers, clock);
}

async function readKeySet(keySet: TokenIssuerConfig["keySet"]): Promise<string> {
  const where = "file" in keySet ? keySet.file : keySet.url;
  try {
    if ("file" in keySet) return await readFile(keySet.file, "utf8");
    return await fetchText(keySet.url, keySet.caFile && (await readFile(keySet.caFile, "utf8")));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new Error(`${where}: ${code ?? message}`, { cause: error });
  }
}

async function fetchText(url: string, ca: string | undefined): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const signal = AbortSignal.timeout(READ_MS);
  const request = get(url, { ...(ca !== undefined && { ca }), lookup: lookupHost, signal, agent: false }, resolve);
  limitInformational(request.on("error", reject), reject);
  const response = await promise;
  const pieces: Buffer[] = [];
  let bytes = 0;
  try {
    if (response.statusCode !== 200) throw new Error(`it answers with status ${response.statusCode}`);
    for await (const piece of response as AsyncIterable<Buffer>) {
      pieces.push(piece);
      bytes += piece.length;
      if (bytes > MAX_BYTES) throw new Error(`it is larger than ${MAX_BYTES} bytes`);
    }
  } finally {
    response.destroy();
  }
  return Buffer.concat(pieces).toString();
}
