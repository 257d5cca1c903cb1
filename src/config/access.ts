import { isLoopback } from "./addresses.ts";
import type { ConfigPath, Report } from "./config-error.ts";
import { camelKeys, type Config, type ListenAddress, type TokenIssuerConfig } from "./config.ts";
import { KEY_FILE, sampleProblem } from "./scalars.ts";
import type { FileInput, IssuerInput } from "./schema.ts";

export function resolveAccess({ access, http, grpc }: FileInput, report: Report): Config["access"] {
  const { certificates } = access;
  const verifiesClients = (http.tls?.client_ca_file ?? grpc.tls?.client_ca_file) !== undefined;
  if (certificates.length > 0 && !verifiesClients)
    report(["access", "certificates"], "needs client_ca_file in http.tls or grpc.tls, whose certificates these are");
  const ofFronts = grpc.tls?.client_ca_file ?? (http.grpc ? http.tls?.client_ca_file : undefined);
  if (access.fronts.length > 0 && ofFronts === undefined)
    report(["access", "fronts"], "needs grpc.tls.client_ca_file, whose certificates these are");
  for (const index of repeated(certificates.map(({ name }) => name)))
    report(["access", "certificates", index, "name"], "is listed twice");
  for (const index of repeated(access.issuers.map(({ issuer }) => issuer)))
    report(["access", "issuers", index, "issuer"], "is listed twice");
  const issuers = access.issuers.map((input, index) => resolveIssuer(input, ["access", "issuers", index], report));
  return { certificates, fronts: access.fronts, issuers };
}

/** Indexes of values that are in the list before. */
function repeated(values: readonly string[]): number[] {
  const seen = new Set<string>();
  return values.flatMap((value, index) => (seen.size === seen.add(value).size ? [index] : []));
}

function resolveIssuer(input: IssuerInput, path: ConfigPath, report: Report): TokenIssuerConfig {
  const { issuer, audience, algorithms, bindings, keys_url: url, keys_file: file, keys_ca_file: caFile } = input;
  if ((url === undefined) === (file === undefined))
    report([...path, "keys_url"], "is required, or keys_file in its place, with the issuer's JSON Web Key Set");
  if (caFile !== undefined && url === undefined) report([...path, "keys_ca_file"], "is for keys_url");
  const keySet = file === undefined ? { url: url ?? "", caFile } : { file };
  return { issuer, audience, algorithms, bindings, clockSkewMs: input.clock_skew_seconds * 1000, keySet };
}

const MINUTE_MS = 60 * 1000;
const HOUR_MS = 60 * MINUTE_MS;

export function resolveSignIn(
  { sign_in: input, http: { public_url: publicUrl }, database: { url: databaseUrl } }: FileInput,
  { listen, sealsSecrets }: { readonly listen: ListenAddress; readonly sealsSecrets: boolean },
  report: Report,
): Config["signIn"] {
  const { password, second_factor: secondFactor, session_hours: hours, idle_minutes: minutes, oidc } = input;
  if (secondFactor === "required" && databaseUrl !== undefined && !sealsSecrets)
    report(
      ["sign_in", "second_factor"],
      "required with database.url needs account_credentials.encryption_key: without it nobody can set up an authenticator app",
    );
  if (!password && oidc === undefined) report(["sign_in", "password"], "can be false only with sign_in.oidc");
  if (oidc !== undefined) {
    const { client_secret: secret } = oidc;
    const weakness = secret.startsWith(KEY_FILE) ? undefined : sampleProblem(secret);
    if (weakness !== undefined) report(["sign_in", "oidc", "client_secret"], weakness);
    if (publicUrl === undefined && !isLoopback(listen.host))
      report(["sign_in", "oidc"], "needs http.public_url, the address to which the provider sends people back");
    if (oidc.default_role === "none" && Object.keys(oidc.roles).length === 0)
      report(["sign_in", "oidc", "default_role"], "with none, roles needs at least one group: nobody could sign in");
  }
  return {
    password,
    secondFactor,
    sessionMs: hours * HOUR_MS,
    idleMs: minutes * MINUTE_MS,
    oidc: oidc && camelKeys(oidc),
  };
}
