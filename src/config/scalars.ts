import { isIP } from "node:net";
import { z } from "zod";
import { splitDatabaseHosts } from "../net/database-hosts.ts";
import { splitHosts } from "../net/hosts.ts";
import { toMailDomain } from "../net/mail-domain.ts";
import { proxyProblem } from "./proxies.ts";

/** Values of samples and tutorials, which protect nothing. */
const SAMPLE_SECRETS =
  /^(change-?me|(my-?)?(secret|password|api-?key)|(your|my)[-_].*|example.*|placeholder|todo|test|x+|\*+|\.+|<.*>|(sk-)?1234.*)$/i;

const MIN_SECRET_LENGTH = 8;

/** Headers set by Parley's HTTP client; other values would break the connection or the dialect. */
const OUR_HEADERS = new Set([
  "accept",
  "accept-encoding",
  "host",
  "connection",
  "keep-alive",
  "expect",
  "content-length",
  "content-type",
  "transfer-encoding",
  "te",
  "trailer",
  "upgrade",
  "x-parley-hops",
  "traceparent",
  "tracestate",
]);

/** Beginning of a credential that is in a file, before its absolute path. */
export const KEY_FILE = "file:";

/** Parley's secret at a provider, or KEY_FILE and the path of the file that has it. */
export const credential = z.string().superRefine((text, context) => {
  const problem = credentialProblem(text);
  if (problem !== undefined) context.addIssue(problem);
});

function credentialProblem(text: string): string | undefined {
  if (/[\r\n]/.test(text)) return "the credential contains a line break; write it without (printf, not echo)";
  if (!/^[\x21-\x7e]*$/.test(text)) return "the credential contains a space or a character that is not ASCII";
  if (/^\$[A-Za-z_]\w*$/.test(text)) return "a variable is written ${NAME}, with braces";
  if (text === KEY_FILE || /^file:[^/]/.test(text))
    return "the path of a file with the key is absolute: file:/run/secrets/NAME";
  return text === "" ? "the credential is empty" : undefined;
}

/** A percentile from 50 to 99, such as `p95`, or a time, such as `800ms` or `1.5s`. */
export const hedgeAfter = z
  .string()
  .regex(
    /^(p[5-9]\d|[1-9]\d{0,4}ms|\d{1,2}(\.\d{1,3})?s)$/,
    'must be a percentile from p50 to p99, or a time such as "800ms" or "1.5s"',
  );
/** A value of a label, or a tag of a key. */
export const labelValue = z.string().regex(/^[a-z0-9._-]{1,64}$/, "must be 1 to 64 of a-z, 0-9, ., _ and -");

/** A region of a cloud: part of host names. */
export const region = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,62}$/, 'must be the name of a region, such as "europe-west4"');

/** ID or number of a project of Google Cloud; part of paths. */
export const project = z
  .string()
  .regex(/^[a-z0-9][a-z0-9.:-]{0,127}$/, 'must be the ID or the number of a project, such as "my-project-123"');

/** Version of Azure's addresses of deployments. */
export const apiVersion = z
  .string()
  .regex(/^\d{4}-\d{2}-\d{2}(-preview)?$/, 'must be a version of the API, such as "2024-10-21"');

/** Why a text cannot be a credential issued by a public service; undefined when it can. */
export function sampleProblem(text: string): string | undefined {
  if (SAMPLE_SECRETS.test(text)) return "this is a sample, not a credential; write the real one, best as ${NAME}";
  return text.length < MIN_SECRET_LENGTH ? `the credential is shorter than ${MIN_SECRET_LENGTH} characters` : undefined;
}

export const providerName = z
  .string()
  .regex(/^[a-z][a-z0-9_-]{0,31}$/, "a provider's name is 1 to 32 of a-z, 0-9, - and _, beginning with a letter");

export const MODEL_ID = /^[A-Za-z0-9._:/@-]{1,256}$/;

export const modelId = z.string().regex(MODEL_ID, "a model's ID is 1 to 256 of letters, digits and . _ : / @ -");

export const modelAlias = z
  .string()
  .regex(/^(?:[A-Za-z0-9._:/@-]{1,256}\*?|\*)$/, "an alias is the ID of a model, or the beginning of one and *");

/** Header names whose values are likely to be secrets. */
export const SECRET_HEADER = /auth|key|token|secret|cookie|cred|pass(w|code|phrase|$)/i;

export const headerName = z
  .string()
  .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/, "this is not the name of an HTTP header")
  .refine((name) => !OUR_HEADERS.has(name.toLowerCase()), "this header is set by Parley itself; remove it");

export const headerValue = z
  .string()
  .max(8192)
  .regex(/^[\x20-\x7e]*$/, "a header's value is printable ASCII on one line");

export const isoDate = z.iso.date("must be a date, such as 2025-11-24");

/** An allowed origin of browsers' requests, exactly as browsers send it, or `*`. */
export const origin = z
  .string()
  .refine((text) => text === "*" || isOrigin(text), 'must be an origin, such as "https://app.example.com", or "*"');

function isOrigin(text: string): boolean {
  return /^https?:/.test(text) && URL.parse(text)?.origin === text;
}

/** Origin under which people reach the dashboard. */
export const publicUrl = z.string().refine(isOrigin, 'must be an origin, such as "https://parley.example.com"');

/** Address of an HTTP proxy, which may hold a password; `none` for no proxy. */
export const proxy = z.string().superRefine((text, context) => {
  const problem = text === NO_PROXY ? undefined : proxyProblem(text);
  if (problem !== undefined) context.addIssue(problem);
});

/** In place of a proxy: connect directly. */
export const NO_PROXY = "none";

export const ipAddress = z.string().refine((text) => isIP(text) !== 0, 'must be an IP address, such as "10.0.0.7"');

export const absolutePath = z
  .string()
  .refine((text) => text.startsWith("/"), "must be an absolute path, such as /etc/parley/ca.pem");

/** An alternative name of a certificate: DNS names are compared without regard to case. */
export const certificateName = z
  .string()
  .max(1024)
  .regex(
    /^(DNS:[A-Za-z0-9.*_-]+|URI:[\x21\x23-\x2b\x2d-\x5b\x5d-\x7e]+)$/,
    'must be an alternative name such as "URI:spiffe://example.org/billing" or "DNS:billing.internal"',
  )
  .transform((name) => (name.startsWith("DNS:") ? name.toLowerCase().replace(/^dns/, "DNS") : name));

export const httpsUrl = z
  .string()
  .refine(
    (text) => text.startsWith("https:") && URL.canParse(text),
    'must be an address such as "https://example.com/jwks.json"',
  );

/** Issuer of an OpenID provider; without TLS only on this machine. */
export const oidcIssuer = z
  .string()
  .max(1024)
  .superRefine((text, context) => {
    const url = URL.parse(text);
    if (url === null || !/^https?:$/.test(url.protocol) || url.search !== "" || url.hash !== "" || url.username !== "")
      context.addIssue('must be the issuer of the provider, such as "https://id.example.com"');
    else if (url.protocol === "http:" && !/^(localhost|127\.0\.0\.1|\[::1\])$/.test(url.hostname))
      context.addIssue("must begin with https:// (http:// is for a provider on this machine)");
    else if (text.includes("/.well-known/"))
      context.addIssue("must be the issuer alone, without /.well-known/openid-configuration");
    else if (
      /^\/(common|organizations|consumers)(\/|$)/.test(url.pathname) &&
      url.hostname === "login.microsoftonline.com"
    )
      context.addIssue("must be the issuer of one tenant: people of other tenants could claim any address");
  });

/** Domain of e-mail addresses, in the spelling of stored addresses. */
export const mailDomain = z.string().transform((text, context) => {
  const domain = text.length > 253 ? undefined : toMailDomain(text.normalize("NFC"));
  if (domain?.includes(".") === true) return domain;
  context.addIssue('must be a domain of e-mail addresses, such as "example.com"');
  return z.NEVER;
});

/** A scope of OpenID Connect. */
export const scope = z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,200}$/, 'must be one scope, such as "email"');

/** Address of a trace, with `{trace_id}` in place of its ID. Shown as a link, so that no other scheme may be. */
export const traceUrl = z
  .string()
  .refine(
    (text) => /^https?:/.test(text) && URL.canParse(text) && text.includes("{trace_id}"),
    'must be an address with {trace_id} in it, such as "https://jaeger.example.com/trace/{trace_id}"',
  );

/** ID of a key. */
export const keyId = z
  .string()
  .regex(/^key_[0-9A-Za-z]{1,32}$/, 'must be the ID of a key, as "parley keys list" shows it: key_…');

/** A network of proxies: an address, with or without a prefix length. */
export const network = z
  .string()
  .refine(isNetwork, 'must be an address or a network, such as "10.0.0.0/8" or "fd00::/8"');

function isNetwork(text: string): boolean {
  const [address = "", prefix] = text.split("/", 2);
  const version = isIP(address);
  if (version === 0 || text.split("/").length > 2) return false;
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= (version === 4 ? 32 : 128));
}

/** Address of PostgreSQL. May hold a password: never shown. */
export const databaseUrl = serverUrl(
  ["postgres:", "postgresql:"],
  "postgres://user:password@host:5432/database",
  (text) => splitDatabaseHosts(text)?.urls ?? [""],
);

/** Address for LISTEN, or `none`. May hold a password: never shown. */
export const databaseListenUrl = z.literal("none").or(databaseUrl);

/** A key of AES-256: 32 bytes in base64 or hexadecimal. Never shown. */
export const encryptionKey = z.string().regex(/^(?:[0-9a-fA-F]{64}|[A-Za-z0-9+/]{43}=)$/, {
  error: 'must be 32 random bytes in base64 or hexadecimal, such as the output of "openssl rand -base64 32"',
});

/** A program and its arguments, which are run without a shell. */
export const command = z
  .array(
    z
      .string()
      .max(8192)
      .regex(/^[^\0]*$/, "contains a NUL character"),
  )
  .min(1, 'must be a program and its arguments, such as ["vault", "kv", "get", "-field=key", "secret/parley"]')
  .max(100)
  .refine(([program]) => program !== "", "must begin with the name or the path of a program");

/** Address of Redis or Valkey, with one host or several. May hold a password: never shown. */
export const redisUrl = serverUrl(
  ["redis:", "rediss:"],
  "redis://host:6379",
  (text) => splitHosts(text)?.map(({ href }) => href) ?? [""],
);

/** `split`: the addresses of several servers in one. */
function serverUrl(
  schemes: readonly string[],
  example: string,
  split: (text: string) => readonly string[] = (text) => [text],
) {
  const isServer = (text: string): boolean => {
    const url = URL.parse(text);
    if (url === null || !schemes.includes(url.protocol)) return false;
    // An unescaped slash in a password makes the rest of it, with the host, the path, which is shown.
    if (/[/@]/.test(url.pathname.slice(1))) return false;
    // The directory of a Unix socket is the parameter `host`.
    return url.hostname !== "" || url.searchParams.has("host");
  };
  return z.string().refine((text) => split(text).every(isServer), `must be an address such as "${example}"`);
}
