import { createHash, createHmac, type Hash, type Hmac } from "node:crypto";
import { Readable } from "node:stream";
import type { NodeHttpHandler } from "@smithy/node-http-handler";
import type { SignatureV4 } from "@smithy/signature-v4";
import { Failure } from "../../core/failure.ts";
import type { Credential, RequestToAuthorize } from "./credential.ts";
import { readAnswer } from "./token.ts";

/** Keys of an AWS account or role, in the AWS SDK's form. */
export interface AwsKeys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Session token of temporary keys. */
  readonly sessionToken?: string | undefined;
}

export interface AwsCredentialOptions {
  readonly region: string;
  /** Base URL of the service; its host and path are signed. */
  readonly baseUrl: string;
  /** Finds the keys, and keeps them until they expire. Default: the AWS SDK's default chain. */
  readonly findKeys?: () => Promise<AwsKeys>;
  /** Milliseconds since 1970. Default: the system's clock. */
  readonly now?: () => number;
}

/** Name of the service in a signature. */
const SERVICE = "bedrock";

/** Milliseconds to find keys. The chain may ask a metadata server of the container or the instance, or AWS STS. */
const FIND_MS = 10_000;

/** Signs each request with AWS Signature Version 4. Packages of AWS are loaded on first use. */
export function awsCredential({
  region,
  baseUrl,
  findKeys = chainFor(region),
  now = Date.now,
}: AwsCredentialOptions): Credential {
  const { protocol, host, hostname, pathname } = new URL(baseUrl);
  const prefix = pathname.replace(/\/+$/, "");
  let signing:
    | { readonly keys: AwsKeys; readonly signer: SignatureV4; readonly secrets: readonly string[] }
    | undefined;

  const use = async (keys: AwsKeys) => {
    // The chain returns the same object until the keys change.
    if (signing?.keys === keys) return signing;
    const { SignatureV4: Signer } = await import("@smithy/signature-v4");
    const { accessKeyId, secretAccessKey, sessionToken } = keys;
    const credentials = { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) };
    const signer = new Signer({ service: SERVICE, region, credentials, sha256: Sha256 });
    const secrets = [secretAccessKey, accessKeyId, ...(sessionToken === undefined ? [] : [sessionToken])];
    // Answers may still contain earlier secrets.
    return (signing = { keys, signer, secrets: [...secrets, ...(signing?.secrets.slice(0, 3) ?? [])] });
  };

  return {
    async authorize({ path, headers, body, signal }: RequestToAuthorize) {
      const { signer } = await use(await findInTime(findKeys, signal));
      const signed = await signer.sign(
        {
          method: "POST",
          protocol,
          hostname,
          path: `${prefix}${path}`,
          // Only these headers are signed, because proxies may change others.
          headers: { host, "content-type": headers["content-type"] ?? "" },
          body,
        },
        { signingDate: new Date(now()) },
      );
      // The transport writes the `host` header.
      const { host: _, ...added } = signed.headers;
      return added;
    },
    secrets: () => signing?.secrets ?? [],
  };
}

/**
 * The AWS SDK's default chain: environment variables, a profile (including SSO and processes), a web identity, the role of a container
 * or an instance. It caches temporary keys and renews them five minutes before they expire.
 */
function chainFor(region: string): () => Promise<AwsKeys> {
  let chain: (() => Promise<AwsKeys>) | undefined;
  return async () => {
    if (chain === undefined) {
      const { fromNodeProviderChain } = await import("@aws-sdk/credential-providers");
      const requestHandler = await limitedHandler();
      chain ??= fromNodeProviderChain({ clientConfig: { region, requestHandler } });
    }
    return chain();
  };
}

/** Sends the chain's requests to AWS services, with the limits that the SDK lacks: FIND_MS per request, and a bounded answer. */
async function limitedHandler(): Promise<NodeHttpHandler> {
  const { NodeHttpHandler: Handler } = await import("@smithy/node-http-handler");
  class LimitedHandler extends Handler {
    override async handle(...[request, options]: Parameters<NodeHttpHandler["handle"]>) {
      const limit = new AbortController();
      const timer = setTimeout(() => limit.abort(), FIND_MS);
      try {
        const { response } = await super.handle(request, { ...options, abortSignal: limit.signal });
        response.body = Readable.from([await readAnswer(response.body as Readable)]);
        return { response };
      } finally {
        clearTimeout(timer);
      }
    }
  }
  return new LimitedHandler();
}

async function findInTime(findKeys: () => Promise<AwsKeys>, signal: AbortSignal): Promise<AwsKeys> {
  let stop: (() => void) | undefined;
  const stopped = new Promise<never>((_, reject) => {
    const onAbort = (): void => reject(signal.reason);
    const timer = setTimeout(() => reject(tooSlow()), FIND_MS);
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    stop = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
    };
  });
  const found = findKeys().catch((error: unknown) => {
    throw notFound(error);
  });
  try {
    return await Promise.race([found, stopped]);
  } finally {
    stop?.();
  }
}

function tooSlow(): Failure {
  const cause = new Error(
    `AWS credentials were not found within ${FIND_MS / 1_000} s: a metadata or STS server is silent`,
  );
  return new Failure("upstream_unavailable", NO_CREDENTIALS, { cause, refused: true });
}

/** The failure without keys. The chain's message is only for the log, because it names profiles and files. */
function notFound(error: unknown): Failure {
  const words = error instanceof Error ? error.message : "";
  const cause = new Error(
    `AWS's default credential chain: ${words || "nothing found"}. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give this machine or container a role; or set api_keys to a Bedrock API key.`,
  );
  return new Failure("upstream_refused_us", NO_CREDENTIALS, { cause });
}

const NO_CREDENTIALS = "The gateway has no AWS credentials for the upstream provider.";

/** SHA-256, or its HMAC with a secret, in the interface of the signer. */
class Sha256 {
  readonly #hash: Hash | Hmac;

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = secret === undefined ? createHash("sha256") : createHmac("sha256", toBytes(secret));
  }

  update(bytes: Uint8Array): void {
    this.#hash.update(bytes);
  }

  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }

  reset(): void {
    throw new Error("a hash is used once");
  }
}

function toBytes(source: string | ArrayBuffer | ArrayBufferView): Buffer {
  if (typeof source === "string") return Buffer.from(source);
  return ArrayBuffer.isView(source)
    ? Buffer.from(source.buffer, source.byteOffset, source.byteLength)
    : Buffer.from(source);
}
