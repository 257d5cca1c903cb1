import type { Environment } from "./environment.ts";

/** Why a text is not the address of a proxy; undefined when it is. */
export function proxyProblem(text: string): string | undefined {
  const url = URL.parse(text);
  const isAddress = url !== null && /^https?:$/.test(url.protocol) && url.hostname !== "";
  if (!isAddress || url.pathname !== "/" || url.search !== "" || url.hash !== "")
    return 'must be the address of an HTTP proxy, such as "http://proxy.example.com:3128"';
  try {
    decodeURIComponent(url.username + url.password);
    return undefined;
  } catch {
    return "has a % in its user or password that stands for no character: write it as %25";
  }
}

/** Name and value of the environment's proxy for `https:`; undefined without one. */
export function proxyVariable(env: Environment): { readonly variable: string; readonly value: string } | undefined {
  for (const variable of ["https_proxy", "HTTPS_PROXY"]) {
    const value = env[variable];
    if (value !== undefined && value !== "") return { variable, value };
  }
  return undefined;
}

/**
 * Whether the environment's `no_proxy` or `NO_PROXY` names a host: a list of hosts, each with all names below it and perhaps a port, or `*`
 * for all. Addresses are compared as they are written.
 */
export function isWithoutProxy({ hostname, port }: URL, env: Environment): boolean {
  const host = hostname.replace(/^\[|\]$/g, "").toLowerCase();
  const names = (env["no_proxy"] ?? env["NO_PROXY"] ?? "")
    .toLowerCase()
    .split(/[\s,]+/)
    .filter(Boolean);
  return names.some((entry) => {
    if (entry === "*") return true;
    const [, name = entry, ofPort] = /^\[?(.*?)\]?(?::(\d+))?$/.exec(entry) ?? [];
    const ending = name.replace(/^\*?\./, "");
    return (host === ending || host.endsWith(`.${ending}`)) && (ofPort === undefined || ofPort === (port || "443"));
  });
}
