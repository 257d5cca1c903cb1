import { createHash, createHmac, timingSafeEqual } from "node:crypto";

/*
 * AWS's side of Signature Version 4, written from its documentation ("Create a signed AWS API request") and not from the library
 * that signs, so that both have to agree about the request as it came over the wire.
 */

/** A request as received: its path is not decoded. */
export interface RawRequest {
  readonly method: string;
  readonly path: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

export interface KnownKeys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

export interface SignatureRules {
  readonly keys: readonly KnownKeys[];
  readonly region: string;
  readonly nowMs: number;
}

/** Why AWS refuses a request: the error's type and text. */
export interface Refused {
  readonly type: string;
  readonly message: string;
}

/** Maximum difference between the time of a signature and the server's clock. */
const SKEW_MS = 5 * 60_000;
const FORM =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/;

/** Returns AWS's refusal of a request; undefined if its signature is valid. */
export function refuseSignature(request: RawRequest, { keys, region, nowMs }: SignatureRules): Refused | undefined {
  const authorization = one(request.headers["authorization"]);
  if (authorization === "")
    return { type: "MissingAuthenticationTokenException", message: "Missing Authentication Token" };
  const [, id, day, scopeRegion, service, names, signature] = FORM.exec(authorization) ?? [];
  if (id === undefined || names === undefined)
    return { type: "IncompleteSignatureException", message: "Authorization header is not in the form of SigV4." };
  const known = keys.find(({ accessKeyId }) => accessKeyId === id);
  if (known === undefined || (known.sessionToken ?? "") !== one(request.headers["x-amz-security-token"]))
    return { type: "UnrecognizedClientException", message: "The security token included in the request is invalid." };
  const date = one(request.headers["x-amz-date"]);
  const sentMs = Date.parse(date.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"));
  if (!(Math.abs(nowMs - sentMs) <= SKEW_MS))
    return { type: "InvalidSignatureException", message: `Signature expired: ${date} is not now.` };
  if (!date.startsWith(day!) || scopeRegion !== region || service !== "bedrock")
    return { type: "InvalidSignatureException", message: "Credential should be scoped to a valid region and service." };
  const hash = sha256(request.body);
  const told = one(request.headers["x-amz-content-sha256"]);
  if (told !== "" && told !== hash)
    return { type: "InvalidSignatureException", message: "x-amz-content-sha256 is not that of the body." };

  const signed = names.split(";");
  const required = ["host", ...Object.keys(request.headers).filter((name) => name.startsWith("x-amz-"))];
  if (!required.every((name) => signed.includes(name)))
    return { type: "InvalidSignatureException", message: "A header that must be signed is not." };
  const canonical = [
    request.method,
    canonicalPath(request.path),
    "",
    ...signed.map((name) => `${name}:${one(request.headers[name]).trim().replace(/ +/g, " ")}`),
    "",
    names,
    hash,
  ].join("\n");
  const text = ["AWS4-HMAC-SHA256", date, `${day}/${scopeRegion}/${service}/aws4_request`, sha256(canonical)].join(
    "\n",
  );
  const key = [day!, scopeRegion, service, "aws4_request"].reduce<Buffer | string>(
    hmac,
    `AWS4${known.secretAccessKey}`,
  );
  if (!timingSafeEqual(hmac(key, text), Buffer.from(signature!, "hex")))
    return { type: "InvalidSignatureException", message: "The request signature we calculated does not match." };
  return undefined;
}

/** Encodes each segment of the path, as it was sent, a second time. AWS does so for every service but S3. */
function canonicalPath(path: string): string {
  return path
    .split("/")
    .map((segment) =>
      encodeURIComponent(segment).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`),
    )
    .join("/");
}

const one = (value: string | string[] | undefined): string => (Array.isArray(value) ? value.join(",") : (value ?? ""));
const sha256 = (bytes: string | Buffer): string => createHash("sha256").update(bytes).digest("hex");
const hmac = (key: string | Buffer, text: string): Buffer => createHmac("sha256", key).update(text).digest();
