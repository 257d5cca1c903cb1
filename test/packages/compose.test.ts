import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { checkConfig } from "./config-check.ts";
import { goTools } from "../../scripts/go-tools.ts";
import { need, root, run, tryRun } from "./tools.ts";

interface Service {
  readonly environment: Readonly<Record<string, string>>;
  readonly volumes?: readonly { readonly type: string; readonly source: string }[];
  readonly networks: Readonly<Record<string, unknown>>;
  readonly ports?: readonly { readonly published: string; readonly host_ip?: string }[];
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly user?: string;
  readonly tmpfs?: readonly string[];
  readonly stop_grace_period?: string;
}
interface Project {
  readonly services: Readonly<Record<string, Service>>;
  readonly networks: Readonly<Record<string, { readonly internal?: boolean }>>;
}

const SECRETS = {
  PARLEY_DOMAIN: "localhost",
  POSTGRES_PASSWORD: "aaaaaaaa",
  VALKEY_PASSWORD: "bbbbbbbb",
  GRAFANA_PASSWORD: "cccccccc",
};
/**
 * Users of the images, where compose.yaml sets none, by name of service. Caddy is root: its image has no entrypoint that would
 * change owners, and its folders are root's.
 */
const USERS_OF_IMAGES: Readonly<Record<string, string>> = {
  parley: /^USER (\S+)$/m.exec(readFileSync(join(root, "Dockerfile"), "utf8"))![1]!,
  prometheus: "65534:65534",
  grafana: "472:0",
  caddy: "0:0",
};
const file = join(root, "compose.yaml");
let reader: string;
let project: Project;
beforeAll(async () => {
  reader = await goTools.composeReader();
  project = JSON.parse(run(reader, [file], SECRETS)) as Project;
}, 600_000);

describe("compose.yaml", () => {
  it("has Parley and what it needs, and mounts only files that there are", () => {
    const services = Object.entries(project.services);
    expect(services.map(([name]) => name).toSorted()).toEqual([
      "caddy",
      "grafana",
      "parley",
      "postgres",
      "prometheus",
      "valkey",
    ]);
    const mounted = services.flatMap(([, { volumes = [] }]) => volumes.filter(({ type }) => type === "bind"));
    expect(mounted.length).toBeGreaterThan(2);
    expect(mounted.map(({ source }) => source).filter((source) => !existsSync(source))).toEqual([]);
  });

  it.each(Object.keys(SECRETS))("does not start without %s, and says where to read how", (name) => {
    const { status, stderr } = tryRun(reader, [file], { ...SECRETS, [name]: "" });
    expect(status).toBe(1);
    expect(stderr).toContain(`${name} is missing a value: make .env as docs/operations/production.md says`);
  });

  it("gives Parley settings that it accepts", async () => {
    const image = { PARLEY_HTTP_LISTEN: "0.0.0.0:8080", PARLEY_HTTP_ALLOW_PUBLIC: "true" };
    const { environment } = project.services["parley"]!;
    const text = readFileSync(join(root, "deploy/compose/parley.yaml"), "utf8");
    const { code, stderr } = await checkConfig(text, { ...image, ...environment });
    expect({ code, stderr }).toMatchObject({ code: 0 });
  });

  it("runs Parley without rights, with time to drain, and reaches the databases over their own network only", () => {
    const parley = project.services["parley"]!;
    expect(parley).toMatchObject({ read_only: true, cap_drop: ["ALL"], stop_grace_period: "11m0s" });
    expect(project.networks["data"]).toMatchObject({ internal: true });
    for (const name of ["postgres", "valkey"]) expect(Object.keys(project.services[name]!.networks)).toEqual(["data"]);
  });

  it("runs services without capabilities as users that can write their folders without changing owners", () => {
    const dropped = Object.entries(project.services).filter(([, { cap_drop: drop = [] }]) => drop.includes("ALL"));
    expect(dropped.length).toBeGreaterThan(3);
    const users = dropped.map(([name, { user }]) => [
      name,
      user ?? USERS_OF_IMAGES[name] ?? "unknown, as root perhaps",
    ]);
    for (const [name, user] of users) expect(`${name} ${user}`).toMatch(/^\w+ \d+:\d+$/);
    expect(users.filter(([, user]) => user!.startsWith("0:")).map(([name]) => name)).toEqual(["caddy"]);
    // A tmpfs is root's unless it says otherwise.
    for (const [name, user] of users.filter(([, each]) => !each!.startsWith("0:"))) {
      const [uid, gid] = user!.split(":");
      for (const tmpfs of project.services[name!]!.tmpfs ?? []) expect(tmpfs).toContain(`uid=${uid},gid=${gid}`);
    }
  });

  it("publishes nothing but Caddy to other machines", () => {
    const published = Object.entries(project.services).flatMap(([name, { ports = [] }]) =>
      ports.filter(({ host_ip: address }) => address !== "127.0.0.1").map((port) => `${name} ${port.published}`),
    );
    expect(published.toSorted()).toEqual(["caddy 443", "caddy 443", "caddy 80"]);
  });

  it("has a Caddyfile that Caddy accepts", () => {
    need("caddy", "apt-get install caddy");
    const caddyfile = join(root, "deploy/compose/Caddyfile");
    const output = run("caddy", ["validate", "--config", caddyfile, "--adapter", "caddyfile"], SECRETS);
    expect(output).toContain("Valid configuration");
  });
});
