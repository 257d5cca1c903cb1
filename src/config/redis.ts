import { splitHosts } from "../net/hosts.ts";
import type { Report } from "./config-error.ts";
import { camelKeys, type RedisConfig } from "./config.ts";
import type { FileInput } from "./schema.ts";

/** Completes the section `redis`; undefined without a URL. */
export function resolveRedis({ redis }: FileInput, report: Report): RedisConfig | undefined {
  const { url, mode, sentinel } = redis;
  if (Object.keys(redis.tls).length > 0 && url?.startsWith("rediss:") !== true)
    report(["redis", "tls"], "is for a redis.url that begins with rediss://");
  if (mode !== "server" && url === undefined) report(["redis", "mode"], `${mode} needs a redis.url`);
  if (mode !== "sentinel" && Object.keys(sentinel).length > 0)
    report(["redis", "sentinel"], "is for redis.mode: sentinel");
  if (mode === "sentinel" && sentinel.master === undefined)
    report(
      ["redis", "sentinel", "master"],
      'is required with redis.mode: sentinel; it is the name after "sentinel monitor"',
    );
  if (url === undefined) return undefined;
  const urls = splitHosts(url) ?? [];
  if (mode === "server" && urls.length > 1)
    report(["redis", "url"], "has several hosts, which are for redis.mode: cluster or sentinel");
  if (mode === "cluster" && urls.some(({ pathname }) => /[1-9]/.test(pathname)))
    report(["redis", "url"], "names a database, and a cluster has none but 0");
  const { master = "", username, password } = sentinel;
  const place = mode === "sentinel" ? { mode, master, username, password } : { mode };
  return { url, place, tls: camelKeys(redis.tls) };
}
