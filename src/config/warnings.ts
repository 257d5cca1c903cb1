import { existsSync, type Stats, statSync } from "node:fs";
import { splitDatabaseHosts } from "../net/database-hosts.ts";
import { splitHosts } from "../net/hosts.ts";
import { isLoopback } from "./addresses.ts";
import { type ConfigPath, formatPath } from "./config-error.ts";
import type { Config, RemoteProvider } from "./config.ts";
import { KEY_FILE } from "./scalars.ts";

/** An allowed but unsafe setting, for the operator to change. */
export interface ConfigWarning {
  /** Name of the setting, such as `database.url`; for a problem of the file, its path. */
  readonly setting: string;
  /** The risk and the remedy. Holds no secret. */
  readonly text: string;
}

/** Whether other machines may reach the dashboard, directly or through a proxy. */
export function isExposed({ http }: Pick<Config, "http">): boolean {
  const { listen, allowPublic, publicUrl, trustedProxies } = http;
  return allowPublic || publicUrl !== undefined || trustedProxies.length > 0 || !isLoopback(listen.host);
}

/** Lists allowed but unsafe settings. Checks permissions of files and of the data directory without reading them. */
export function listWarnings(config: Config): ConfigWarning[] {
  return [
    ...httpWarnings(config),
    ...grpcWarnings(config),
    ...sharedPortWarnings(config),
    ...connectionWarnings(config),
    ...fileWarnings(config),
    ...missingFileWarnings(config),
  ];
}

function httpWarnings({ http: { listen, publicUrl, tls } }: Config): ConfigWarning[] {
  if (tls !== undefined || isHttps(publicUrl)) return [];
  const url = publicUrl === undefined ? undefined : new URL(publicUrl);
  const isPlainUrl = url !== undefined && !isLoopback(hostOf(url));
  if (isLoopback(listen.host) && !isPlainUrl) return [];
  const text =
    "other machines reach this over plain http: API keys, passwords and prompts can be read on the way, and the dashboard's " +
    "cookies are not Secure; set http.tls, or put a proxy that ends TLS in front of it and set http.public_url to its https address";
  return [{ setting: isPlainUrl ? "http.public_url" : "http.listen", text }];
}

function grpcWarnings({ http, grpc: { listen, tls } }: Config): ConfigWarning[] {
  if (http.grpc || tls !== undefined || isLoopback(listen.host)) return [];
  // A proxy ends TLS for HTTP, and is expected to do so for gRPC.
  if (http.tls === undefined && isHttps(http.publicUrl)) return [];
  const text =
    "other machines reach gRPC in plain text: API keys and prompts can be read on the way; set grpc.tls, or put a proxy that " +
    "ends TLS in front of it and set http.public_url to its https address";
  return [{ setting: "grpc.listen", text }];
}

function isHttps(url: string | undefined): boolean {
  return url?.startsWith("https:") === true;
}

function sharedPortWarnings({ http, grpc }: Config): ConfigWarning[] {
  if (!http.grpc || grpc.tls === undefined) return [];
  const problem = sharedPortProblem({ http, grpc });
  return [
    { setting: "http.grpc", text: problem ?? "gRPC is served with http.tls, and grpc.tls is not used; leave it out" },
  ];
}

/**
 * Why one port for HTTP and gRPC would lack the TLS that is configured for gRPC, with the remedy; undefined when it does not. For a
 * process that serves both: a core does not use `http.grpc`.
 */
export function sharedPortProblem({ http, grpc }: Pick<Config, "http" | "grpc">): string | undefined {
  if (!http.grpc || grpc.tls === undefined) return undefined;
  if (http.tls === undefined)
    return "gRPC would be served without grpc.tls, in plain text: one port for HTTP and gRPC has http.tls; write that in place of grpc.tls";
  if (grpc.tls.clientCaFile !== undefined && http.tls.clientCaFile === undefined)
    return "gRPC would be served without grpc.tls.client_ca_file: one port for HTTP and gRPC has http.tls; write client_ca_file there";
  return undefined;
}

function connectionWarnings({ databaseUrl, databaseReadUrl, databaseListenUrl, redis, smtp }: Config): ConfigWarning[] {
  const warnings: ConfigWarning[] = [];
  for (const [setting, address] of [
    ["database.url", databaseUrl],
    ["database.read_url", databaseReadUrl],
    ["database.listen_url", databaseListenUrl],
  ] as const) {
    // `none` of `listen_url` is no address.
    const hosts = address === undefined ? undefined : splitDatabaseHosts(address);
    const databases = hosts?.urls.map((url) => new URL(url)) ?? [];
    if (!databases.some(isRemote)) continue;
    const { searchParams } = databases[0]!;
    const mode =
      searchParams.get("sslmode") ?? (/^(true|1)$/.test(searchParams.get("ssl") ?? "") ? "verify-full" : "disable");
    if (mode === "disable")
      warnings.push({
        setting,
        text: "the connection to PostgreSQL on another machine is not encrypted; add sslmode=verify-full to the address",
      });
    else if (mode === "no-verify")
      warnings.push({
        setting,
        text: "sslmode=no-verify accepts every certificate, so that the connection can be intercepted; use sslmode=verify-full",
      });
  }
  if (redis !== undefined && splitHosts(redis.url)!.some((url) => url.protocol === "redis:" && isRemote(url)))
    warnings.push({
      setting: "redis.url",
      text: "the connection to Redis on another machine is not encrypted; use an address that begins with rediss://",
    });
  if (smtp?.security === "none" && !isLoopback(smtp.host))
    warnings.push({
      setting: "smtp.security",
      text: "the connection to the e-mail server on another machine is not encrypted: links for new passwords, and smtp.password, can be read on the way; use starttls or tls",
    });
  return warnings;
}

/** Whether the host is neither this machine nor a Unix socket. */
function isRemote(url: URL): boolean {
  const host = url.searchParams.get("host") ?? hostOf(url);
  return host !== "" && !host.startsWith("/") && !isLoopback(host);
}

function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, "$1");
}

function fileWarnings({ file, dataDir, secretsInFile }: Config): ConfigWarning[] {
  const warnings: ConfigWarning[] = [];
  const fileMode = file === undefined ? 0 : (statOf(file)?.mode ?? 0);
  if (file !== undefined && (fileMode & 0o002) !== 0)
    warnings.push({
      setting: file,
      text: `every user of this machine may change it (${octal(fileMode)}); run: chmod o-w ${file}`,
    });
  if (file !== undefined && secretsInFile && (fileMode & 0o004) !== 0)
    warnings.push({
      setting: file,
      text: `it holds secrets, and every user of this machine may read it (${octal(fileMode)}); run: chmod o= ${file}, or write secrets as \${NAME}`,
    });
  const data = statOf(dataDir);
  if (data !== undefined && (data.mode & 0o077) !== 0)
    warnings.push({
      setting: "data_dir",
      text: `other users of this machine may enter ${dataDir} (${octal(data.mode)}); run: chmod 700 ${dataDir}`,
    });
  const user = process.getuid?.();
  if (data !== undefined && data.uid !== 0 && data.uid !== user)
    warnings.push({
      setting: "data_dir",
      text: `${dataDir} belongs to another user (${data.uid}), who can exchange its files; run: chown ${user} ${dataDir}`,
    });
  return warnings;
}

function missingFileWarnings(config: Config): ConfigWarning[] {
  const ofProviders = config.providers.flatMap((provider) => (provider.simulated ? [] : filesOf(provider)));
  return [...ofProviders, ...LISTENERS.flatMap((name) => tlsFilesOf(name, config[name].tls))]
    .filter(({ file }) => !existsSync(file))
    .map(({ path, file, who }) => ({ setting: formatPath(path), text: `there is no file ${file}; ${who} needs it` }));
}

interface NeededFile {
  /** The setting that names it. */
  readonly path: ConfigPath;
  readonly file: string;
  readonly who: "a start" | "each request";
}

/** The files with a provider's credentials. */
function filesOf({ name, apiKeys, host }: RemoteProvider): NeededFile[] {
  const path = ["providers", name];
  const keys = apiKeys
    .map((key, index) => ({ path: [...path, "api_keys", index], file: key }))
    .filter(({ file }) => file.startsWith(KEY_FILE))
    .map((key) => ({ ...key, file: key.file.slice(KEY_FILE.length), who: "a start" as const }));
  const file = host?.kind === "vertex" ? host.credentialFile : undefined;
  return file === undefined ? keys : [...keys, { path: [...path, "credential_file"], file, who: "each request" }];
}

const LISTENERS = ["http", "grpc", "operations"] as const;

function tlsFilesOf(name: string, tls: Config["http"]["tls"]): NeededFile[] {
  if (tls === undefined) return [];
  const { certFile, keyFile, clientCaFile, clientCrlFile } = tls;
  const files = {
    cert_file: certFile,
    key_file: keyFile,
    client_ca_file: clientCaFile,
    client_crl_file: clientCrlFile,
  };
  return Object.entries(files).flatMap(([key, file]) =>
    file === undefined ? [] : [{ path: [name, "tls", key], file, who: "a start" as const }],
  );
}

/** Permissions and owner; undefined for a missing path, and on Windows, which has none. */
function statOf(path: string): Stats | undefined {
  return process.platform === "win32" ? undefined : statSync(path, { throwIfNoEntry: false });
}

function octal(mode: number): string {
  return (mode & 0o777).toString(8).padStart(4, "0");
}
